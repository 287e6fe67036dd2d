"""Who asks: the token of a request, and a bound on how often an address may bring tokens that nobody knows. Pure: no I/O, no clock."""

import re
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from packhorse.console.acting.person import TOKEN_PREFIX
from packhorse.core.errors import NotSignedIn

_TOKEN = re.compile(rf"{TOKEN_PREFIX}[A-Za-z0-9_-]{{16,200}}")
ASK_FOR_ONE = "ask an admin for one: `packhorse operators token NAME --role viewer --expires 90d`"


def token_in(header: str | None) -> str:
    """
    Return the token that the Authorization *header* brings.

    >>> token_in("Bearer phk_0123456789abcdef")
    'phk_0123456789abcdef'

    Raises:
        NotSignedIn: There is none, or it has not the form of one.
    """
    if header is None:
        raise NotSignedIn(f"send `Authorization: Bearer {TOKEN_PREFIX}…`; {ASK_FOR_ONE}")
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not _TOKEN.fullmatch(token):
        raise NotSignedIn(
            f"the Authorization header is not `Bearer {TOKEN_PREFIX}…`; {ASK_FOR_ONE}"
        )  # what it holds may be a secret of something else
    return token


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class SignIns:
    """
    Bound how many refused tokens an address may bring, in bounded memory.

    Tokens have 256 random bits and can't be guessed: the bound spares the database and the log. A token that was known of late
    passes whatever else comes from its address, so that nobody can shut out those who share a proxy with them.

    Args:
        burst: Refusals that an address has at once.
        every: Seconds after which it has one more.
        addresses, tokens: How many are remembered; the longest unused is forgotten first.
    """

    def __init__(
        self, *, burst: int = 20, every: float = 3.0, addresses: int = 10_000, tokens: int = 1_000
    ) -> None:
        self._burst = float(burst)
        self._every = every
        self._addresses = addresses
        self._tokens = tokens
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def wait(self, address: str, token_hash: bytes, *, now: float) -> float:
        """Return the seconds that the address has to wait before the token is looked up; 0: now."""
        if token_hash in self._known:
            return 0.0
        bucket = self._buckets.get(network_of(address))
        if bucket is None:
            return 0.0
        left = self._left(bucket, now)
        return 0.0 if left >= 1 else (1 - left) * self._every

    def refused(self, address: str, token_hash: bytes, *, now: float) -> None:
        """Take note that the token is not known, or no more."""
        self._known.pop(token_hash, None)
        network = network_of(address)
        bucket = self._buckets.pop(network, None) or _Bucket(self._burst, now)
        self._buckets[network] = _Bucket(max(0.0, self._left(bucket, now) - 1), now)
        _keep(self._buckets, self._addresses)

    def known(self, token_hash: bytes) -> None:
        """Take note that the token is somebody's."""
        self._known[token_hash] = None
        self._known.move_to_end(token_hash)
        _keep(self._known, self._tokens)

    def _left(self, bucket: _Bucket, now: float) -> float:
        return min(self._burst, bucket.left + (now - bucket.at) / self._every)


def network_of(address: str) -> str:
    """
    Return what counts as one address: of IPv6 the /64, which one host has whole.

    >>> network_of("192.0.2.7"), network_of("2001:db8::7"), network_of("")
    ('192.0.2.7', '2001:db8::', '')
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(IPv6Address(int(found) >> 64 << 64))
    return str(found)


def _keep(found: OrderedDict[str, _Bucket] | OrderedDict[bytes, None], most: int) -> None:
    while len(found) > most:
        found.popitem(last=False)
