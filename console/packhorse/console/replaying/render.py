"""Plans and replays for people and programs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from packhorse.console.output import at, said, sheet, table
from packhorse.console.replaying.checks import Check
from packhorse.console.replaying.ranges import Range
from packhorse.console.replaying.records import Standing
from packhorse.console.replaying.run import Part, Progress, Run
from packhorse.console.replaying.service import Plan
from packhorse.console.replaying.wanted import Wanted
from packhorse.core.text import counted

_STANDINGS = {
    Standing.NEVER: "never done",
    Standing.DONE: "done before",
    Standing.DISCARDED: "discarded by a person",
    Standing.EDITED: "given up for an edited copy",
    Standing.PURGED: "purged",
    Standing.OPEN: "wait in retry, quarantine or behind their key",
    Standing.REUSED: "have an id of another message",
    Standing.OLDER: "older than the inbox keeps",
}


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return *plan* as JSON-able data; keys are shown as far as the person gave them."""
    return {
        "replay": plan.run,
        "group": plan.wanted.group,
        "topic": plan.wanted.topic,
        "topic_id": plan.topic_id,
        "wanted": plan.wanted.as_json(),
        "ranges": [_range_json(one) for one in plan.ranges],
        "counts": plan.tally.as_json(),
        "checks": [asdict(check) for check in plan.checks],
        "seconds": round(plan.seconds, 3),
    }


def plan_sheet(plan: Plan) -> RenderableType:
    """Return *plan* in words."""
    tally, wanted = plan.tally, plan.wanted
    pairs: list[tuple[str, object]] = [
        ("replay", plan.run if plan.run is not None else "dry run: nothing is kept"),
        ("group", wanted.group),
        ("topic", wanted.topic),
        *_wanted_pairs(wanted),
        *((f"range [{one.partition}]", _range_line(one)) for one in plan.ranges),
        ("read", tally.read),
        ("wanted", f"{tally.matched} of {counted(len(tally.keys), 'key')}" if tally.keys else tally.matched),
        *((f"  {name}", n) for name, n in tally.types.most_common(20)),
        *((_STANDINGS[one], n) for one, n in tally.standings.most_common()),
    ]
    if tally.tombstones:
        pairs.append(("tombstones", tally.tombstones))
    pairs += [(f"undecodable: {reason}", n) for reason, n in tally.faults.most_common()]
    if plan.run is None:
        rate = tally.read / plan.seconds if plan.seconds else 0.0
        pairs.append(("took", f"{plan.seconds:.1f} s, {rate:,.0f} records/s"))
    else:
        pairs.append(
            ("would be handed over", f"{tally.handed}, in {_duration(plan.seconds)} at {wanted.rate:g}/s")
        )
    return Group(sheet(pairs), *_check_lines(plan.checks))


def run_json(run: Run) -> dict[str, Any]:
    """Return *run* as JSON-able data."""
    progress = run.progress
    return {
        "replay": run.id,
        "state": run.state,
        "expired": run.expired,
        "said": run.said,
        "group": run.wanted.group,
        "topic": run.wanted.topic,
        "topic_id": run.topic_id,
        "wanted": run.wanted.as_json(),
        "counts": dict(run.counts),
        "checks": [asdict(check) for check in run.checks],
        "planned_by": run.planned_by,
        "planned_at": run.planned_at,
        "expires_at": run.expires_at,
        "confirmed_by": run.confirmed_by,
        "confirmed_at": run.confirmed_at,
        "why": run.why,
        "runner": run.runner,
        "alive": run.alive,
        "ended_at": run.ended_at,
        "progress": {**asdict(progress), "unproved": progress.unproved},
        "held_keys": run.held_keys,
        "live_messages_waiting": run.waiting_behind,
        "partitions": [_part_json(part) for part in run.parts],
    }


