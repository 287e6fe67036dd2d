"""Lists and counts of jobs, and acts on one, in the tables."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Acting, Database, Rows
from packhorse.console.jobs import sql
from packhorse.console.jobs.deciding import (
    Cancelling,
    Resolution,
    Verdict,
    check_cancellable,
    check_cancelled_as_seen,
    check_lost,
    check_resolvable,
    chosen_effect,
    no_job,
)
from packhorse.console.jobs.model import Counts, Filter, Kept, Page, Position, counts_of, page_of
from packhorse.console.paging import LOOK
from packhorse.console.quarantine.postgres import order_redrive
from packhorse.console.quarantine.redrive import Order
from packhorse.console.truth.jobs import Effect, Job
from packhorse.console.truth.postgres_jobs import job_of
from packhorse.core.errors import SchemaNotRegistered, UnknownId, UsageError
from packhorse.core.jobs import JobState
from packhorse.core.rights import Right
from packhorse.producer.jobs.messages import JobReference
from packhorse.producer.jobs.rows import REFERENCE
from packhorse.schemas.codec import encode_message

MOST_COUNTED = 100_000
"""Jobs of one state and type that are counted one by one."""
NAMED = 20


class JobTables:
    """
    The jobs of one database.

    Raises, each of its methods:
        Forbidden, NotSignedIn: The person may not look or act.
        DatabaseUnavailable, NotReady: Nothing was done.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self, person: Person, wanted: Filter, *, after: Position | None, limit: int, look: int = LOOK
    ) -> Page:
        """Return at most *limit* jobs, the newest first, behind *after*, out of the next *look*."""
        values = _values(wanted, after, limit, look)
        page, far = (sql.PAGE_OPEN, sql.FAR_OPEN) if wanted.indexed else (sql.PAGE, sql.FAR)
        with self._database.reading(person) as rows:
            found = [job_of(row) for row in rows.all(page, values)]
            place = None if len(found) > limit else rows.first(far, values)
        return page_of(found, limit=limit, far=None if place is None else place["id"])

    def counts(self, person: Person) -> Counts:
        """Return how many jobs there are by state and type, at a cost that millions of finished ones do not raise."""
        with self._database.reading(person) as rows:
            pairs = rows.all(sql.COUNTS, {"most": MOST_COUNTED})
            done = rows.all(sql.SUCCEEDED, {"look": LOOK})[0]
        return counts_of(
            [(row["state"], row["type"], row["jobs"]) for row in pairs],
            most=MOST_COUNTED,
            look=LOOK,
            **done,
        )

    def input(self, person: Person, job_id: UUID) -> bytes | None:
        """Return the input of the job as it was given; None where there is none, or it was erased."""
        with self._database.reading(person) as rows:
            row = rows.first(sql.INPUT, {"id": job_id})
        return None if row is None else row["input"]

    def unmask(self, person: Person, job: Job, *, why: str) -> Kept:
        """
        Return what an application put into *job*, on record in the same transaction.

        Raises:
            Forbidden: The person may not see personal fields; nothing was read.
        """
        with self._database.acting(person, Right.PERSONAL, doing="see personal fields") as act:
            row = act.first(sql.KEPT, {"id": job.id})
            _record(act, "unmask", job, why, {"job": True})
        return Kept() if row is None else Kept(**row)

    def cancel(self, person: Person, job_id: UUID, *, why: str, seen: JobState | None = None) -> Cancelling:
        """
        Take the job back or ask its worker to stop, and record the act, in one transaction.

        The job's row is locked first, so that it does not begin or end meanwhile; of one that waits, the database lets the name go
        and the outbox row that was to be written when its time came.

        Raises:
            UnknownId: There is no such job.
            UsageError, OwnershipLost: As `check_cancellable` and `check_cancelled_as_seen`.
        """
        with self._database.acting(person, Right.ACT, doing="cancel jobs") as act:
            job, values = _locked(act, job_id), {"id": job_id, "actor": act.actor, "why": why}
            check_cancellable(job)
            check_cancelled_as_seen(job, seen)
            by, at = job.cancel_asked_by, job.cancel_asked_at
            if job.state is JobState.RUNNING and by is not None and at is not None:
                act.left_alone()
                return Cancelling(id=job_id, state=job.state, at=at, by=by, is_new=False)
            act.all(sql.CANCEL, values)
            stands = act.all(sql.STATE, values)[0]
            _record(act, "job-cancel", job, why, {"was": job.state.value})
        return Cancelling(id=job_id, state=JobState(stands["state"]), at=stands["at"], by=act.actor)

    def send(self, person: Person, job_id: UUID, *, namespace: str, why: str) -> datetime:
        """
        Write the message of an accepted job anew and record the act, in one transaction; return when.

        It has the id that it had, so whichever copy comes second is a duplicate.

        Raises:
            UnknownId: There is no such job.
            SchemaNotRegistered: The schema of job references is not in the table.
            UsageError: Its message is not lost; its topic is none of *namespace*.
        """
        with self._database.acting(person, Right.ACT, doing="send the messages of jobs anew") as act:
            job = _locked(act, job_id)
            known = act.first(sql.REFERENCE_ID, {"subject": REFERENCE.subject, "version": REFERENCE.version})
            if known is None:
                raise SchemaNotRegistered(
                    f"schema {REFERENCE.subject} version {REFERENCE.version} is not registered in this database; run "
                    "`packhorse schemas register`"
                )
            reference = JobReference(id=str(job.id), type=job.type, version=job.version)
            values = {
                "id": job.id,
                "aggregate": _aggregate(job, namespace),
                "reference": encode_message(reference, known["id"]),
            }
            row = act.all(sql.SEND, values)[0]
            check_lost(job, lost=row["sent"])
            _record(act, "job-send", job, why, {})
            at: datetime = row["at"]
        return at

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
        """
        Write down what the person knows of an effect in doubt; if it was the last of an uncertain job, order the redrive of its
        message along with that. All of it is one commit.

        The locks come in the order in which acts on messages take them: inbox, quarantined message, job, effects. A processor that
        records how a run ended has the job first: where the two meet in a ring, the database ends one of them, and nothing of it
        was done.

        Raises:
            UnknownId: There is no such job or effect.
            UsageError, OwnershipLost: As `chosen_effect`, `check_resolvable` and `order_redrive`.
        """
        with self._database.acting(person, Right.ACT, doing="resolve effects of jobs") as act:
            values = {"id": job_id, "key": key, "actor": act.actor, "why": why, "verdict": verdict.value}
            act.all(sql.LOCK_INBOX, values)
            job = _locked(act, job_id)
            effect = _chosen(act, job, values)
            now = act.all(sql.CLOCK)[0]["now"]
            check_resolvable(job, effect, verdict, calls=calls, now=now)
            given = {"key": effect.key, "answer": None if answer is None else Jsonb(answer)}
            at = act.all(sql.RESOLVE, values | given)[0]["at"]
            detail = {"effect": effect.key, "verdict": verdict.value, "answer": answer is not None}
            _record(act, "job-resolve", job, why, detail)
            left = tuple(each.key for each in _doubt(act, job_id))
            resting = None if left else act.first(sql.RESTING, values)
            if resting is not None:
                order_redrive(act, Order(**resting), why=why)
            state = act.all(sql.STATE, values)[0]["state"]
        return Resolution(
            id=job_id,
            effect=effect.key,
            verdict=verdict,
            at=at,
            by=act.actor,
            left=left[:NAMED],
            redriven=resting is not None,
            state=JobState(state),
        )


