"""The pure middle of submitting jobs: from drafts to statements, and what their answers mean."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any
from uuid import UUID

from packhorse.core.errors import RequestKeyConflict
from packhorse.core.telemetry import Metric
from packhorse.producer.jobs.drafts import JobDraft, JobHandle, M
from packhorse.producer.jobs.rows import REFERENCE, JobRow, check, input_kind, job_row
from packhorse.producer.jobs.sql import PLAIN, JobQueries
from packhorse.producer.schema_ids import check_ready
from packhorse.producer.statements import MOST_BYTES, MOST_ROWS, Bytes, Statement, Steps, Texts, Uuids
from packhorse.producer.writing import Writer, check_distinct

_COLUMNS = tuple(one.name for one in fields(JobRow))
_NEEDED = tuple((table, "INSERT") for table in ("job", "job_due", "job_request", "job_waiting"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """What an `Outbox` decides with about jobs; no connection in sight."""

    writer: Writer
    queries: JobQueries
    ready: set[str] = field(default_factory=set)

    def submitted(self, database: str, drafts: Sequence[JobDraft[M]]) -> Steps[list[JobHandle[M]]]:
        """
        Yield what writes *drafts*, all or none, and return their handles in the same order.

        First everything is checked and encoded: an error in a value leaves no row. Then it goes in rounds, of which there is
        one unless a request key or a name is taken already: what is free is written, what is taken is looked up.
        """
        rows = yield from self._rows(database, drafts)
        found: dict[UUID, UUID] = {}
        if not apart(rows)[1]:
            yield from self._rounds(rows, found)
        else:  # a first round may have written something when a second one is refused
            yield Statement(self.queries.mark, ())
            try:
                yield from self._rounds(rows, found)
            except RequestKeyConflict:
                yield Statement(self.queries.undo, ())
                yield Statement(self.queries.forget, ())
                raise
            yield Statement(self.queries.forget, ())
        for name, count in Counter(row.type for row in rows if found[row.id] == row.id).items():
            self.writer.telemetry.record(Metric.JOBS_SUBMITTED, count, {"type": name})
        return [JobHandle(id=found[row.id], type=row.type, is_new=found[row.id] == row.id) for row in rows]

    @contextmanager
    def span(self, drafts: Sequence[JobDraft[Any]]) -> Iterator[None]:
        """Run the block in the span that the jobs' workers have as parent."""
        name = f"submit {input_kind(drafts[0]).type}"
        with self.writer.telemetry.span(name, attributes={"packhorse.messages": len(drafts)}):
            yield

    def prepare(self, database: str) -> Steps[None]:
        """
        Check, once a database, that tables and rights are there; in a way that leaves the transaction usable.

        Raises:
            NotReady: Names the table or right that is missing.
        """
        yield from self.writer.schema_ids.prepare(database)
        if database not in self.ready:
            answer = yield Statement(self.queries.ready, (), returns=True)
            check_ready(answer, self.writer.schema_ids.schema, _NEEDED)
            self.ready.add(database)

    def _rows(self, database: str, drafts: Sequence[JobDraft[Any]]) -> Steps[list[JobRow]]:
        kinds = [input_kind(draft) for draft in drafts]
        now = self.writer.clock.now()
        for draft in drafts:
            check(draft, now=now)
        yield from self.prepare(database)
        ids = yield from self.writer.schema_ids.of(database, [*kinds, REFERENCE])
        stamp, reference_id = self.writer.stamp(), ids[REFERENCE.subject, REFERENCE.version]
        rows = [
            job_row(
                draft,
                draft.id or self.writer.chance.message_id(now),
                stamp,
                schema_id=ids[kind.subject, kind.version],
                reference_id=reference_id,
            )
            for draft, kind in zip(drafts, kinds, strict=True)
        ]
        check_distinct([row.id for row in rows])
        return rows

    def _rounds(self, waiting: Sequence[JobRow], found: dict[UUID, UUID]) -> Steps[None]:
        # ends: a round is repeated only when another transaction has taken or freed a key in between
        while waiting:
            now, later = apart(waiting)
            left = yield from self._round(now, found)
            waiting = [*left, *later]

    def _round(self, rows: Sequence[JobRow], found: dict[UUID, UUID]) -> Steps[list[JobRow]]:
        """Yield what writes *rows* unless a key or name of theirs is taken; return those that must go again."""
        if len(rows) == 1 and not (rows[0].request or rows[0].name or rows[0].not_before):
            yield Statement(self.queries.submit_plain, rows[0].values(*PLAIN))
            found[rows[0].id] = rows[0].id
            return []
        undoable = _may_leave_half(rows)
        if undoable:
            yield Statement(self.queries.mark, ())
        answer = yield _submit(rows, self.queries)
        written = {row[0] for row in answer}
        taken = [row for row in rows if row.id not in written]
        if undoable:
            if taken:
                yield Statement(self.queries.undo, ())
                written.clear()
            yield Statement(self.queries.forget, ())
        found.update((one, one) for one in written)
        if taken:
            yield from self._look_up(taken, found)
        return [row for row in rows if row.id not in found]

    def _look_up(self, rows: Sequence[JobRow], found: dict[UUID, UUID]) -> Steps[None]:
        """
        Find the jobs that keys and names of *rows* stand for; what is free again by now is left out.

        Raises:
            RequestKeyConflict: A request key stands for a job with another input.
        """
        requests = yield from self._requests([row for row in rows if row.request])
        for row in rows:
            if row.request in requests:
                found[row.id] = _same_input(row, *requests[row.request])
        named = [row for row in rows if row.name and row.id not in found]
        waiting = yield from self._waiting(named)
        for row in named:
            if row.name in waiting and (yield from self._adopted(row, waiting[row.name])):
                found[row.id] = waiting[row.name]

    def _requests(self, rows: Sequence[JobRow]) -> Steps[Mapping[Any, tuple[UUID, str]]]:
        if not rows:
            return {}
        columns = [Texts(column) for column in zip(*(row.request or () for row in rows), strict=True)]
        answer = yield Statement(self.queries.requests, tuple(columns), returns=True, columns=True)
        return {(type_, tenant, key): (job_id, digest) for type_, tenant, key, job_id, digest in answer}

    def _waiting(self, rows: Sequence[JobRow]) -> Steps[Mapping[Any, UUID]]:
        if not rows:
            return {}
        columns = [Texts(column) for column in zip(*(row.name or () for row in rows), strict=True)]
        answer = yield Statement(self.queries.waiting, tuple(columns), returns=True, columns=True)
        return {(type_, name): job_id for type_, name, job_id in answer}

    def _adopted(self, row: JobRow, job_id: UUID) -> Steps[bool]:
        """Yield what lets the request key of *row* stand for the job that waits; return False when it is taken by now."""
        if row.request is None:
            return True
        values = (*row.request, job_id, row.digest)
        answer = yield Statement(self.queries.adopt, values, returns=True)
        return bool(answer)


