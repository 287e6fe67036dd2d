"""Jobs for operators: lists, one job, and acts on one, whatever face asks."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.jobs.deciding import (
    Cancelling,
    Resolution,
    Verdict,
    check_redrivable,
    no_job,
    redrive_warnings,
)
from packhorse.console.jobs.model import Counts, Filter, Kept, Page, Position, Shown
from packhorse.console.paging import LOOK, MOST_LOOKED, checked_limit, searched
from packhorse.console.quarantine.redrive import Order, Preview
from packhorse.console.quarantine.service import Payloads, Quarantine
from packhorse.console.truth.explain_job import with_group
from packhorse.console.truth.jobs import Job
from packhorse.console.truth.moments import Local, Viewer
from packhorse.console.truth.service import Truth
from packhorse.core.acts import checked_why
from packhorse.core.errors import SettingsError, UnknownId
from packhorse.core.jobs import JobState
from packhorse.core.moments import zulu
from packhorse.processor.jobs.values import MOST_RESULT, json_of


class JobSource(Protocol):
    """
    Read and act on the jobs of one database; raises what `Database.reading` and `Database.acting` do.

    Returning from an act promises that all its rows are durable; raising promises that none was changed.
    """

    def page(
        self, person: Person, wanted: Filter, *, after: Position | None, limit: int, look: int = LOOK
    ) -> Page:
        """Return at most *limit* jobs, the newest first, behind *after*, out of the next *look*."""

    def counts(self, person: Person) -> Counts:
        """Return how many jobs there are by state and type, at a bounded cost."""

    def input(self, person: Person, job_id: UUID) -> bytes | None:
        """Return the input of the job as it was given; None where there is none (any more)."""

    def unmask(self, person: Person, job: Job, *, why: str) -> Kept:
        """Return all that was put into *job*, on record in the transaction that reads it."""

    def cancel(self, person: Person, job_id: UUID, *, why: str, seen: JobState | None = None) -> Cancelling:
        """Take the job back or ask its worker to stop, and record the act, in one transaction."""

    def send(self, person: Person, job_id: UUID, *, namespace: str, why: str) -> datetime:
        """Write the message of an accepted job anew, and record the act, in one transaction; return when."""

    def resolve(
        self,
        person: Person,
        job_id: UUID,
        verdict: Verdict,
        *,
        key: str | None,
        calls: int | None,
        answer: object,
        why: str,
    ) -> Resolution:
        """Write down what the person knows of an effect in doubt, and let the job go on if it was the last, in one transaction."""


class Jobs:
    """
    The jobs of one database, for one person.

    Args:
        payloads: What decodes an input; None when no registry is set.
        namespace: First part of the topics' names; None when unknown.
    """

    def __init__(
        self,
        tables: JobSource,
        truth: Truth,
        quarantine: Quarantine,
        person: Person,
        *,
        payloads: Payloads | None = None,
        namespace: str | None = None,
    ) -> None:
        self._namespace = namespace
        self._tables = tables
        self._truth = truth
        self._quarantine = quarantine
        self._person = person
        self._payloads = payloads

    def page(self, wanted: Filter, *, after: Position | None, limit: int) -> Page:
        """
        Return one page of jobs, the newest first, from one look at a bounded number of them.

        Raises:
            UsageError: *limit* is not allowed.
        """
        return self._tables.page(self._person, wanted, after=after, limit=checked_limit(limit))

    def search(
        self, wanted: Filter, *, after: Position | None, limit: int, most_looked: int = MOST_LOOKED
    ) -> Iterator[Page]:
        """
        Return the parts of one page as they are found, until it is full, all were looked at, or *most_looked* were.

        Each part's `next` is where whoever stops there can go on. Raises what `page` does.
        """
        return searched(
            lambda behind, left, look: self._tables.page(
                self._person, wanted, after=behind, limit=left, look=look
            ),
            lambda part: len(part.jobs),
            after=after,
            limit=limit,
            most_looked=most_looked,
        )

    def counts(self) -> Counts:
        """Return how many jobs there are by state and type; says which of the numbers are not exact."""
        return self._tables.counts(self._person)

    def show(self, job_id: UUID, *, local: Local, with_input: bool = False) -> Shown:
        """
        Return one job; its input, with personal fields masked, only if *with_input*.

        Raises:
            UnknownId: There is no such job.
        """
        shown = self._shown(job_id, local)
        if not with_input:
            return replace(shown, input_said="not shown; --input decodes it")
        found, said = self._decoded(shown.facts.job, self._tables.input(self._person, job_id), whole=False)
        return replace(shown, input=found, input_said=said)

    def unmask(self, job_id: UUID, *, why: str, local: Local) -> Shown:
        """
        Return one job with input, result, steps and answers as they are; on record before anything of it is decoded.

        Raises:
            Forbidden: The person may not see personal fields; nothing was read.
            UsageError: *why* is empty or too long; and what `show` raises.
        """
        reason = checked_why(why)
        shown = self._shown(job_id, local)
        kept = self._tables.unmask(self._person, shown.facts.job, why=reason)
        found, said = self._decoded(shown.facts.job, kept.input, whole=True)
        return replace(shown, input=found, input_said=said, kept=kept)

    def cancel(self, job_id: UUID, *, why: str, seen: JobState | None = None) -> Cancelling:
        """
        Take the job back, or ask its worker to stop; return which of the two it was.

        *seen* is the state that the person saw it in, who was told which of the two it would be; None: either is meant.

        Raises:
            UnknownId: There is no such job.
            UsageError: *why* is not allowed, or the job rests until a person decides.
            OwnershipLost: It has ended, or does not stand as it was seen; says how, when and by whom.
            Forbidden: The person may not act.
        """
        return self._tables.cancel(self._person, job_id, why=checked_why(why), seen=seen)

    def preview(self, job_id: UUID) -> Preview:
        """
        Return what a redrive of the job's message would do; changes nothing.

        Raises:
            UnknownId: There is no such job.
            UsageError: It goes on by itself, or was discarded.
            OwnershipLost: Somebody has acted already, or it has ended.
        """
        known = self._truth.facts(job_id)
        facts = known.job
        if facts is None:
            raise UnknownId(no_job(job_id))
        check_redrivable(facts.job)
        preview = self._quarantine.preview(job_id, group=facts.job.group, topic=facts.job.topic)
        warnings = redrive_warnings(facts.job, known.around.now)
        return replace(preview, warnings=(*preview.warnings, *warnings))

    def redrive(self, order: Order, *, why: str) -> datetime:
        """Order exactly the redrive that was previewed; return when it was recorded. Raises what `Quarantine.redrive` does."""
        return self._quarantine.redrive(order, why=why)

    def is_lost(self, job_id: UUID) -> bool:
        """Return whether the job is accepted and neither outbox nor inbox know its message; raises UnknownId."""
        facts = self._truth.facts(job_id).job
        if facts is None:
            raise UnknownId(no_job(job_id))
        return facts.message_lost

    def send(self, job_id: UUID, *, why: str) -> datetime:
        """
        Write the message of an accepted job anew where neither outbox nor inbox know it; return when that was recorded.

        Raises:
            UnknownId: There is no such job.
            SettingsError: The namespace is not set.
            UsageError: *why* is not allowed, or the message is not lost.
            Forbidden: The person may not act.
        """
        if self._namespace is None:
            raise SettingsError("PACKHORSE_NAMESPACE is not set: the topic of the job's message is needed")
        return self._tables.send(self._person, job_id, namespace=self._namespace, why=checked_why(why))

    def resolve(
        self,
        job_id: UUID,
        verdict: Verdict,
        *,
        effect: str | None = None,
        calls: int | None = None,
        answer: object = None,
        why: str,
    ) -> Resolution:
        """
        Say whether an effect in doubt has happened; the job goes on by itself when it was the last.

        *effect* is its key; None where one alone is in doubt. *calls* is how often it had been called when the person looked;
        None: whatever it is now. *answer* is what the outside system answered, as the job's code is to see it.

        Raises:
            UnknownId: There is no such job, or no such effect of it.
            UsageError: *why* or *answer* is not allowed, several are in doubt and none was named, or it can't be said now.
            OwnershipLost: It is not in doubt any more, or was called again; says who decided and when.
            Forbidden: The person may not act.
        """
        json_of(answer, what="the answer", most=MOST_RESULT)
        return self._tables.resolve(
            self._person, job_id, verdict, key=effect, calls=calls, answer=answer, why=checked_why(why)
        )

    def _shown(self, job_id: UUID, local: Local) -> Shown:
        status = self._truth.status(job_id, search=False)
        facts, now = status.job, status.around.now
        if facts is None or now is None:
            raise UnknownId(no_job(job_id))
        words = with_group(status, facts, Viewer(now=now, local=local))
        return Shown(status=status, facts=facts, words=words)

    def _decoded(self, job: Job, found: bytes | None, *, whole: bool) -> tuple[object | None, str | None]:
        if found is None:
            erased = "" if job.purged_at is None else f": erased at {zulu(job.purged_at)}"
            return None, f"none{erased}"
        if self._payloads is None:
            return None, "not decoded: PACKHORSE_REGISTRY_URL is not set"
        return self._payloads.whole(found) if whole else self._payloads.masked(found)
