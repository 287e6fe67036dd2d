"""What goes wrong with slots, in the words of the stream's causes; and where the log ends."""

import psycopg

from packhorse.core.errors import PackhorseError
from packhorse.relay.cdc.stream import Cause, StreamUnavailable

TIMED_OUT = frozenset({"55P03", "57014"})
"""SQLSTATE of a lock and of a statement that took too long."""
_ROLE = "; the relay's role needs REPLICATION, and cdc-setup one that owns the outbox"


def end_of_last_record(insert: int, *, block: int, segment: int) -> int:
    """
    Return where the last record of the log ends, given where the next one begins.

    They differ where a page is just full: the next record begins behind the next page's header, and a stream's word
    would not reach that until something more is written.

    >>> [hex(end_of_last_record(at, block=8192, segment=16 << 20)) for at in (0x2000018, 0x1000028, 0x2000058, 0x2004018)]
    ['0x2000018', '0x1000000', '0x2000058', '0x2004000']
    """
    header = 40 if insert - insert % block == insert - insert % segment else 24
    return insert - header if insert % block == header else insert


def state_of(error: PackhorseError) -> str | None:
    """Return the SQLSTATE of the driver's error behind *error*."""
    return error.__cause__.sqlstate if isinstance(error.__cause__, psycopg.Error) else None


def unavailable(error: PackhorseError, *, slot: str) -> StreamUnavailable:
    """Return what a failed statement about *slot* means for the stream."""
    text = f"{error.__cause__}".strip().partition("\n")[0]
    match state_of(error):
        case "42501":
            return not_set_up(f"{text}{_ROLE}")
        case "53400":
            return not_set_up(f"no slot can be made: {text}; raise max_replication_slots")
        case "55006":
            return StreamUnavailable(
                f"slot {slot} is read by another process: {text}", cause=Cause.SLOT_IN_USE
            )
        case _:
            return failed(str(error))


def not_set_up(text: str) -> StreamUnavailable:
    """Say that a person has to set something up."""
    return StreamUnavailable(text, cause=Cause.NOT_SET_UP)


def lost(text: str) -> StreamUnavailable:
    """Say that the slot can't be used any more, or not from where the relay is."""
    return StreamUnavailable(text, cause=Cause.SLOT_LOST)


def failed(text: str) -> StreamUnavailable:
    """Say that the stream broke, or can't be had for now."""
    return StreamUnavailable(text, cause=Cause.STREAM_FAILED)
