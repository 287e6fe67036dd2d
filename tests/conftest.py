"""Fixtures of all rings; tests/support/fixtures.py says what there is."""

from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.support.fixtures",)

# How long a case takes says how busy the machine is.
settings.register_profile(
    "packhorse", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("packhorse")
