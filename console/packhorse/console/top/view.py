"""What a look means: lags, ages, and what is wrong. Pure: no I/O, no clock."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from packhorse.console.doctor.findings import span
from packhorse.console.doctor.judge_processors import ALIVE
from packhorse.console.top.facts import (
    Ends,
    Failing,
    Jobs,
    Look,
    Paused,
    Process,
    Rates,
    Run,
    Shard,
    Size,
    Waiting,
)
from packhorse.console.top.places import PlaceView, places_of
from packhorse.core.text import counted

LATE = timedelta(minutes=1)
"""What waits longer than that without a reason is worth a colour."""
SHOWN = 3
"""Failing types, and partitions with lag, that are named of one group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A partition with lag, and for how long its watermark has not moved."""

    topic: str
    partition: int
    lag: int
    still: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """
    One group.

    Attributes:
        lag: Offsets between its watermarks and the ends of its source topics; None: not known, `lag_said` says why.
        done: Messages a second; None without an earlier look.
        still: How long the watermark of a partition with lag has not moved, of the one that stands longest.
        behind: The partitions with most lag.
        overdue: How long the first retry that is due waits; None: none is due.
        quarantined: Messages in quarantine, exact.
        alive, dead: Processes seen lately, and those that were and are not.
        versions: Of the living.
    """

    group: str
    partitions: int
    lag: int | None
    lag_said: str | None
    done: float | None
    still: timedelta | None
    behind: tuple[Behind, ...]
    overdue: timedelta | None
    waiting: Waiting
    quarantined: int
    failing: tuple[Failing, ...]
    alive: int
    dead: int
    versions: tuple[str, ...]
    stalls: tuple[str, ...]
    stopped: tuple[str, ...]
    unwell: tuple[str, ...]

    @property
    def waits(self) -> bool:
        """Return whether messages wait for a process of it."""
        return bool(self.waiting.retries or self.waiting.followers or self.lag)

    @property
    def is_left(self) -> bool:
        """Return whether no process is alive, though one was or is needed."""
        return not self.alive and (self.dead > 0 or self.waits)


class About(StrEnum):
    """What something that is wrong is about."""

    RELAY = "relay"
    GROUP = "group"
    JOBS = "jobs"
    REDRIVE = "redrive"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """
    One thing that a person should look at.

    Attributes:
        name: Of the group, the number of the run, or of jobs which of them; empty for the relay.
    """

    about: About
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """
    Everything for one screen.

    Attributes:
        relays: Relay processes that live.
        jobs: Those that are not over, by state; empty: there is none.
        wrong: What a person should look at, the worst first; empty: all is well.
        troubles: The same, with what each is about.
        ends_said: Why lags are not known.
        places: By group, each partition that it reads.
    """

    at: datetime
    written: float | None
    published: float | None
    oldest: timedelta | None
    relays: int
    shards: tuple[Shard, ...]
    groups: tuple[GroupView, ...]
    paused: tuple[Paused, ...]
    runs: tuple[Run, ...]
    jobs: tuple[Jobs, ...]
    sizes: tuple[Size, ...]
    wrong: tuple[str, ...]
    troubles: tuple[Trouble, ...]
    ends_said: str | None
    took: tuple[str, float]
    places: Mapping[str, tuple[PlaceView, ...]]


def view_of(look: Look, found: Rates, ends: Ends) -> View:
    """Return what *look* means, with the rates since the look before and the ends of the topics."""
    groups = tuple(_group(look, found, ends, name) for name in look.groups)
    troubles = (
        *_wrong_relay(look),
        *(trouble for group in groups for trouble in _wrong_group(group)),
        *_wrong_jobs(look),
        *_wrong_runs(look),
    )
    oldest = max((shard.oldest for shard in look.shards if shard.oldest is not None), default=None)
    return View(
        at=look.at,
        written=found.written,
        published=found.published,
        oldest=oldest,
        relays=look.relays,
        shards=look.shards,
        groups=groups,
        paused=look.paused,
        runs=look.runs,
        jobs=tuple(each for each in look.jobs if each.jobs),
        sizes=look.sizes,
        wrong=tuple(each.text for each in troubles),
        troubles=troubles,
        ends_said=ends.said,
        took=look.took,
        places=places_of(look, ends),
    )


def _group(look: Look, found: Rates, ends: Ends, name: str) -> GroupView:
    marks = [mark for mark in look.marks if mark.group == name]
    waiting = next((each for each in look.waiting if each.group == name), Waiting(group=name))
    failing = sorted((each for each in look.failing if each.group == name), key=lambda each: -each.messages)
    processes = [each for each in look.processes if each.group == name]
    living = [each for each in processes if look.at - each.seen_at <= ALIVE]
    lags = {
        (mark.topic, mark.partition): max(0, ends.of[mark.topic, mark.partition] - mark.offset)
        for mark in marks
        if (mark.topic, mark.partition) in ends.of
    }
    behind = [
        Behind(topic=mark.topic, partition=mark.partition, lag=lag, still=look.at - mark.moved_at)
        for mark in marks
        if (lag := lags.get((mark.topic, mark.partition), 0))
    ]
    known = bool(marks) and len(lags) == len(marks)
    return GroupView(
        group=name,
        partitions=len(marks),
        lag=sum(lags.values()) if known else None,
        lag_said=None
        if known
        else ("reads nothing yet" if not marks else ends.said or "not known of all partitions"),
        done=None if found.done is None else found.done.get(name, 0.0 if marks else None),
        still=max((each.still for each in behind), default=None),
        behind=tuple(sorted(behind, key=lambda each: -each.lag)[:SHOWN]),
        overdue=None if waiting.due_at is None or waiting.due_at > look.at else look.at - waiting.due_at,
        waiting=waiting,
        quarantined=sum(each.messages for each in failing),
        failing=tuple(failing[:SHOWN]),
        alive=len(living),
        dead=len(processes) - len(living),
        versions=tuple(sorted({each.version or "unknown" for each in living})),
        stalls=_all(living, "stalls"),
        stopped=_all(living, "stopped"),
        unwell=_all(living, "wrong"),
    )


def _all(processes: list[Process], name: str) -> tuple[str, ...]:
    return tuple(sorted({text for each in processes for text in getattr(each, name)}))


def _wrong_relay(look: Look) -> Iterator[Trouble]:
    for text in _said_of_relay(look):
        yield Trouble(about=About.RELAY, name="", text=text)


def _said_of_relay(look: Look) -> Iterator[str]:
    for shard in look.shards:
        name = "relay" if len(look.shards) == 1 else f"relay of shard {shard.shard}"
        if shard.trouble is not None:
            yield f"{name}: {shard.trouble}"
        elif shard.owner is None and shard.oldest is not None:
            yield f"{name}: nobody owns it, and rows wait for {span(shard.oldest)}"
        elif shard.oldest is not None and shard.oldest > LATE:
            yield f"{name}: the oldest row waits for {span(shard.oldest)}"
        if shard.people:
            yield f"{name}: {shard.people} holds wait for a person (packhorse relay holds)"


def _wrong_group(group: GroupView) -> Iterator[Trouble]:
    for text in _said_of_group(group):
        yield Trouble(about=About.GROUP, name=group.group, text=text)


def _said_of_group(group: GroupView) -> Iterator[str]:
    name = f"group {group.group}"
    if group.is_left:
        yield f"{name}: no process is alive" + (", and messages wait" if group.waits else "")
    for text in group.unwell:
        yield f"{name}: {text}"
    for text in group.stalls:
        yield f"{name}: does not move: {text}"
    for text in group.stopped:
        yield f"{name}: stopped: {text}"
    if group.alive and group.overdue is not None and group.overdue > LATE:
        yield f"{name}: a retry is overdue by {span(group.overdue)}"
    if group.alive and not group.stalls and group.still is not None and group.still > LATE:
        yield f"{name}: a partition with lag has not moved for {span(group.still)}"


def _wrong_jobs(look: Look) -> Iterator[Trouble]:
    for each in look.jobs:
        if each.state == "uncertain" and each.jobs:
            text = (
                f"{counted(each.jobs, 'job is', 'jobs are')} uncertain: a person must say what happened (packhorse job list "
                "--state uncertain)"
            )
            yield Trouble(about=About.JOBS, name="uncertain", text=text)
        if each.left:
            text = f"{counted(each.left, 'job runs', 'jobs run')} with the lease over: nobody works on it (packhorse job list --stuck)"
            yield Trouble(about=About.JOBS, name="stuck", text=text)


def _wrong_runs(look: Look) -> Iterator[Trouble]:
    for run in look.runs:
        about = About(run.kind)
        if run.is_left:
            text = (
                f"{run.kind} {run.id} is running and nobody works on it: packhorse {run.kind} resume {run.id}"
            )
            yield Trouble(about=about, name=str(run.id), text=text)
        elif run.state == "halted":
            text = f"{run.kind} {run.id} is halted: {run.said or 'failures came back'}"
            yield Trouble(about=about, name=str(run.id), text=text)
