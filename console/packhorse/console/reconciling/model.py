"""What reconciliation looks at and what it finds, by name. Pure: no I/O, no clock."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from packhorse.core.jobs import JobState
from packhorse.core.text import counted

SHOWN = 20
"""Ids that a finding names."""
MOST = 10_000
"""Ids that a finding keeps, to be mended; more are counted alone, and found by the next look."""
PATIENCE = 60.0
"""Seconds for what takes a moment: to be published, taken over, sent when due."""
OPEN = (JobState.ACCEPTED, JobState.RUNNING, JobState.RETRYING)
"""States of jobs that go on by themselves."""
LOOKED = (*OPEN, JobState.QUARANTINED, JobState.UNCERTAIN, JobState.DISCARDED)
"""States of jobs that are looked at one by one."""
Portion = tuple[int, list[UUID]]
"""How many rows were looked at, and the jobs among them that do not add up."""


class Name(StrEnum):
    """Names of findings; stable, for programs."""

    NO_FACT = "succeeded-without-fact"
    DONE_OPEN = "message-over-job-not"
    NO_LEASE = "running-without-lease"
    UNANSWERED = "effect-without-answer"
    UNPUBLISHED = "not-published"
    OVERDUE = "due-not-sent"
    LOST = "message-lost"
    BEHIND = "behind-its-message"
    NO_MESSAGE = "waits-without-message"
    ORPHANS = "without-a-job"
    STALE = "stale-name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a finding means, and what mending it does; None: it is a person's."""

    means: str
    mends: str | None = None


MEANINGS: Mapping[Name, Meaning] = {
    Name.NO_FACT: Meaning(
        means="the job succeeded, and the inbox does not say that its message is done. No copy runs it again, for the job has ended; "
        "somebody deleted rows of the inbox, or the two were restored from different times"
    ),
    Name.DONE_OPEN: Meaning(
        means="the inbox says that the job's message is over, and the job waits or runs: nothing will run it. Both are written in one "
        "transaction, so somebody changed rows by hand, or they were restored from different times: packhorse job cancel ID, and submit the "
        "work anew if it was not done"
    ),
    Name.NO_LEASE: Meaning(
        means="its worker's lease ran out more than a minute ago and nobody took it over: that takes a living process of the group that "
        "has the partition of its message"
    ),
    Name.UNANSWERED: Meaning(
        means="an outside effect was begun, has no answer, and its job does not run. The job's next run asks the other side; where the "
        "job rests or has ended, a person says what happened: packhorse job resolve ID --happened | --did-not-happen"
    ),
    Name.UNPUBLISHED: Meaning(
        means="the job's message is in the outbox and no relay has published it: see packhorse relay status and "
        "docs/runbooks/relay-does-not-move.md"
    ),
    Name.OVERDUE: Meaning(
        means="its time has come and no processor of its topic has sent its message: start one that handles the type"
    ),
    Name.LOST: Meaning(
        means="the job was accepted, and neither outbox nor inbox know its message, or a person gave it up at the relay. If it is older than the outbox keeps its rows, "
        "the message may lie unread on its topic: see packhorse processor status. Else it is lost: packhorse job cancel ID, and submit the "
        "work anew"
    ),
    Name.BEHIND: Meaning(
        means="the job's state is not what its message's place in quarantine says: a trigger was off when that changed",
        mends="moves the job to where its message is",
    ),
    Name.NO_MESSAGE: Meaning(
        means="the job waits for a person, and its message is not in quarantine: nothing can be redriven. Submit the work anew"
    ),
    Name.ORPHANS: Meaning(
        means="rows that belong to a job that is not there: somebody deleted it by hand, or a part of a dump was restored",
        mends="deletes them",
    ),
    Name.STALE: Meaning(
        means="a name of which one job at most waits or runs is held by a job that does neither: others with that name don't begin",
        mends="frees it",
    ),
}


