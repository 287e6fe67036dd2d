"""
By which names a request may ask for the console. Pure: no I/O.

A page of somebody else can let a name of theirs lead to our address once it is loaded (DNS rebinding): a browser then takes us for
their server and lets them read what we answer, also on a port that only this machine reaches. What it says in Host is still their
name. So names that are not ours are refused, before anything else is looked at.
"""

import re
from collections.abc import Iterable
from ipaddress import ip_address

from packhorse.console.api.problem import Refused, of_status
from packhorse.core.errors import SettingsError

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")


def host_and_port(header: str) -> tuple[str, str]:
    """
    Return what a Host header names, in small letters and without brackets, and the port, if it says one; a header that is none
    names nothing.

    >>> host_and_port("Packhorse.Example.org."), host_and_port("[::1]:8400"), host_and_port("a@b")
    (('packhorse.example.org', ''), ('::1', '8400'), ('', ''))
    """
    found = _HOST.fullmatch(header.strip())
    if found is None:
        return "", ""
    return found[1].strip("[]").lower().removesuffix("."), found[2] or ""


class Hosts:
    """
    The names of one console.

    This machine's own (localhost, 127.0.0.1, ::1) are always among them, for tunnels end there: no page of elsewhere can have them.
    Where the console listens on all addresses, every address is too: names lead elsewhere, addresses don't.

    Args:
        listening: The address or name that the console listens on.
        names: Further ones, parted by commas.

    Raises:
        SettingsError: One of them is no name.
    """

    def __init__(self, listening: str, names: str) -> None:
        own = listening.partition("%")[0].lower()
        self._everywhere = _is(own, "is_unspecified")
        self._names = frozenset((own, *_named(names)))

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """
        Check that a request with *headers* asks for us.

        Raises:
            Refused: It asks for another; names the setting.
        """
        asked = next((value for name, value in headers if name == b"host"), b"").decode("latin-1")
        host, _ = host_and_port(asked)
        if host and (host in self._names or _is_local(host) or (self._everywhere and _is_address(host))):
            return
        raise Refused(
            of_status(
                421,
                f"the console does not answer to the name {asked[:100]!r}; nothing was done. If people or programs are to reach it "
                "by that name, as behind a proxy, set PACKHORSE_CONSOLE_HOSTS to it (names parted by commas, without ports)",
            )
        )


def _named(names: str) -> list[str]:
    found = [name.strip().lower() for name in names.split(",") if name.strip()]
    if any(not _NAME.fullmatch(name) and not _is_address(name) for name in found):
        raise SettingsError(
            f"PACKHORSE_CONSOLE_HOSTS={names[:80]!r} is not allowed: names as browsers ask for them, parted by commas, without scheme "
            "and port, as packhorse.example.org"
        )
    return found


def _is_local(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost") or _is(host, "is_loopback")


def _is_address(host: str) -> bool:
    return _is(host, "version")


def _is(host: str, what: str) -> bool:
    try:
        return bool(getattr(ip_address(host.partition("%")[0]), what))
    except ValueError:
        return False
