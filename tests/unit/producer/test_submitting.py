"""The pure middle of jobs, driven by a table that stands where a connection would: what is asked, in which order, how often."""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.support.accounts import AmountMoved
from tests.support.shop import OrderPlaced

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import (
    DatabaseUnavailable,
    InvalidMessage,
    NotReady,
    PayloadTooLarge,
    RequestKeyConflict,
    UnknownId,
    UsageError,
)
from packhorse.core.jobs import IllegalTransition, JobState
from packhorse.core.telemetry import Attributes, Metric, NoTelemetry
from packhorse.producer import Cancelling, Job, JobDraft, JobHandle, Jobs, message_context
from packhorse.producer.context import MessageContext
from packhorse.producer.jobs.cancelling import cancelled, outcome
from packhorse.producer.jobs.reading import JOB_COLUMNS, job_of
from packhorse.producer.jobs.rows import REFERENCE, check, job_row
from packhorse.producer.jobs.sql import PLAIN, job_queries_for
from packhorse.producer.jobs.status import POLLING, looked
from packhorse.producer.jobs.submitting import Submitter, apart
from packhorse.producer.rows import Stamp
from packhorse.producer.schema_ids import SchemaIds
from packhorse.producer.sql import queries_for
from packhorse.producer.statements import Answer, Statement, Steps
from packhorse.producer.writing import Writer
from packhorse.schemas import fingerprint
from packhorse.schemas.codec import digest_message

