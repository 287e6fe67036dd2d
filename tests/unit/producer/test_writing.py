"""The pure middle, driven by a dictionary that stands where a connection would: what is asked, in which order."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from tests.support.accounts import AccountOpened, AmountMoved

from packhorse.core.errors import InvalidMessage, KeysLocked, NotReady, SchemaNotRegistered, ValueMismatch
from packhorse.core.ids import time_of, uuid7_from
from packhorse.core.telemetry import NO_TELEMETRY
from packhorse.producer import Outgoing, Tombstone, message_context
from packhorse.producer.rows import Draft
from packhorse.producer.schema_ids import SchemaIds
from packhorse.producer.slots import slot_of
from packhorse.producer.sql import queries_for
from packhorse.producer.statements import Answer, Statement, Steps
from packhorse.producer.writing import Writer
from packhorse.schemas import fingerprint

NOW = datetime(2026, 7, 31, 12, tzinfo=UTC)
QUERIES = queries_for("packhorse")
NAMES = {getattr(QUERIES, name): name for name in QUERIES.__slots__}
READY: Answer = [("outbox", True, "app"), ("schema_version", True, "app")]
MOVED_PRINT, OPENED_PRINT = (fingerprint(kind.__packhorse__.schema) for kind in (AmountMoved, AccountOpened))
IDS: Answer = [
    ("bank.account-bank.AmountMoved", 2, 7, MOVED_PRINT, True),
    ("bank.account-bank.AccountOpened", 1, 8, OPENED_PRINT, True),
]
MOVED = AmountMoved(account="a", amount=5)


class FixedTime:
    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0


class Counted:
    def __init__(self) -> None:
        self.drawn = 0

    def fraction(self) -> float:
        return 0.0

    def token(self) -> UUID:
        return UUID(int=0)

    def message_id(self, now: datetime) -> UUID:
        self.drawn += 1
        return uuid7_from(now, self.drawn.to_bytes(10))


def a_writer() -> Writer:
    ids = SchemaIds(schema="packhorse", queries=QUERIES)
    return Writer(
        origin="ops",
        max_payload_bytes=1000,
        telemetry=NO_TELEMETRY,
        clock=FixedTime(),
        chance=Counted(),
        queries=QUERIES,
        schema_ids=ids,
    )


class Asked:
    """Answer statements from a table, and remember what was asked."""

    def __init__(self, **answers: Answer) -> None:
        self.answers: dict[str, Answer] = {"ready": READY, "schema_ids": IDS, "lock_slots": [([],)]} | answers
        self.statements: list[Statement] = []

    def run(self, steps: Steps[Any]) -> Any:
        answer: Answer | None = None
        while True:
            try:
                statement = next(steps) if answer is None else steps.send(answer)
            except StopIteration as done:
                return done.value
            self.statements.append(statement)
            answer = self.answers[self.names[-1]] if statement.returns else ()

    @property
    def names(self) -> list[str]:
        return [NAMES[statement.text] for statement in self.statements]


def write(asked: Asked, writer: Writer, *drafts: Draft, lock_key: bool = False) -> list[UUID]:
    found: list[UUID] = asked.run(writer.written("db", drafts, lock_key=lock_key))
    return found


def test_the_first_message_asks_for_tables_and_ids_and_the_next_is_one_statement() -> None:
    writer = a_writer()
    first, second = Asked(), Asked()
    write(first, writer, Outgoing(message=MOVED, key="a"))
    write(second, writer, Outgoing(message=MOVED, key="a"))
    assert first.names == ["ready", "schema_ids", "insert_one"]
    assert second.names == ["insert_one"]


def test_ids_are_uuid7_of_the_clock_unless_given_and_come_back_in_order() -> None:
    asked, given = Asked(), UUID(int=9)
    ids = write(
        asked,
        a_writer(),
        Outgoing(message=MOVED, key="a"),
        Outgoing(message=MOVED, key="a", id=given),
        Tombstone(of=AmountMoved, key="a"),
    )
    assert ids[1] == given
    assert [time_of(one) for one in ids] == [NOW, None, NOW]
    assert len(set(ids)) == 3


def test_one_id_for_two_messages_of_a_call_is_refused() -> None:
    asked, twice = Asked(), UUID(int=9)
    with pytest.raises(InvalidMessage, match="two messages"):
        write(asked, a_writer(), *[Outgoing(message=MOVED, key=None, id=twice)] * 2)
    assert "insert" not in " ".join(asked.names)


@pytest.mark.case("B-12")
def test_keys_are_locked_before_rows_draw_their_sequence_values() -> None:
    """Fails when `written` yields the inserts before the lock."""
    asked = Asked()
    drafts = [Outgoing(message=MOVED, key=key) for key in ("b", None, "a", "b")]
    write(asked, a_writer(), *drafts, lock_key=True)
    assert asked.names[-2:] == ["lock_slots", "insert_alike"]
    assert asked.statements[-2].parameters == (sorted({slot_of("a"), slot_of("b")}),)


@pytest.mark.case("B-05")
def test_a_wrong_value_takes_neither_lock_nor_row() -> None:
    """Fails when locks are taken or rows sent before every value is encoded."""
    asked = Asked()
    wrong = AmountMoved(account="a", amount="five")  # type: ignore[arg-type]
    with pytest.raises(ValueMismatch, match="amount"):
        write(
            asked,
            a_writer(),
            Outgoing(message=MOVED, key="a"),
            Outgoing(message=wrong, key="a"),
            lock_key=True,
        )
    assert asked.names == ["ready", "schema_ids"]


def test_a_key_held_elsewhere_stops_before_the_row() -> None:
    asked = Asked(lock_slots=[([slot_of("a")],)])
    with pytest.raises(KeysLocked, match=r"1 of 1 key slots .* lock_keys\(") as caught:
        write(asked, a_writer(), Outgoing(message=MOVED, key="a"), lock_key=True)
    assert caught.value.retryable
    assert asked.names[-1] == "lock_slots"


def test_without_a_key_there_is_nothing_to_lock() -> None:
    asked = Asked()
    write(asked, a_writer(), Outgoing(message=MOVED, key=None), lock_key=True)
    assert "lock_slots" not in asked.names


def test_a_tombstone_needs_no_schema_id() -> None:
    asked = Asked()
    write(asked, a_writer(), Tombstone(of=AmountMoved, key="a"))
    assert asked.names == ["ready", "insert_one"]


def test_the_context_around_is_in_the_row() -> None:
    asked = Asked()
    with message_context(correlation_id="c", tenant="t"), message_context(actor="ada"):
        write(asked, a_writer(), Outgoing(message=MOVED, key="a", tenant="north"))
    parameters = asked.statements[-1].parameters
    assert parameters[8:13] == ("c", None, "ops", "ada", "north")


@pytest.mark.parametrize(
    ("ready", "said"),
    [
        ([], "table packhorse.outbox is missing in this database; run `packhorse migrate up`"),
        ([("outbox", True, "app")], "table packhorse.schema_version is missing"),
        ([("outbox", False, "app"), ("schema_version", True, "app")], "role app lacks INSERT on packhorse.outbox"),
        (
            [("outbox", True, "app"), ("schema_version", None, "app")],
            r"role app lacks SELECT on packhorse.schema_version; `packhorse migrate sql --grants writer=app`",
        ),
    ],
)  # fmt: skip
@pytest.mark.case("X-11")
def test_what_is_missing_is_named_before_anything_is_written(ready: Answer, said: str) -> None:
    """Fails when the insert is sent without a look at the catalog first."""
    asked = Asked(ready=ready)
    with pytest.raises(NotReady, match=said):
        write(asked, a_writer(), Outgoing(message=MOVED, key="a"))
    assert asked.names == ["ready"]


def test_a_table_that_was_missing_is_looked_for_again() -> None:
    writer, asked = a_writer(), Asked()
    with pytest.raises(NotReady):
        write(Asked(ready=[]), writer, Outgoing(message=MOVED, key="a"))
    write(asked, writer, Outgoing(message=MOVED, key="a"))
    assert asked.names[-1] == "insert_one"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "no version of it is"),
        ([("bank.account-bank.AmountMoved", 1, 6, "f", True)], "registered there: version 1"),
    ],
)
def test_a_version_without_an_id_names_subject_version_and_command(rows: Answer, said: str) -> None:
    asked = Asked(schema_ids=rows)
    with pytest.raises(SchemaNotRegistered, match=rf"bank.AmountMoved version 2 .*{said}.*schemas register"):
        write(asked, a_writer(), Outgoing(message=MOVED, key="a"))
    assert asked.names == ["ready", "schema_ids"]


@pytest.mark.case("S-03", "B-05")
def test_a_class_of_another_schema_than_the_registered_one_writes_nothing() -> None:
    """Fails when the id is taken without comparing fingerprints: what is encoded then could be decoded by nobody."""
    asked = Asked(schema_ids=[("bank.account-bank.AmountMoved", 2, 7, "of an edited file", True)])
    with pytest.raises(
        SchemaNotRegistered, match=r"AmountMoved version 2; a released version never changes.*version 3"
    ):
        write(asked, a_writer(), Outgoing(message=MOVED, key="a"))
    assert asked.names == ["ready", "schema_ids"]


@pytest.mark.case("B-01")
def test_an_id_that_may_yet_be_rolled_back_is_not_remembered() -> None:
    """Fails when SchemaIds remembers rows that are not settled."""
    writer = a_writer()
    unsettled: Sequence[tuple[Any, ...]] = [("bank.account-bank.AmountMoved", 2, 7, MOVED_PRINT, False)]
    write(Asked(schema_ids=unsettled), writer, Outgoing(message=MOVED, key="a"))
    asked = Asked()
    write(asked, writer, Outgoing(message=MOVED, key="a"))
    assert asked.names == ["schema_ids", "insert_one"]


def test_ids_of_two_databases_are_never_mixed_up() -> None:
    writer, other = a_writer(), Asked()
    write(Asked(), writer, Outgoing(message=MOVED, key="a"))
    other.answers["schema_ids"] = [("bank.account-bank.AmountMoved", 2, 99, MOVED_PRINT, True)]
    other.run(writer.written("other", [Outgoing(message=MOVED, key="a")], lock_key=False))
    assert other.statements[-1].parameters[5].startswith(b"\0\0\0\0\x63")


def test_two_types_of_one_call_ask_for_their_ids_at_once() -> None:
    asked = Asked()
    opened = AccountOpened(account="a", owner="Ada", limit=1)
    write(asked, a_writer(), Outgoing(message=MOVED, key="a"), Outgoing(message=opened, key="a"))
    assert asked.names == ["ready", "schema_ids", "insert_mixed"]
