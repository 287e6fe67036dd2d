"""Memory that is freed stays with the process, where the C library lets us ask for that."""

import platform

from packhorse.relay.allocator import keep_freed_memory


def test_glibc_takes_the_settings_and_nobody_else_is_asked() -> None:
    """Fails when a parameter's number or value is one that mallopt refuses."""
    assert keep_freed_memory() == (platform.libc_ver()[0] == "glibc")