NOW = datetime(2026, 7, 31, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
QUERIES, JOB_QUERIES = queries_for("packhorse"), job_queries_for("packhorse")
NAMES = {getattr(QUERIES, name): f"outbox.{name}" for name in QUERIES.__slots__}
NAMES |= {getattr(JOB_QUERIES, name): name for name in JOB_QUERIES.__slots__}
KIND = AmountMoved.__packhorse__
MOVED = AmountMoved(account="a", amount=5)
OTHER = AmountMoved(account="a", amount=6)
TABLES = ("job", "job_due", "job_request", "job_waiting")
READY: Answer = [(table, True, "app") for table in TABLES]
IDS: Answer = [
    (one.subject, one.version, 7 + n, fingerprint(one.schema), True)
    for n, one in enumerate((KIND, REFERENCE))
]
FIRST = ["outbox.ready", "ready", "outbox.schema_ids"]
"""What is asked once."""
ELSEWHERE = UUID(int=99)


class FixedTime:
    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0


class Counting(NoTelemetry):
    def __init__(self) -> None:
        self.seen: list[tuple[Metric, float, Attributes | None]] = []

    def record(self, metric: Metric, value: float, attributes: Attributes | None = None) -> None:
        self.seen.append((metric, value, attributes))


def a_submitter(telemetry: NoTelemetry | None = None, origin: str | None = "ops") -> Submitter:
    writer = Writer(
        origin=origin,
        max_payload_bytes=1000,
        telemetry=telemetry or NoTelemetry(),
        clock=FixedTime(),
        chance=SYSTEM_CHANCE,
        queries=QUERIES,
        schema_ids=SchemaIds(schema="packhorse", queries=QUERIES),
    )
    return Submitter(writer=writer, queries=JOB_QUERIES)


class Asked:
    """Answer statements; `taken` says which keys and names stand for which job and digest already."""

    def __init__(self, taken: Mapping[str, tuple[UUID, str]] | None = None, **answers: Answer) -> None:
        self.taken = taken or {}
        self.answers: dict[str, Answer] = {
            "outbox.ready": [("outbox", True, "app"), ("schema_version", True, "app")],
            "ready": READY,
            "outbox.schema_ids": IDS,
        } | answers
        self.statements: list[Statement] = []

    def run(self, steps: Steps[Any]) -> Any:
        answer: Answer | None = None
        while True:
            try:
                statement = next(steps) if answer is None else steps.send(answer)
            except StopIteration as done:
                return done.value
            self.statements.append(statement)
            answer = self._answer(NAMES[statement.text], statement) if statement.returns else ()

    def _answer(self, name: str, statement: Statement) -> Answer:
        columns = [getattr(one, "values", one) for one in statement.parameters]
        match name:
            case "submit":
                keys, names = columns[11], columns[13]
                rows = zip(columns[0], keys, names, strict=True)
                return [(one,) for one, key, waits in rows if not {key, waits} & self.taken.keys()]
            case "requests":
                return [
                    (*row, *self.taken[row[2]]) for row in zip(*columns, strict=True) if row[2] in self.taken
                ]
            case "waiting":
                return [
                    (*row, self.taken[row[1]][0])
                    for row in zip(*columns, strict=True)
                    if row[1] in self.taken
                ]
            case "adopt":
                return [(columns[3],)]
        return self.answers[name]

    @property
    def names(self) -> list[str]:
        return [NAMES[statement.text] for statement in self.statements]


def submit(asked: Asked, submitter: Submitter, *drafts: JobDraft[Any]) -> list[JobHandle[Any]]:
    found: list[JobHandle[Any]] = asked.run(submitter.submitted("db", drafts))
    return found


def test_the_first_job_asks_for_tables_and_ids_and_the_next_is_one_statement() -> None:
    submitter, first, second = a_submitter(), Asked(), Asked()
    submit(first, submitter, JobDraft(input=MOVED))
    (handle,) = submit(second, submitter, JobDraft(input=MOVED))
    assert first.names == [*FIRST, "submit_plain"]
    assert second.names == ["submit_plain"]
    assert handle.is_new
    assert dict(zip(PLAIN, second.statements[0].parameters, strict=True))["id"] == handle.id


@pytest.mark.parametrize(
    "said",
    [
        {"request_key": "k"},
        {"one_waiting": "w"},
        {"not_before": NOW + HOUR},
        {"one_running": "r", "request_key": "k"},
    ],
)
def test_a_job_with_a_key_or_a_name_or_a_time_is_one_statement_too(said: dict[str, Any]) -> None:
    asked = Asked()
    assert submit(asked, a_submitter(), JobDraft(input=MOVED, **said))[0].is_new
    assert asked.names == [*FIRST, "submit"]


def test_many_are_one_statement_with_a_savepoint_only_where_something_may_have_to_be_undone() -> None:
    plain, keyed = Asked(), Asked()
    submit(plain, a_submitter(), *[JobDraft(input=MOVED)] * 3)
    submit(keyed, a_submitter(), JobDraft(input=MOVED, request_key="a"), JobDraft(input=MOVED))
    assert plain.names == [*FIRST, "submit"]
    assert keyed.names == [*FIRST, "mark", "submit", "forget"]


def test_a_key_that_is_taken_by_the_same_input_gives_that_job() -> None:
    asked = Asked({"k": (ELSEWHERE, digest_message(MOVED))})
    (handle,) = submit(asked, a_submitter(), JobDraft(input=MOVED, request_key="k"))
    assert handle == JobHandle(id=ELSEWHERE, type="bank.AmountMoved", is_new=False)
    assert asked.names == [*FIRST, "submit", "requests"]


def test_a_key_that_is_taken_by_another_input_undoes_the_whole_call() -> None:
    asked = Asked({"k": (ELSEWHERE, digest_message(OTHER))})
    with pytest.raises(RequestKeyConflict, match=f"stands for job {ELSEWHERE}") as caught:
        submit(asked, a_submitter(), JobDraft(input=MOVED), JobDraft(input=MOVED, request_key="k"))
    assert asked.names == [*FIRST, "mark", "submit", "undo", "forget", "requests"]
    assert "'k'" not in str(caught.value)
    assert "amount" not in str(caught.value)


def test_jobs_beside_one_that_is_there_already_are_written_once_more_after_the_undoing() -> None:
    asked = Asked({"k": (ELSEWHERE, digest_message(MOVED))})
    plain, keyed = submit(asked, a_submitter(), JobDraft(input=MOVED), JobDraft(input=MOVED, request_key="k"))
    assert asked.names == [*FIRST, "mark", "submit", "undo", "forget", "requests", "submit_plain"]
    assert (plain.is_new, keyed.id) == (True, ELSEWHERE)


def test_a_name_that_waits_gives_that_job_and_a_request_key_then_stands_for_it() -> None:
    asked = Asked({"w": (ELSEWHERE, "")})
    (handle,) = submit(asked, a_submitter(), JobDraft(input=MOVED, one_waiting="w", request_key="k"))
    assert (handle.id, handle.is_new) == (ELSEWHERE, False)
    assert asked.names == [*FIRST, "mark", "submit", "undo", "forget", "requests", "waiting", "adopt"]
    assert asked.statements[-1].parameters == (
        "bank.AmountMoved", "", "k", ELSEWHERE, digest_message(MOVED),
    )  # fmt: skip


def test_what_meets_an_earlier_one_of_its_call_and_what_is_too_much_goes_later() -> None:
    stamp = Stamp(origin=None, context=MessageContext(), trace=None, max_payload_bytes=100)

    def row(n: int, **said: Any) -> Any:
        return job_row(JobDraft(input=MOVED, **said), UUID(int=n), stamp, schema_id=7, reference_id=8)

    rows = [row(1), row(2, request_key="k"), row(3, request_key="k"), row(4, request_key="k", tenant="t"),
            row(5, one_waiting="k"), row(6, one_waiting="k")]  # fmt: skip
    assert [[one.id.int for one in part] for part in apart(rows)] == [[1, 2, 4, 5], [3, 6]]
    assert [[one.id.int for one in part] for part in apart(rows, most_rows=2)] == [[1, 2], [3, 4, 5, 6]]
    assert [[one.id.int for one in part] for part in apart(rows, most_bytes=1)] == [[1], [2, 3, 4, 5, 6]]


def test_new_jobs_are_counted_by_type() -> None:
    telemetry = Counting()
    taken = Asked({"k": (ELSEWHERE, digest_message(MOVED))})
    submit(taken, a_submitter(telemetry), JobDraft(input=MOVED, request_key="k"), JobDraft(input=MOVED))
    assert telemetry.seen == [(Metric.JOBS_SUBMITTED, 1, {"type": "bank.AmountMoved"})]


@pytest.mark.parametrize("missing", TABLES)
def test_a_table_that_is_missing_is_named_before_anything_is_written(missing: str) -> None:
    asked = Asked(ready=[row for row in READY if row[0] != missing])
    with pytest.raises(NotReady, match=f"table packhorse.{missing} is missing .* `packhorse migrate up`"):
        submit(asked, a_submitter(), JobDraft(input=MOVED))
    assert asked.names == ["outbox.ready", "ready"]


@pytest.mark.parametrize("given", [MOVED, "job", None])
def test_what_is_no_draft_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"pass JobDraft\(input=…\)"):
        submit(Asked(), a_submitter(), given)


