"""Where a request comes from: whether a form was sent by a page of ours, and who a proxy says is there. Pure: no I/O."""

import re
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from packhorse.core.errors import SettingsError

_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path on this host: one slash first, printable ASCII without a backslash, which browsers take for a slash."""


def is_ours(headers: Mapping[str, str]) -> bool:
    """
    Return whether a request that changes something comes from a page of this host.

    Browsers say where a request comes from in headers that no page can set (Fetch Metadata, and Origin where that is not known);
    one that says nothing is refused: no browser of these years is silent.

    >>> is_ours({"sec-fetch-site": "same-origin"}), is_ours({"sec-fetch-site": "cross-site", "origin": "https://a", "host": "a"})
    (True, False)
    >>> is_ours({"origin": "http://127.0.0.1:8400", "host": "127.0.0.1:8400"}), is_ours({"host": "127.0.0.1:8400"})
    (True, False)
    """
    if (site := headers.get("sec-fetch-site")) is not None:
        return site == "same-origin"
    origin, host = headers.get("origin"), headers.get("host")
    return bool(origin and host) and urlsplit(origin).netloc == host


def path_on_here(path: str | None) -> str:
    r"""
    Return *path* when it leads to a page of this host, else the first page: nobody is sent elsewhere by a link of ours.

    >>> [path_on_here(path) for path in ("/jobs?state=running", "//evil.example", "/\\evil.example", "https://evil.example", None)]
    ['/jobs?state=running', '/', '/', '/', '/']
    """
    return path if path is not None and _PATH.fullmatch(path) else "/"


class Trusted:
    """
    The proxies whose headers are believed.

    Args:
        addresses: Addresses or networks, parted by commas; empty: nobody's headers are.

    Raises:
        SettingsError: One of them is neither.
    """

    def __init__(self, addresses: str) -> None:
        named = [text.strip() for text in addresses.split(",") if text.strip()]
        self.everybody = "*" in named
        try:
            self._networks = [ip_network(text, strict=False) for text in named if text != "*"]
        except ValueError:
            raise SettingsError(
                f"PACKHORSE_CONSOLE_PROXIES={addresses[:80]!r} is not allowed: addresses or networks, parted by commas, as "
                "10.0.0.4 or 10.0.0.0/24"
            ) from None

    def has(self, address: str) -> bool:
        """Return whether *address* is one of them."""
        try:
            found = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return any(found in network for network in self._networks)
