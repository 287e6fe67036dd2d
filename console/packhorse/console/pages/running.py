"""Redrives and replays as a page tells them: what each act will do, how far a run is, and what is proved. Pure: no I/O, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from packhorse.console.pages.offers import Offer, Stage
from packhorse.console.pages.showing import moment, number
from packhorse.console.redriving.records import OPEN, Progress, RedriveRow, RunState
from packhorse.console.replaying.run import Run
from packhorse.core.rights import Right, Standing
from packhorse.core.text import counted


class Act(StrEnum):
    """What a person may do with a run."""

    RUN = "run"
    PAUSE = "pause"
    RESUME = "resume"
    ABORT = "abort"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One part of a bar: how many, of which kind, from where on and how wide in hundredths."""

    name: str
    count: int
    kind: str
    x: float
    width: float


def segments_of(parts: Sequence[tuple[str, int, str]]) -> tuple[Segment, ...]:
    """
    Return the parts (name, count, kind) of a bar side by side; what is there at all can be seen.

    >>> [(one.x, one.width) for one in segments_of([("good", 999, "good"), ("bad", 1, "bad"), ("left", 0, "")])]
    [(0.0, 99.0), (99.0, 1.0)]
    """
    there = [(name, count, kind) for name, count, kind in parts if count]
    total = sum(count for _, count, _ in there)
    widths = [max(count / total * 100, 1.0) for _, count, _ in there]
    scale = 100 / sum(widths) if widths else 1.0
    made: list[Segment] = []
    x = 0.0
    for (name, count, kind), width in zip(there, widths, strict=True):
        made.append(Segment(name=name, count=count, kind=kind, x=round(x, 1), width=round(width * scale, 1)))
        x += width * scale
    return tuple(made)


def redrive_segments(progress: Progress) -> tuple[Segment, ...]:
    """Return how the members of a redrive stand, as a bar."""
    return segments_of(
        [
            ("proved good", progress.good, "good"),
            ("failed again", progress.bad, "bad"),
            ("asked, not proved", progress.asked, "busy"),
            ("moved", progress.moved, "warn"),
            ("left", progress.left, "warn"),
            ("waiting", progress.waiting, ""),
        ]
    )


def redrive_stages(row: RedriveRow, progress: Progress) -> tuple[Stage, ...]:
    """Return how far a redrive is: previewed, confirmed, asked, sent and proved are five different things."""
    asked = progress.asked + progress.good + progress.bad
    over = row.state not in {*OPEN, RunState.PREVIEWED}
    total = progress.total - progress.moved - progress.left
    confirmed = (
        f"by {row.confirmed_by}: {row.why}"
        if row.confirmed_at is not None
        else "the preview has expired; freeze the set again"
        if row.expired
        else "nobody has confirmed it"
        if row.state is RunState.PREVIEWED
        else "it was thrown away"
    )
    proved = progress.good + progress.bad
    return (
        Stage(
            name="Previewed",
            is_done=True,
            said=f"{counted(row.members, 'message')} frozen by {row.previewed_by}",
        ),
        Stage(name="Confirmed", is_done=row.confirmed_at is not None, said=confirmed),
        Stage(
            name="Asked",
            is_done=asked > 0 and (over or progress.waiting == 0),
            said=f"{number(asked)} of {number(total)}: ordered in the tables",
        ),
        Stage(
            name="Sent",
            is_done=asked > 0 and progress.sent >= asked and progress.waiting == 0,
            said=f"{number(progress.sent)}: the broker has the copy, or they were run without one"
            + (f"; {progress.refused} the broker does not take" if progress.refused else ""),
            went_wrong=progress.refused > 0,
        ),
        Stage(
            name="Proved",
            is_done=proved > 0 and proved >= total,
            said=f"{number(progress.good)} done by an outcome, {number(progress.bad)} failed again",
            went_wrong=progress.bad > 0,
        ),
    )


def replay_segments(run: Run) -> tuple[Segment, ...]:
    """Return how the messages of a replay stand, as a bar."""
    now = run.progress
    good = now.done + now.skipped + now.discarded
    left_out = now.duplicates + now.given_up + now.older + now.open + now.reused + now.moved
    return segments_of(
        [
            ("proved", good, "good"),
            ("stopped", now.failed, "bad"),
            ("handed over, not proved", max(now.unproved, 0), "busy"),
            ("left out", left_out, "warn"),
            ("to come", max(now.matches - now.handed - left_out, 0), ""),
        ]
    )


def replay_stages(run: Run) -> tuple[Stage, ...]:
    """Return how far a replay is: planned, confirmed, handed over and proved are four different things."""
    now = run.progress
    good = now.done + now.skipped + now.discarded
    over = run.ended_at is not None
    confirmed = (
        f"by {run.confirmed_by}: {run.why}"
        if run.confirmed_at is not None
        else "the plan has expired; plan it again"
        if run.expired
        else "nobody has confirmed it"
    )
    return (
        Stage(
            name="Planned",
            is_done=True,
            said=f"{_many(now.offsets, 'offset')} read, {_many(now.matches, 'message')} wanted, by {run.planned_by}",
        ),
        Stage(name="Confirmed", is_done=run.confirmed_at is not None, said=confirmed),
        Stage(
            name="Handed over",
            is_done=now.handed > 0 and now.passed >= now.offsets,
            said=f"{number(now.handed)}; {number(now.passed)} of {number(now.offsets)} offsets passed",
        ),
        Stage(
            name="Proved",
            is_done=over and now.unproved <= 0 and now.handed > 0,
            said=f"{number(good)} by an outcome, {number(now.failed)} stopped, {number(max(now.unproved, 0))} without one yet",
            went_wrong=now.failed > 0,
        ),
    )