@pytest.mark.parametrize("given", [AmountMoved, {"account": "a"}, None])
def test_what_is_no_message_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"message|class"):
        submit(Asked(), a_submitter(), JobDraft(input=given))


def test_who_submitted_is_the_actor_or_the_origin_or_the_application() -> None:
    def by(origin: str | None, **said: Any) -> object:
        asked = Asked()
        submit(asked, a_submitter(origin=origin), JobDraft(input=MOVED, **said))
        return dict(zip(PLAIN, asked.statements[-1].parameters, strict=True))["changed_by"]

    assert [by("ops", actor="ada"), by("ops"), by(None)] == ["ada", "ops", "application"]
    with message_context(actor="bob"):
        assert by("ops") == "bob"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"expires_at": NOW}, "expires_at 2026-07-31T12:00:00.000000Z has passed"),
        ({"expires_at": NOW + HOUR, "not_before": NOW + HOUR}, "does not come after not_before"),
        ({"expires_at": NOW + HOUR, "one_waiting": "w"}, "one_waiting with expires_at is not allowed"),
        ({"request_key": "\ud800"}, r"request_key holds U\+D800 at position 0"),
        ({"not_before": "tomorrow"}, "not_before is str; pass an aware datetime"),
        (
            {"expires_at": datetime.max.replace(tzinfo=UTC)},
            "expires_at 9999-12-31.* to 9999-12-30, .* leave it out",
        ),
        (
            {"not_before": datetime.min.replace(tzinfo=UTC)},
            "not_before 0001-01-01.* is not allowed: from 0001-01-02",
        ),
    ],
)
def test_a_draft_that_could_never_run_is_refused(said: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidMessage, match=told):
        check(JobDraft(input=MOVED, **said), now=NOW)


def test_names_of_all_scripts_and_blanks_are_allowed() -> None:
    check(JobDraft(input=MOVED, request_key="заказ 17 / 東京", one_waiting="x" * 200), now=NOW)


