"""Steps of a timeline, and the order that they come in. Pure: no I/O, no clock."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from packhorse.console.facts import Act
from packhorse.console.pages.offers import Stage


class Mark(StrEnum):
    """How a step is drawn: the classes of a way."""

    PLAIN = ""
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    PERSON = "person"
    NEXT = "next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    One step.

    Attributes:
        at: When it was so, or will be; None: no table says when.
        said: What there is to know of it, a sentence each.
        by, why: Whose act it was, and the reason on record.
        stages: Of an act that is asked for, sent and proved: how far it is.
    """

    name: str
    at: datetime | None = None
    said: tuple[str, ...] = ()
    mark: Mark = Mark.PLAIN
    by: str | None = None
    why: str | None = None
    stages: tuple[Stage, ...] = ()


ACTS = {
    "redrive": "Redrive asked for",
    "discard": "Given up",
    "restore": "Had back",
    "edit": "An edited copy sent in its place",
    "unmask": "Personal fields shown to a person",
    "purge": "Erased, for a person's sake",
}
"""Acts on one message as steps."""


def acted(act: Act, *, stages: tuple[Stage, ...] = ()) -> Step:
    """Return the step of an act on the record."""
    attempt = act.detail.get("attempt")
    said = (f"attempt {attempt} was ordered",) if act.act == "redrive" and isinstance(attempt, int) else ()
    return Step(
        name=ACTS.get(act.act, act.act.replace("_", " ").capitalize()),
        at=act.at,
        said=said,
        mark=Mark.PERSON,
        by=act.actor,
        why=act.why,
        stages=stages,
    )


def in_order(steps: Iterable[Step]) -> list[Step]:
    """Return *steps* by their times, those of one time as they are given; those without one come last."""
    return sorted(steps, key=lambda step: (step.at is None, step.at or datetime.min.replace(tzinfo=UTC)))


def stamp(at: datetime) -> str:
    """
    Return a moment as sentences carry it, so that the page can put it into the viewer's zone.

    >>> stamp(datetime(2026, 8, 1, 12, tzinfo=UTC))
    '2026-08-01 12:00:00 UTC'
    """
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