def redrive_acts(row: RedriveRow) -> tuple[Act, ...]:
    """Return what can be done with a redrive as it stands."""
    match row.state:
        case RunState.PREVIEWED:
            return () if row.expired else (Act.RUN, Act.ABORT)
        case RunState.RUNNING:
            return (Act.PAUSE, Act.ABORT)
        case RunState.PAUSED | RunState.HALTED:
            return (Act.RESUME, Act.ABORT)
        case _:
            return ()


def replay_acts(run: Run) -> tuple[Act, ...]:
    """Return what can be done with a replay as it stands."""
    match run.state:
        case "planned":
            return () if run.expired else (Act.RUN, Act.STOP)
        case "running":
            return (Act.PAUSE, Act.STOP)
        case "paused" | "halted":
            return (Act.RESUME, Act.STOP)
        case _:
            return ()


def redrive_offer(row: RedriveRow, act: Act, standing: Standing) -> Offer:
    """Return what *act* on a redrive will do, in words."""
    happens = {
        Act.RUN: (
            f"Exactly these {counted(row.members, 'message')} are redriven, once; what came to quarantine since is not in the set.",
            (
                f"They are asked for in stages of {', '.join(map(str, row.stages))} and then five times as many each, at most {row.rate:g} a "
                "second; each stage begins once the one before is proved by outcomes."
            ),
            "It halts by itself when the failures come back.",
        ),
        Act.PAUSE: (
            "No more members are asked for until somebody resumes it.",
            "What was asked for goes on.",
        ),
        Act.RESUME: (
            "It goes on with the members that are left.",
            "After a halt the stages begin small again.",
        ),
        Act.ABORT: (
            "It ends for good; what was asked for goes on, the rest stays in quarantine.",
            "Nothing that was redriven is taken back.",
        ),
    }
    throws = row.state is RunState.PREVIEWED and act is Act.ABORT
    return _offer(
        "redrive",
        row.id,
        act,
        standing,
        happens=("The preview is thrown away; nothing is redriven.",) if throws else happens[act],
        button=f"Redrive {counted(row.members, 'message')}" if act is Act.RUN else None,
        warnings=tuple(f"{'' if one.count is None else f'{one.count} '}{one.said}" for one in row.checks)
        if act is Act.RUN
        else (),
        holds=f"until {moment(row.expires_at).striptags()}" if act is Act.RUN else None,
    )


def replay_offer(run: Run, act: Act, standing: Standing) -> Offer:
    """Return what *act* on a replay will do, in words."""
    wanted = run.wanted
    again = (
        "Messages that are done are done once more: every effect of them happens again."
        if wanted.own_identity
        else "Messages that are done already are left out as duplicates."
    )
    happens = {
        Act.RUN: (
            (
                f"The {counted(run.progress.matches, 'wanted message')} of the range are handed to {wanted.handler or 'the handlers'} of group "
                f"{wanted.group}, at most {wanted.rate:g} a second."
            ),
            again,
            "The offsets of the live group are not touched.",
            f"It halts by itself when more than {counted(wanted.most_failures, 'message')} fail.",
        ),
        Act.PAUSE: (
            "Nothing more is handed over for now.",
            "Live messages of the keys that it holds go on waiting.",
        ),
        Act.RESUME: ("It goes on where it was.", "After a halt as many more failures are borne as before."),
        Act.STOP: (
            "It ends for good; what was handed over stays with the group.",
            "Live messages of the keys that it held go on.",
        ),
    }
    throws = run.state == "planned" and act is Act.STOP
    return _offer(
        "replay",
        run.id,
        act,
        standing,
        happens=("The plan is thrown away; nothing is replayed.",) if throws else happens[act],
        button=f"Replay {counted(run.progress.matches, 'message')}" if act is Act.RUN else None,
        warnings=tuple(one.text for one in run.checks) if act is Act.RUN else (),
        holds=f"until {moment(run.expires_at).striptags()}" if act is Act.RUN else None,
    )


def _offer(
    kind: str,
    number_: int,
    act: Act,
    standing: Standing,
    *,
    happens: tuple[str, ...],
    button: str | None,
    warnings: tuple[str, ...],
    holds: str | None,
) -> Offer:
    name = f"{act.value.capitalize()} {kind} {number_}"
    path = f"/{kind}s/{number_}"
    return Offer(
        title=name,
        happens=happens,
        action=f"{path}/{act.value}",
        button=button or name,
        back=path,
        may=Right.ACT in standing.rights,
        needs=Right.ACT.value,
        is_danger=act in {Act.ABORT, Act.STOP},
        warnings=warnings,
        facts=() if holds is None else (("The preview holds", holds),),
    )


def _many(n: int, one: str) -> str:
    return counted(n, one).replace(str(n), number(n), 1)