def test_an_input_over_the_limit_is_told_what_bounds_it() -> None:
    """Fails when somebody is sent to the settings of a topic: an input stays in the job's row."""
    stamp = Stamp(origin="ops", context=MessageContext(), trace=None, max_payload_bytes=1)
    with pytest.raises(PayloadTooLarge) as caught:
        job_row(JobDraft(input=MOVED), ELSEWHERE, stamp, schema_id=7, reference_id=8)
    assert str(caught.value).startswith("input of ")
    assert "topic" not in str(caught.value)


@pytest.mark.parametrize("given", [None, "5", float("nan"), -1])
def test_a_wait_without_a_number_of_seconds_is_refused_before_anything_is_asked(given: Any) -> None:
    """Fails when the caller gets an error of arithmetic, or a wait that has no end."""
    with Jobs("postgresql://127.0.0.1:1/none") as jobs:
        with pytest.raises(UsageError, match="seconds, 0 or more"):
            jobs.wait(ELSEWHERE, timeout=given)
        with pytest.raises(UsageError, match="seconds, 0 or more"):
            asyncio.run(jobs.await_end(ELSEWHERE, timeout=given))


def test_equal_inputs_have_one_digest_however_they_were_built() -> None:
    assert digest_message(MOVED) == digest_message(dataclasses.replace(MOVED)) != digest_message(OTHER)
    first, again = (
        OrderPlaced(order_id=UUID(int=1), lines=(), placed_at=NOW, labels=labels)
        for labels in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})
    )
    assert first == again
    assert digest_message(first) == digest_message(again)
    assert digest_message(first) != digest_message(dataclasses.replace(first, labels={"a": "2", "b": "1"}))


@pytest.mark.parametrize(
    ("before", "after", "error", "said"),
    [
        (None, None, UnknownId, "is not known here"),
        ("succeeded", "succeeded", IllegalTransition, "has ended as succeeded"),
        ("expired", "expired", IllegalTransition, "has ended as expired"),
        ("discarded", "discarded", IllegalTransition, "has ended as discarded"),
        ("quarantined", "quarantined", IllegalTransition, "discard it instead"),
        ("uncertain", "uncertain", IllegalTransition, "discard it instead"),
    ],
)
def test_what_can_not_be_cancelled_says_why(
    before: str | None, after: str | None, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        outcome(UUID(int=1), before, after)


def test_cancelling_says_who_asks() -> None:
    asked = Asked(cancel=[("accepted", "cancelled")])
    with message_context(actor="ada"):
        found = asked.run(cancelled(a_submitter(), "db", UUID(int=1), why=" twice ", actor=None))
    assert found is Cancelling.CANCELLED
    assert asked.statements[-1].parameters == (UUID(int=1), "ada", "twice")
    with pytest.raises(UsageError, match="why of 0 characters"):
        asked.run(cancelled(a_submitter(), "db", UUID(int=1), why=" ", actor=None))


def a_job(state: str) -> Job:
    values: dict[str, Any] = dict.fromkeys(JOB_COLUMNS) | {"id": UUID(int=1), "state": state}
    return job_of([values[name] for name in JOB_COLUMNS])


@pytest.mark.parametrize("state", JobState)
def test_a_look_ends_the_wait_where_nothing_more_happens_by_itself(state: JobState) -> None:
    job, moving = a_job(state), {"accepted", "running", "retrying"}
    found = looked(lambda: job, 1, left=lambda: 10.0, timeout=10)
    assert found == (POLLING.first if state in moving else job)


def test_looks_grow_rarer_and_the_last_one_falls_on_the_deadline() -> None:
    job = a_job("running")
    delays = [looked(lambda: job, n, left=lambda: 10.0, timeout=10) for n in (1, 2, 3, 6, 7, 50)]
    assert delays == [0.02, 0.04, 0.08, 0.64, 1.0, 1.0]
    assert looked(lambda: job, 50, left=lambda: 0.3, timeout=10) == 0.3
    with pytest.raises(TimeoutError, match=r"is running after 10 s"):
        looked(lambda: job, 51, left=lambda: 0.0, timeout=10)


def test_a_wait_goes_on_while_the_database_is_away_and_says_so_at_the_end() -> None:
    def away() -> Job:
        raise DatabaseUnavailable("away")

    look: Callable[[float], Job | float] = lambda left: looked(away, 3, left=lambda: left, timeout=10)  # noqa: E731
    assert look(5.0) == 0.08
    with pytest.raises(DatabaseUnavailable, match="away"):
        look(0.0)
