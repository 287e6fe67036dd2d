"""Fixtures of all rings; tests/support/fixtures.py says what there is."""

import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.support.fixtures",)

# A shell without job control starts what runs in the background with SIGINT ignored, and each child would inherit that: tests
# that press Ctrl-C on one would wait for ever. With a handler set here, children start with the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long a case takes says how busy the machine is.
settings.register_profile(
    "packhorse", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("packhorse")
