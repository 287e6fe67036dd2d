"""Slots of key locks: every key falls into one of 1,024, so that no transaction can fill the server's lock table."""

from collections.abc import Iterable
from zlib import crc32

from packhorse.core.errors import UsageError

SLOTS = 1024


def slot_of(key: str) -> int:
    """
    Return the slot of *key*, from 0 to 1,023; the same in every process and version, for writers must agree on it.

    The topic is left out: whoever locks all keys of a transaction at its start need not know the types of what follows,
    and two topics that share a key share a lock, which costs a little waiting and no order.

    >>> slot_of("N14228")
    366
    """
    return crc32(key.encode(errors="surrogatepass")) % SLOTS


def slots_of(keys: Iterable[str | None]) -> list[int]:
    """
    Return the slots of *keys*, each once, in the order in which they are locked; a key of None has no order and no slot.

    Raises:
        UsageError: *keys* is one text, or holds something that is no text.
    """
    if isinstance(keys, str | bytes):
        raise UsageError("lock_keys was given one text; pass a list of keys, e.g. [key]")
    slots = set()
    for key in keys:
        if key is not None:
            if not isinstance(key, str):
                raise UsageError(f"a key is {type(key).__name__}; pass text, e.g. str(key)")
            slots.add(slot_of(key))
    return sorted(slots)
