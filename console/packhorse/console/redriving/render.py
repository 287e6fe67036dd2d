"""Lay redrives of sets out for people; the JSON of the same answers stands beside each."""

from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType

from packhorse.console.output import at, said, sheet, table
from packhorse.console.redriving.deciding import Plan
from packhorse.console.redriving.records import Frozen, MemberRow, Progress, RedriveRow, RunState
from packhorse.core.text import counted


def frozen_sheet(frozen: Frozen) -> RenderableType:
    """Return a preview for people: what is in it, what speaks against it, and what to type next."""
    row = frozen.redrive
    pairs: list[tuple[str, object]] = [
        ("redrive", row.id),
        (
            "set",
            f"{counted(row.members, 'message')}, frozen at {at(row.previewed_at)}; what comes later is not in it",
        ),
        ("wanted", _wanted(row)),
        ("will be asked for", f"{frozen.waiting}, at most {row.rate:g} a second, in stages {_stages(row)}"),
        ("halts", _halts(row)),
    ]
    parts: list[RenderableType] = [sheet(pairs)]
    if row.checks:
        parts += [said("")] + [
            sheet([("check", _check(one.code, one.count, one.said))]) for one in row.checks
        ]
    shown = table(
        ("id", "group", "topic", "type", "reason", "at", "redrives", ""),
        (
            (one.id, one.group, one.topic, one.type, one.reason, one.site, one.redrives, one.said or "")
            for one in frozen.samples
        ),
    )
    ends = f'packhorse redrive run {row.id} --why "…"'
    rest = row.members - len(frozen.samples)
    more = [said(f"and {rest} more: packhorse redrive members {row.id}")] if rest > 0 else []
    return Group(*parts, said(""), shown, *more, said(""), said(f"holds until {at(row.expires_at)}: {ends}"))


def redrive_sheet(row: RedriveRow, progress: Progress) -> RenderableType:
    """Return one redrive and how far it is, for people."""
    pairs: list[tuple[str, object]] = [
        ("redrive", row.id),
        ("state", said(standing(row), "bold")),
        ("wanted", _wanted(row)),
        ("previewed", f"{at(row.previewed_at)} by {row.previewed_by}"),
    ]
    if row.confirmed_at is not None:
        pairs += [("confirmed", f"{at(row.confirmed_at)} by {row.confirmed_by}: {row.why}")]
    over = row.state is RunState.ABORTED
    pairs += [
        ("rate", f"at most {row.rate:g} a second, in stages {_stages(row)}; in stage {row.stage + 1}"),
        ("halts", _halts(row)),
        *([] if over else [("waiting", f"{progress.waiting} of {progress.total}")]),
        ("asked", f"{progress.asked + progress.good + progress.bad}: ordered in the tables"),
        ("sent", f"{progress.sent}: the broker has the copy, or they were run without one"),
        ("proved", f"{progress.good} good, {progress.bad} failed again"),
    ]
    more = (
        ("parked", progress.parked, "wait behind another message of their key"),
        ("refused", progress.refused, "the broker does not take them; the members say why"),
        ("moved", progress.moved, "were not as previewed when their turn came, and are not redriven here"),
        ("left", progress.left, "were left out or wait for a person; the members say why")
        if not over
        else ("left", progress.left, "are not redriven here: it was aborted, or they say why"),
    )
    pairs += [(name, f"{count}: {what}") for name, count, what in more if count]
    odd = (("bad", progress.bad), ("moved", progress.moved), ("left", progress.left))
    pairs += [("see", f"packhorse redrive members {row.id} --state {name}") for name, count in odd if count]
    return sheet(pairs)


def redrives_table(rows: tuple[RedriveRow, ...]) -> RenderableType:
    """Return redrives for people."""
    return table(
        ("id", "state", "members", "wanted", "previewed", "confirmed by", "why"),
        (
            (row.id, row.state, row.members, _wanted(row), row.previewed_at, row.confirmed_by, row.why)
            for row in rows
        ),
    )


def members_table(rows: tuple[MemberRow, ...]) -> RenderableType:
    """Return members for people."""
    return table(
        ("nr", "id", "group", "topic", "state", "asked", "sent", "outcome", "said"),
        (_member(row) for row in rows),
    )


def _member(row: MemberRow) -> tuple[object, ...]:
    told = row.said or row.refused
    sent = row.sent_at if row.sent and row.sent_at is not None else "yes" if row.sent else None
    return row.ordinal, row.id, row.group, row.topic, row.state, row.asked_at, sent, row.outcome, told


def standing(row: RedriveRow) -> str:
    """Return how a redrive stands, in words."""
    match row.state:
        case RunState.PREVIEWED:
            return "previewed; expired" if row.expired else "previewed; nobody has confirmed it"
        case RunState.RUNNING if row.worked_on:
            return f"running: {row.runner} works on it"
        case RunState.RUNNING:
            return f"running, and nobody works on it: packhorse redrive resume {row.id} goes on, or a running packhorse console"
        case RunState.HALTED | RunState.PAUSED | RunState.ABORTED:
            return f"{row.state}: {row.said}"
        case _:
            return "ended: all members are dealt with"


def frozen_json(frozen: Frozen) -> dict[str, Any]:
    """Return a preview for programs."""
    return redrive_json(frozen.redrive) | {"waiting": frozen.waiting, "samples": list(frozen.samples)}


def redrive_json(row: RedriveRow, progress: Progress | None = None) -> dict[str, Any]:
    """Return one redrive for programs."""
    found = {**asdict(row), "checks": [asdict(one) for one in row.checks], "standing": standing(row)}
    return found if progress is None else found | {"progress": asdict(progress)}


def _check(code: str, count: int | None, text: str) -> str:
    return f"{code}: {text}" if count is None else f"{code}: {count} {text}"


def _wanted(row: RedriveRow) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.wanted.items()) or "everything"


def _stages(row: RedriveRow) -> str:
    return ", ".join(map(str, row.stages)) + ", then five times as many each time"


def _halts(row: RedriveRow) -> str:
    """Return what is borne, in the numbers of this set: a tenth is of a stage's full size, also where fewer are left for it."""
    if row.most_failures is not None:
        return f"by itself when more than {row.most_failures} of one stage fail again"
    plan = Plan(rate=row.rate, stages=row.stages)
    borne, begun, stage = [], 0, 0
    while begun < row.members and stage < len(row.stages):
        size = plan.size(stage)
        takes = min(size, row.members - begun)
        borne.append(f"{plan.borne(stage) or 'none'} of the {takes} in stage {stage + 1}")
        begun, stage = begun + size, stage + 1
    more = ", then a tenth of each stage" if begun < row.members else ""
    again = "" if row.stage < 1 else "; after a halt it begins small again"
    return f"by itself when more fail again than are borne: {', '.join(borne)}{more}{again}"
