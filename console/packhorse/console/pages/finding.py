"""What somebody may mean who types into the search: an id, a place, a run, a key, a name. Pure: no I/O; nothing is wrong enough to raise."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from packhorse.console.facts import Place
from packhorse.console.finding.model import AtPlace, Found
from packhorse.console.pages.steps import stamp
from packhorse.core.text import counted

LONGEST = 1_000
"""Characters that are searched for."""
_ID = re.compile(r"(?<![0-9a-fA-F-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9a-fA-F-])")
_WHOLE_ID = re.compile(
    r"(?:urn:uuid:)?[{\"'(<]?(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})[}\"')>]?",
    re.IGNORECASE | re.ASCII,
)
_RUN = re.compile(
    r"/?(?P<kind>redrive|replay)s?[\s/#:]+(?P<number>[1-9][0-9]{0,17})", re.IGNORECASE | re.ASCII
)
_NUMBER = re.compile(r"#?(?P<number>[1-9][0-9]{0,17})")
_PLACE = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249})(?:/|\[)(?P<partition>[0-9]{1,9})(?:\]?[/@:]|\] )(?P<offset>[0-9]{1,18})"
)
_HEX = re.compile(r"[0-9a-f]{8,64}", re.IGNORECASE | re.ASCII)
_BYTES = re.compile(r"0x((?:[0-9a-f]{2})+)", re.IGNORECASE | re.ASCII)
MOST_IDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """
    What a text may mean; several at once, since a key may look like anything.

    Attributes:
        text: As it was typed, without blanks around it.
        id: The whole of it is the id of a message or job, and can be nothing else.
        ids: Ids that it holds, as a line of a log does.
        runs: Redrives and replays by their numbers.
        print: The beginning of a print of failures.
        key: As bytes, as the tables have it.
        key_hash: It has the form in which the tables name a key.
        wrong: Why nothing can be searched for; then all else is empty.
    """

    text: str
    id: UUID | None = None
    ids: tuple[UUID, ...] = ()
    runs: tuple[tuple[str, int], ...] = ()
    place: Place | None = None
    print: str | None = None
    key: bytes | None = None
    key_hash: str | None = None
    wrong: str | None = None


def sought(text: str) -> Sought:
    """
    Return what *text* may mean.

    >>> sought("redrive 7").runs, sought("airline.aircraft/2/1234").place.offset, sought(" N14228 ").key
    ((('redrive', 7),), 1234, b'N14228')
    """
    asked = text.strip()
    if (wrong := _wrong(asked)) is not None:
        return Sought(text=asked[:LONGEST], wrong=wrong)
    if (whole := _WHOLE_ID.fullmatch(asked)) is not None:
        return Sought(text=asked, id=UUID(whole["id"]), ids=(UUID(whole["id"]),))
    place = _PLACE.fullmatch(asked)
    hexed = _HEX.fullmatch(asked)
    digits = None if hexed is None else hexed[0].lower()
    return Sought(
        text=asked,
        ids=_ids(asked, digits),
        runs=_runs(asked),
        place=None
        if place is None
        else Place(topic=place["topic"], partition=int(place["partition"]), offset=int(place["offset"])),
        print=digits if digits is not None and len(digits) <= 32 else None,
        key=_key(asked),
        key_hash=digits if digits is not None and len(digits) == 32 else None,
    )


def _wrong(asked: str) -> str | None:
    if len(asked) > LONGEST:
        return f"that is {len(asked)} characters long; what can be found has at most {LONGEST}"
    if "\x00" in asked:
        return "it holds a character of no width (NUL), which no id, key or name can hold"
    try:
        asked.encode()
    except UnicodeEncodeError:
        return "it holds half a character, which no id, key or name can hold"
    return None


def _ids(asked: str, digits: str | None) -> tuple[UUID, ...]:
    if digits is not None and len(digits) == 32:
        return (UUID(digits),)  # an id without its hyphens, or a key's hash
    return tuple(dict.fromkeys(UUID(found[0]) for found in _ID.finditer(asked)))[:MOST_IDS]


def _runs(asked: str) -> tuple[tuple[str, int], ...]:
    if (run := _RUN.fullmatch(asked)) is not None:
        return ((run["kind"].lower(), int(run["number"])),)
    if (number := _NUMBER.fullmatch(asked)) is not None:
        return (("redrive", int(number["number"])), ("replay", int(number["number"])))
    return ()


def _key(asked: str) -> bytes | None:
    """Return the key that *asked* is: its text, or the bytes that it writes in hexadecimal, as pages show keys that are no text."""
    if not asked:
        return None
    found = _BYTES.fullmatch(asked)
    return asked.encode() if found is None else bytes.fromhex(found[1])


def hits(
    wanted: Sought, found: Found, *, runs: Sequence[tuple[str, int, str]] = (), place: AtPlace | None = None
) -> int:
    """Return how many things were found; an id that somebody typed is none, for it may be nobody's."""
    return (
        len(found.quarantined)
        + len(found.keys)
        + len(found.rows)
        + len(found.groups)
        + len(found.topics)
        + len(runs)
        + int(place is not None and place.id is not None)
        + len(wanted.ids)
    )


def looked(wanted: Sought, found: Found) -> tuple[str, ...]:
    """Return what was looked through for *wanted*, so that what is not found is known not to be there."""
    said = [
        "names of the groups and source topics that work in this database, of which at most 20 each are shown"
    ]
    if wanted.key is not None:
        said.append("keys of all messages in quarantine, and all parked and paused keys, in every group")
    if found.back_to is not None:
        said.append(f"the newest {counted(found.looked, 'outbox row')}, back to {stamp(found.back_to)}")
    elif wanted.key is not None and _is_text(wanted.key):
        said.append("the outbox, which is empty")
    if wanted.print is not None:
        said.append("the prints of groups of failures")
    if wanted.place is not None:
        said.append("that one place of the topic")
    if wanted.runs:
        said.append("the numbers of redrives and replays")
    return tuple(said)


def not_looked(wanted: Sought) -> tuple[str, ...]:
    """Return what was not looked through: for what may be there all the same, another way is named."""
    said = []
    if wanted.key is not None:
        said.append("older outbox rows and what is done already: no index leads to them by key; their ids do")
        said.append("topics: by key alone there is no bound to what would have to be read")
    said.append(
        "payloads, headers and error texts; errors can be looked for on the pages of quarantine and jobs"
    )
    return tuple(said)


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True