def run_sheet(run: Run) -> RenderableType:
    """Return *run* in words."""
    now = run.progress
    state = "planned, expired" if run.expired else run.state
    if run.state == "running":
        state += (
            ", a runner works on it" if run.alive else ", and no runner works on it: packhorse replay resume"
        )
    pairs: list[tuple[str, object]] = [
        ("replay", run.id),
        ("state", state),
        ("group", run.wanted.group),
        ("topic", run.wanted.topic),
        *_wanted_pairs(run.wanted),
        ("planned", f"{at(run.planned_at)} by {run.planned_by}"),
    ]
    if run.said:
        pairs.insert(2, ("said", run.said))
    if run.confirmed_at is not None:
        pairs += [("confirmed", f"{at(run.confirmed_at)} by {run.confirmed_by}"), ("why", run.why)]
    if run.runner:
        pairs.append(("runner", run.runner))
    if run.ended_at is not None:
        pairs.append(("ended", at(run.ended_at)))
    pairs += _progress_pairs(now)
    if run.held_keys:
        pairs.append(
            (
                "holds",
                f"{counted(run.held_keys, 'key')}; {counted(run.waiting_behind, 'live message')} of that wait for it",
            )
        )
    parts = table(
        ("partition", "from", "at", "to before", "gone", "wanted"),
        ((p.partition, p.first, p.position, p.past, p.gone, p.matches) for p in run.parts),
    )
    return Group(sheet(pairs), parts, *_check_lines(run.checks))


def runs_table(runs: Sequence[Run]) -> Table:
    """Return *runs* as a table."""
    rows = []
    for run in runs:
        now = run.progress
        rows.append(
            (
                run.id,
                "expired" if run.expired else run.state,
                run.wanted.group,
                run.wanted.topic,
                now.matches,
                _handed(run),
                now.done + now.skipped + now.discarded,
                now.failed,
                at(run.planned_at),
                run.planned_by,
            )
        )
    heads = (
        "replay",
        "state",
        "group",
        "topic",
        "wanted",
        "handed over",
        "proved",
        "failed",
        "planned",
        "by",
    )
    return table(heads, rows)


def _handed(run: Run) -> str:
    """Return how many were handed over, and before that how many would be."""
    would = run.counts.get("handed")
    return f"would be {would}" if run.state == "planned" and would is not None else str(run.progress.handed)


def _wanted_pairs(wanted: Wanted) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    if wanted.types:
        pairs.append(("types", ", ".join(wanted.types)))
    if wanted.keys:
        pairs.append(("keys", f"{len(wanted.keys)} by name"))
    if wanted.left_out:
        pairs.append(("left out", f"{counted(len(wanted.left_out), 'key')} by name"))
    if wanted.again:
        more = ["also beyond"] * wanted.beyond + ["with what was discarded"] * wanted.with_discarded
        pairs.append(("again", ", ".join(["yes", *more])))
    if wanted.handler is not None:
        pairs.append(("handler", wanted.handler))
    pairs.append(
        (
            "rate",
            f"{wanted.rate:g}/s, halts when more than {counted(wanted.most_failures, 'message fails', 'messages fail')}",
        )
    )
    return pairs


def _progress_pairs(now: Progress) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = [
        ("offsets", f"{now.passed} of {now.offsets}"),
        ("handed over", f"{now.handed} (the filter matches {now.matches})"),
        ("proved", f"{now.done} done, {now.skipped} skipped, {now.discarded} discarded"),
        ("stopped", now.failed),
        (
            "not proved",
            f"{now.unproved}: {now.parked} wait their turn, {now.retry} in retry; {now.resting} rest",
        ),
    ]
    for label, n in (
        ("done before", now.duplicates),
        ("given up by a person", now.given_up),
        ("older than kept", now.older),
        ("waiting elsewhere", now.open),
        ("used ids", now.reused),
        ("keys moved on", now.moved),
    ):
        if n:
            pairs.append((label, f"{n} left out"))
    return pairs


def _check_lines(checks: Sequence[Check]) -> list[RenderableType]:
    return [said(f"! {check.text}") for check in checks]


def _range_line(one: Range) -> str:
    return f"{one.first} to before {one.past}" + (f", {one.gone} gone" if one.gone else "")


def _range_json(one: Range) -> dict[str, Any]:
    return asdict(one)


def _part_json(part: Part) -> dict[str, Any]:
    return {**part._asdict(), "counts": dict(part.counts)}


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5_400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.1f} h"