def _aggregate(job: Job, namespace: str) -> str:
    if not job.topic.startswith(f"{namespace}."):
        raise UsageError(
            f"the topic of job {job.id}, {job.topic}, is none of the namespace {namespace}: PACKHORSE_NAMESPACE is another one"
        )
    return job.topic.removeprefix(f"{namespace}.")


def _locked(act: Acting, job_id: UUID) -> Job:
    row = act.first(sql.LOCK_JOB, {"id": job_id})
    if row is None:
        raise UnknownId(no_job(job_id))
    return job_of(row)


def _chosen(act: Acting, job: Job, values: Mapping[str, Any]) -> Effect:
    if values["key"] is None:
        return chosen_effect(job.id, _doubt(act, job.id), None, None)
    row = act.first(sql.LOCK_EFFECT, values)
    return chosen_effect(job.id, (), None if row is None else Effect(**row), values["key"])


def _doubt(rows: Rows, job_id: UUID) -> list[Effect]:
    return [Effect(**row) for row in rows.all(sql.IN_DOUBT, {"id": job_id})]


def _record(act: Acting, name: str, job: Job, why: str, detail: dict[str, Any]) -> None:
    act.record(name, why=why, group=job.group, topic=job.topic, message_id=job.id, detail=detail)


def _values(wanted: Filter, after: Position | None, limit: int, look: int) -> dict[str, Any]:
    low, high = wanted.ids
    states = wanted.indexed or tuple(sorted(wanted.states))
    return {
        "states": list(states) or None,
        "type": wanted.type,
        "tenant": wanted.tenant,
        "topic": wanted.topic,
        "since": wanted.since,
        "until": wanted.until,
        "text": wanted.text,
        "stuck": None if wanted.stuck is None else wanted.stuck.total_seconds(),
        "after": after and after.id,
        "low": low,
        "high": high,
        "limit": limit + 1,
        "look": look,
    }