@dataclass(slots=True, kw_only=True)
class Finding:
    """
    Something that does not add up.

    Attributes:
        count: How many there are.
        ids: The jobs, MOST at most; `SHOWN` of them are named.
        notes: What else is to be said, a sentence each.
        mended: How many of them were put right.
    """

    name: Name
    count: int = 0
    ids: list[UUID] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    mended: int = 0

    @property
    def meaning(self) -> Meaning:
        """Return what it means."""
        return MEANINGS[self.name]

    @property
    def left(self) -> int:
        """Return how many there still are."""
        return max(self.count - self.mended, 0)

    def add(self, ids: Iterable[UUID], count: int | None = None) -> None:
        """Add jobs; *count* of them where they are not all given."""
        found = list(ids)
        self.count += len(found) if count is None else count
        self.ids += found[: MOST - len(self.ids)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJob:
    """
    One job that has not succeeded, and what other tables say of it.

    Attributes:
        lease_over: Seconds since its lease ran out; negative while it stands, None without one.
        outcome: Its inbox row's; None without one.
        rests: The state of its message in quarantine; None without one.
        overdue: Seconds since it was due, where it waits for that; negative before.
        outbox: Where its message is, as far as that had to be asked: published, unpublished, or gone.
        written: Seconds since the outbox has it, as far as that had to be asked.
    """

    id: UUID
    type: str
    state: JobState
    group: str | None
    topic: str
    lease_over: float | None
    outcome: str | None
    rests: str | None
    overdue: float | None
    outbox: str | None
    written: float | None


def judge(job: OpenJob, *, unpublished_after: float) -> Name | None:
    """Return what is wrong with *job*; None when nothing is."""
    if job.state not in OPEN:
        return _judge_resting(job)
    if job.rests == "quarantined":
        return Name.BEHIND
    if job.outcome in {"done", "skipped", "discarded"}:
        return Name.DONE_OPEN
    if job.state is JobState.RUNNING:
        return Name.NO_LEASE if job.lease_over is not None and job.lease_over > PATIENCE else None
    if job.overdue is not None:
        return Name.OVERDUE if job.overdue > PATIENCE else None
    if job.outbox == "gone":
        return Name.LOST
    waits = job.outbox == "unpublished" and (job.written or 0.0) > unpublished_after
    return Name.UNPUBLISHED if waits else None


def _judge_resting(job: OpenJob) -> Name | None:
    if job.state is JobState.DISCARDED:
        return Name.BEHIND if job.rests == "quarantined" else None
    if job.rests is None:
        return Name.NO_MESSAGE
    return Name.BEHIND if job.rests != "quarantined" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """Who of a group lives: processes seen lately, and how many of them have a partition of each topic."""

    alive: int
    readers: Mapping[str, int]


def waits_for(group: str | None, topic: str, groups: Mapping[str, GroupState]) -> str:
    """Return what a job waits for that nobody has taken over, as far as the tables know."""
    found = None if group is None else groups.get(group)
    if found is None or not found.alive:
        return f"no process of group {group} lives"
    if not found.readers.get(topic):
        return f"{counted(found.alive, 'process', 'processes')} of group {group} live, and none has a partition of {topic}"
    return (
        f"{counted(found.alive, 'process', 'processes')} of group {group} live, and "
        f"{found.readers[topic]} have partitions of {topic}: is its partition paused, or behind? packhorse processor status --group {group}"
    )


@dataclass(slots=True, kw_only=True)
class Report:
    """What was found, in the order of the names, and how much was looked at."""

    findings: dict[Name, Finding] = field(default_factory=dict)
    looked: int = 0

    def of(self, name: Name) -> Finding:
        """Return the finding of a name, made where there is none yet."""
        return self.findings.setdefault(name, Finding(name=name))

    def found(self) -> Iterator[Finding]:
        """Yield what there is, in the order of the names."""
        yield from (self.findings[name] for name in Name if name in self.findings)

    @property
    def is_well(self) -> bool:
        """Return whether nothing is left to be seen to."""
        return not any(finding.left for finding in self.findings.values())
