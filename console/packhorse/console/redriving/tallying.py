"""Count how members stand as they are asked for and proved, so that no step has to count the whole set. Pure."""

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from packhorse.console.redriving.deciding import StageTally, Tally


class Member(StrEnum):
    """
    How a member of a set stands.

    REFUSED is `left` in the table with what the broker says; LEFT was not asked for, or waits behind another message.
    """

    WAITING = "waiting"
    ASKED = "asked"
    GOOD = "good"
    BAD = "bad"
    MOVED = "moved"
    LEFT = "left"


def tallied(counts: Iterable[tuple[int | None, str, bool, int]], *, first: int) -> Tally:
    """Return the tally of rows (stage, state, whether the broker refuses it, how many), of stages from *first* on."""
    waiting, stages = 0, dict[int, StageTally]()
    for stage, state, refused, count in counts:
        if state == Member.WAITING:
            waiting += count
        elif stage is not None and (stage >= first or state == Member.ASKED):
            stages[stage] = _added(stages.get(stage, StageTally()), state, count, refused=refused)
    return Tally(stages=stages, waiting=waiting)


def asked(tally: Tally, stage: int, *, opened: int, closed: int) -> Tally:
    """Return *tally* after *opened* members were asked for in *stage*, and *closed* others found moved or left."""
    now = tally.stages.get(stage, StageTally())
    took = replace(now, taken=now.taken + opened, open=now.open + opened)
    return Tally(stages={**tally.stages, stage: took}, waiting=max(0, tally.waiting - opened - closed))


def proved(tally: Tally, found: Iterable[tuple[int, str, bool]]) -> Tally:
    """Return *tally* after outcomes were *found*: rows (stage, state, whether the broker refuses it)."""
    stages = dict(tally.stages)
    for stage, state, refused in found:
        now = stages.get(stage, StageTally())
        stages[stage] = replace(
            now,
            open=max(0, now.open - 1),
            bad=now.bad + (state == Member.BAD),
            refused=now.refused + refused,
        )
    return Tally(stages=_kept(stages), waiting=tally.waiting)


def _added(now: StageTally, state: str, count: int, *, refused: bool) -> StageTally:
    return StageTally(
        taken=now.taken + count,
        open=now.open + count * (state == Member.ASKED),
        bad=now.bad + count * (state == Member.BAD),
        refused=now.refused + count * refused,
    )


def _kept(stages: dict[int, StageTally]) -> dict[int, StageTally]:
    """Return the stages that still matter: the last one, those with open members, and any that asks for a halt."""
    last = max(stages, default=0)
    return {
        stage: now for stage, now in stages.items() if stage == last or now.open or now.bad or now.refused
    }