def apart(
    rows: Sequence[JobRow], *, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES
) -> tuple[list[JobRow], list[JobRow]]:
    """
    Return those of *rows* that go in one statement, and the others.

    Whoever has a key or name of an earlier one meets it in a later round; so does what is too much for one statement.
    """
    seen: set[object] = set()
    now: list[JobRow] = []
    later: list[JobRow] = []
    size = 0
    for row in rows:
        mine = {one for one in (row.request, row.name) if one is not None}
        size += len(row.input)
        full = now and (len(now) >= most_rows or size > most_bytes)
        (later if full or mine & seen else now).append(row)
        seen |= mine
    return now, later


def _may_leave_half(rows: Sequence[JobRow]) -> bool:
    """Return whether one of *rows* may be refused after something was written, so that it would have to be undone."""
    if len(rows) == 1:
        return bool(rows[0].request and rows[0].name)
    return any(row.request or row.name for row in rows)


def _same_input(row: JobRow, job_id: UUID, digest: str) -> UUID:
    if digest == row.digest:
        return job_id
    raise RequestKeyConflict(
        f"the request key of {row.id} stands for job {job_id} of {row.type}, which has another input; send the same input to "
        "be given that job, or choose a new key for a new request",
        existing=job_id,
        refused=row.id,
    )


def _submit(rows: Sequence[JobRow], queries: JobQueries) -> Statement:
    columns = [_column(name, [getattr(row, name) for row in rows]) for name in _COLUMNS]
    return Statement(queries.submit, tuple(columns), returns=True, columns=True)


def _column(name: str, values: Sequence[Any]) -> Uuids | Bytes | Texts:
    match name:
        case "id":
            return Uuids(values)
        case "input" | "payload":
            return Bytes(values)
        case "version":
            return Texts([str(value) for value in values])
    return Texts(values)
