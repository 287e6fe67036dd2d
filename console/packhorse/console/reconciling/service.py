"""Find what does not add up about jobs; put right what is safe to put right, on the record."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.reconciling.model import (
    LOOKED,
    GroupState,
    Name,
    OpenJob,
    Portion,
    Report,
    judge,
    waits_for,
)
from packhorse.core.acts import checked_why
from packhorse.core.jobs import JobState
from packhorse.core.text import counted

BATCH = 1_000
"""Jobs that one transaction puts right."""
UNPUBLISHED_AFTER = 300.0
"""Seconds after which a message that no relay has published is named."""


class ReconcilingSource(Protocol):
    """Look and act in one database; promises and raises what `ReconcilingTables` does."""

    def open_jobs(self, person: Person, state: JobState) -> Iterator[list[OpenJob]]:
        """Yield the jobs in *state*, portion by portion."""

    def succeeded(self, person: Person) -> Iterator[Portion]:
        """Yield the jobs that succeeded without the fact that their message is done."""

    def orphans(self, person: Person) -> Iterator[Portion]:
        """Yield the jobs that are not there and have rows in other tables; a job may be named for each of them."""

    def unanswered(self, person: Person) -> list[tuple[UUID, str]]:
        """Return the jobs that have an outside effect without answer and do not run, with their states."""

    def stale(self, person: Person) -> list[UUID]:
        """Return the jobs that hold a name and do not wait or run."""

    def groups(self, person: Person) -> dict[str, GroupState]:
        """Return who lives of each group."""

    def mend(self, person: Person, name: Name, ids: Sequence[UUID], *, why: str) -> int:
        """Put right what is still so of *ids*, on the record; return how many were."""


class Reconciling:
    """The reconciliation of one database, for one person."""

    def __init__(self, tables: ReconcilingSource, person: Person) -> None:
        self._tables = tables
        self._person = person

    def look(self, *, unpublished_after: float = UNPUBLISHED_AFTER) -> Report:
        """
        Look at all jobs and all that belongs to them, in portions that hold nobody up; changes nothing.

        What a transaction of a moment ago writes may be seen by one portion and not by the one before; each kind of finding is judged within one.

        Raises:
            Forbidden: The person may not look.
            DatabaseUnavailable, NotReady: The database does not answer; a table or right is missing.
        """
        report = Report()
        self._open(report, unpublished_after)
        for name, walk in (
            (Name.NO_FACT, self._tables.succeeded(self._person)),
            (Name.ORPHANS, self._tables.orphans(self._person)),
        ):
            for seen, ids in walk:
                report.looked += seen
                if ids:
                    report.of(name).add(ids)
        missed: set[UUID] = set()
        if orphans := report.findings.get(Name.ORPHANS):  # a job may be missed by several tables
            missed = set(orphans.ids)
            orphans.ids, orphans.count = sorted(missed), len(missed)
        if waiting := self._tables.unanswered(self._person):
            finding = report.of(Name.UNANSWERED)
            finding.add(each for each, _ in waiting)
            states = Counter(state for _, state in waiting)
            finding.notes += [f"{count} of jobs that are {state}" for state, count in sorted(states.items())]
        if stale := [one for one in self._tables.stale(self._person) if one not in missed]:
            report.of(Name.STALE).add(stale)
        return report

    def repair(self, report: Report, *, why: str) -> None:
        """
        Put right what *report* found and is safe to put right, in transactions of at most BATCH jobs, each with its row in the audit.

        Each is looked at once more in its transaction: what has changed since is left as it is.

        Raises:
            UsageError: *why* is empty.
            Forbidden: The person may not administer.
        """
        reason = checked_why(why)
        for finding in report.found():
            if finding.meaning.mends is None:
                continue
            for first in range(0, len(finding.ids), BATCH):
                some = finding.ids[first : first + BATCH]
                finding.mended += self._tables.mend(self._person, finding.name, some, why=reason)

    def _open(self, report: Report, unpublished_after: float) -> None:
        left: Counter[tuple[str | None, str]] = Counter()
        for state in LOOKED:
            for jobs in self._tables.open_jobs(self._person, state):
                report.looked += len(jobs)
                for job in jobs:
                    if (name := judge(job, unpublished_after=unpublished_after)) is None:
                        continue
                    report.of(name).add([job.id])
                    if name is Name.NO_LEASE:
                        left[job.group, job.topic] += 1
        if left:
            groups = self._tables.groups(self._person)
            report.of(Name.NO_LEASE).notes += [
                f"{counted(count, 'job')}: {waits_for(group, topic, groups)}"
                for (group, topic), count in left.most_common(5)
            ]
