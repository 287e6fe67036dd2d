"""How values look on a page: numbers, sizes, spans and moments, made safe for eyes. Pure: no I/O, no clock."""

import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup

from packhorse.console.doctor.findings import span
from packhorse.core.moments import zulu
from packhorse.core.text import inert

LONGEST = 20_000
"""Characters of one value that a page shows."""


def shown(value: object) -> object:
    r"""
    Return *value* as a template puts it on a page: text with control and invisible characters written as escapes.

    Whatever a key, header or error holds, nobody is misled by it: no terminal code, no text that runs backwards. Line breaks stay.

    >>> shown("a\u202eb\x1b[2J"), shown("two\nlines"), shown(7)
    ('a\\u202eb\\x1b[2J', 'two\nlines', 7)
    """
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    return "\n".join(inert(line) for line in value[:LONGEST].split("\n"))


def number(value: float | None, most: int | None = None) -> str:
    """
    Return a count with its thousands parted; one as high as *most* means at least so many.

    >>> number(1234567), number(10_000, most=10_000), number(None)
    ('1,234,567', '≥ 10,000', '–')
    """
    if value is None:
        return "–"
    text = f"{int(value):,}"
    return f"≥ {text}" if most is not None and value >= most else text


def rate(value: float | None) -> str:
    """
    Return a rate a second, with as many digits as tell something.

    >>> rate(0.04), rate(3.21), rate(12_345.6), rate(0.0), rate(None)
    ('0.04', '3.2', '12,346', '0', '–')
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if value < 1:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 100 else number(round(value))


def size(value: int | None) -> str:
    """
    Return a number of bytes for people.

    >>> size(0), size(2048), size(5_000_000), size(None)
    ('0 B', '2 KiB', '4.8 MiB', '–')
    """
    if value is None:
        return "–"
    left = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if left < 1024:
            return f"{left:.1f} {unit}".replace(".0 ", " ")
        left /= 1024
    return f"{left:.1f} TiB"


def lasted(value: timedelta | float | None) -> str:
    """
    Return how long something took or waits.

    >>> lasted(timedelta(seconds=0.25)), lasted(90), lasted(timedelta(hours=49)), lasted(None)
    ('250 ms', '90 s', '2 d', '–')
    """
    if value is None:
        return "–"
    span_ = value if isinstance(value, timedelta) else timedelta(seconds=value)
    if timedelta() < span_ < timedelta(seconds=1):
        return f"{span_.total_seconds() * 1000:.0f} ms"
    return span(span_)


def moment(value: datetime | None, form: str = "") -> Markup:
    """
    Return a moment in UTC, as an element that a script puts into the viewer's zone; *form* "date" or "clock" leaves out the rest.

    >>> moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    Markup('<time datetime="2026-01-02T03:04:05Z" data-form="" title="2026-01-02T03:04:05Z">2026-01-02 03:04:05 UTC</time>')
    """
    if value is None:
        return Markup("–")
    text = {"date": "%Y-%m-%d", "clock": "%H:%M:%S UTC"}.get(form, "%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{0}" data-form="{1}" title="{0}">{2}</time>').format(
        zulu(value), form, value.astimezone(UTC).strftime(text)
    )


def ago(value: datetime | None, now: datetime) -> Markup:
    """
    Return how long before *now* a moment was, or how long after it will be, with the moment itself at hand.

    >>> str(ago(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2026, 1, 2, 3, 6, tzinfo=UTC)))[-21:]
    'UTC">115 s ago</time>'
    """
    if value is None:
        return Markup("–")
    text = f"{lasted(now - value)} ago" if value <= now else f"in {lasted(value - now)}"
    full = value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" data-form="ago" title="{}">{}</time>').format(zulu(value), full, text)


_TOLD = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?(?: UTC|Z))"
    r"|(?<=\bmessage )(?P<message>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|(?<=\bidentity )(?P<identity>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|(?<=\bbehind )(?P<behind>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|(?<=\bjob )(?P<job>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|\b(?P<run>redrive|replay) (?P<number>[1-9]\d{0,17})\b"
)


def told(value: str | None) -> Markup:
    """
    Return a sentence of ours with its moments in the viewer's zone, and links to the messages, jobs and runs that it names.

    What is markup already stays as it is.

    >>> told("its head is message 019b76da-a800-7000-8000-000000000001 <b>")
    Markup('Its head is message <a href="/messages/019b76da-a800-7000-8000-000000000001">019b76da-a800-7000-8000-000000000001</a> &lt;b&gt;')
    >>> str(told("since 2026-01-02 03:04:05 UTC, by redrive 7"))[-70:]
    '2026-01-02 03:04:05 UTC</time>, by <a href="/redrives/7">redrive 7</a>'
    """
    if value is None or isinstance(value, Markup):
        return Markup("–") if value is None else value  # what is made already has its moments and links
    text, made, done = value[:1].upper() + value[1:LONGEST], Markup(), 0
    for found in _TOLD.finditer(text):
        made += Markup("{}{}").format(shown(text[done : found.start()]), _element(found))
        done = found.end()
    return made + Markup("{}").format(shown(text[done:]))


def _element(found: re.Match[str]) -> Markup:
    if (at := found["at"]) is not None:
        try:
            return moment(datetime.fromisoformat(at.replace(" UTC", "Z")))
        except ValueError:
            return Markup("{}").format(at)
    if (run := found["run"]) is not None:
        return Markup('<a href="/{0}s/{1}">{0} {1}</a>').format(run, found["number"])
    room = "jobs" if found["job"] is not None else "messages"
    return Markup('<a href="/{0}/{1}">{1}</a>').format(room, found[0])


def dated(value: datetime, text: str) -> Markup:
    r"""
    Return what was so at a moment, with the moment as an element; *text* is made safe for eyes.

    >>> str(dated(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "<b>\x1b[2J")).partition(" UTC")[2]
    '</time> &lt;b&gt;\\x1b[2J'
    """
    return Markup("{} {}").format(moment(value), shown(text))


def worded(text: str, *values: object) -> Markup:
    """
    Return *text*, which is ours, with *values* put in where it says {}; each is escaped and made safe for eyes.

    >>> worded("by {}", "<ann>")
    Markup('by &lt;ann&gt;')
    """
    return Markup(text).format(*map(shown, values))  # noqa: S704 the text is written in a module of ours


def data(value: object) -> str:
    """Return JSON-able data for eyes, indented, with the order that it has."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def key(value: str | bytes | None) -> str:
    r"""
    Return the key of a message for eyes.

    >>> key(b"N14228"), key(b"\xff"), key(None)
    ('N14228', '0xff', 'none')
    """
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def word(value: str | None) -> str:
    """
    Return *value* as one word of a command that people copy into a shell: an address that somebody has sent them may have named it.

    >>> word("figures"), word("$(rm x)")
    ('figures', "'$(rm x)'")
    """
    return "–" if value is None else shlex.quote(value)


def sentence(text: str | None) -> str:
    """
    Return *text* as a sentence of its own.

    >>> sentence("for a person: nothing happens by itself"), sentence("Done."), sentence(None)
    ('For a person: nothing happens by itself.', 'Done.', '–')
    """
    if text is None:
        return "–"
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "?", "!")) else ".")


FILTERS: dict[str, Any] = {
    "number": number,
    "rate": rate,
    "size": size,
    "lasted": lasted,
    "moment": moment,
    "ago": ago,
    "told": told,
    "data": data,
    "key": key,
    "word": word,
    "sentence": sentence,
}
"""By their names in templates."""
