"""Fixtures of all rings; tests/support/fixtures.py says what there is."""

pytest_plugins = ("tests.support.fixtures",)
