"""Message ids: UUIDv7 (RFC 9562), ids derived from what was consumed, and ids for records that bring none."""

import hashlib
from binascii import unhexlify
from datetime import UTC, datetime, timedelta
from uuid import UUID, SafeUUID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND


def uuid7_from(at: datetime, entropy: bytes) -> UUID:
    """
    Build the UUIDv7 of the time *at* (aware) from ten bytes of *entropy*; six of their bits give way to version and variant.

    >>> uuid7_from(datetime(2026, 1, 1, tzinfo=UTC), bytes(10))
    UUID('019b76da-a800-7000-8000-000000000000')

    Raises:
        ValueError: *at* lies before 1970 or beyond 48 bits of milliseconds, or *entropy* is not ten bytes long.
    """
    milliseconds = (at - _EPOCH) // _MILLISECOND
    if not 0 <= milliseconds < 1 << 48:
        raise ValueError(f"time {at.isoformat()} does not fit a UUIDv7: allowed are 1970 to 10889")
    return _layout(milliseconds, entropy)


def _layout(milliseconds: int, entropy: bytes) -> UUID:
    if len(entropy) != 10:
        raise ValueError(f"{len(entropy)} bytes of entropy, 10 are needed")
    rest = int.from_bytes(entropy) & ~(0xF << 76) & ~(0x3 << 62)
    return UUID(int=milliseconds << 80 | rest | 0x7 << 76 | 0x2 << 62)


def time_of(message_id: UUID) -> datetime | None:
    """Return the time in a UUIDv7, aware, UTC, to the millisecond; None for any other id, and for times behind the year 9999."""
    milliseconds = message_id.int >> 80
    if message_id.version != 7 or milliseconds > _LATEST:
        return None
    return _EPOCH + milliseconds * _MILLISECOND


def derived_id(consumed: UUID, group: str, ordinal: int) -> UUID:
    """
    Return the id of the follow-up number *ordinal* (from 0) that *group* writes while it handles *consumed*.

    The same three give the same id, so a follow-up that is made again is a duplicate downstream. It keeps the
    first 48 bits of the consumed id: its time, when that is a UUIDv7.
    """
    digest = hashlib.sha256(
        b"follow-up\0" + consumed.bytes + group.encode() + b"\0" + str(ordinal).encode()
    ).digest()
    return _layout(consumed.int >> 80, digest[:10])


def replayed_id(consumed: UUID, run: int, group: str) -> UUID:
    """
    Return the id under which replay number *run* has *group* do *consumed* once more.

    The same three give the same id, so a message that is handed over again is a duplicate. It keeps the first 48 bits of the
    consumed id: its time, when that is a UUIDv7.
    """
    digest = hashlib.sha256(
        b"replay\0" + consumed.bytes + group.encode() + b"\0" + str(run).encode()
    ).digest()
    return _layout(consumed.int >> 80, digest[:10])


def foreign_id(topic_id: UUID, partition: int, offset: int) -> UUID:
    """
    Return the id of a record that brings none: from the topic's id, partition and offset, so a redelivery has the same.

    It is a UUIDv8: what it holds is ours to say and no time can be read from it.
    """
    digest = hashlib.sha256(b"foreign\0" + topic_id.bytes + f"{partition}:{offset}".encode()).digest()
    return UUID(int=int.from_bytes(digest[:16]) & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0x2 << 62)


def id_of(text: bytes | None) -> UUID | None:
    """
    Return the id that *text* writes as 32 hexadecimal digits, with four dashes or none; None when it writes none.

    It does what `UUID(text)` does for these forms in less than half of the time.

    >>> id_of(b"019b76da-a800-7000-8000-000000000000")
    UUID('019b76da-a800-7000-8000-000000000000')
    >>> id_of(b"019b76da-a800-7000-8000"), id_of(b"+19b76daa8007000800000000000000_"), id_of(None)
    (None, None, None)
    """
    if text is None or len(text) not in _LENGTHS:
        return None
    try:
        octets = unhexlify(text.replace(b"-", b""))
    except ValueError:
        return None
    if len(octets) != 16:
        return None
    made = _new(UUID)
    _set_int(made, int.from_bytes(octets))
    _set_is_safe(made, _UNKNOWN)
    return made


_LENGTHS = frozenset({32, 36})
_UNKNOWN = SafeUUID.unknown
_new = object.__new__
_set_int, _set_is_safe = UUID.__dict__["int"].__set__, UUID.__dict__["is_safe"].__set__
