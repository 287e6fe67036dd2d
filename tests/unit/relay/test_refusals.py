"""Whose fault it is that rows did not arrive: by the error's name, by the reports together, and by who kept silent."""

import pytest
from confluent_kafka import KafkaError

from packhorse.core.partitions import partition_of
from packhorse.relay import refusals
from packhorse.relay.holds import Kind
from packhorse.relay.kafka.reports import Report, blamed, silent
from packhorse.relay.model import Row
from packhorse.relay.refusals import Blame, judged

PARTITIONS = 3
SECRET = b"a payload that nobody may read in a log"


def row(seq: int, key: str | None = "k", kind: str = "orders", payload: bytes | None = SECRET) -> Row:
    return (seq, kind, key, payload, 0, f"id-{seq}", "t.T", "1", *[None] * 10)


def report(row: Row, name: str, partition: int = -1) -> Report:
    key = None if row[2] is None else row[2].encode()
    return Report(name, f"{name} (said the broker)", f"shop.{row[1]}", key, row[3], partition)


def key_of(partition: int) -> str:
    """Return a key that goes to *partition*."""
    return next(f"k{n}" for n in range(99) if partition_of(f"k{n}".encode(), PARTITIONS) == partition)


A, B, C = (key_of(n) for n in range(PARTITIONS))


@pytest.mark.case("R-10")
@pytest.mark.parametrize(
    ("name", "blame", "code", "heals"),
    [
        ("MSG_SIZE_TOO_LARGE", Blame.ROW, "too_large", False),
        ("RECORD_LIST_TOO_LARGE", Blame.ROW, "too_large", False),
        ("INVALID_RECORD", Blame.ROW, "refused", False),
        ("INVALID_TIMESTAMP", Blame.ROW, "refused", False),
        ("UNKNOWN_TOPIC_OR_PART", Blame.TOPIC, "missing", True),
        ("_UNKNOWN_TOPIC", Blame.TOPIC, "missing", True),
        ("_UNKNOWN_PARTITION", Blame.TOPIC, "missing", True),
        ("TOPIC_EXCEPTION", Blame.TOPIC, "missing", False),
        ("TOPIC_AUTHORIZATION_FAILED", Blame.TOPIC, "forbidden", True),
        ("CLUSTER_AUTHORIZATION_FAILED", Blame.TOPIC, "forbidden", True),
        ("UNKNOWN", Blame.ROW, "unknown", True),
        ("of a version that nobody knows", Blame.ROW, "unknown", True),
    ],
)
def test_a_fault_of_a_row_and_of_a_topic_are_told_apart(
    name: str, blame: Blame, code: str, heals: bool
) -> None:
    """Fails when a name moves to another line of the table: a topic that is missing would hold keys for a person, one by one."""
    found = judged(name)
    assert (found.blame, found.code, found.heals) == (blame, code, heals)


@pytest.mark.case("R-10")
@pytest.mark.parametrize(
    "name",
    [
        *("_TRANSPORT", "_ALL_BROKERS_DOWN", "_MSG_TIMED_OUT", "_TIMED_OUT", "_RESOLVE", "_SSL", "_AUTHENTICATION"),
        *("_PURGE_QUEUE", "_PURGE_INFLIGHT", "_FATAL", "_GAPLESS_GUARANTEE", "_INVALID_DIFFERENT_RECORD", "_STATE"),
        *("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        *("NOT_ENOUGH_REPLICAS", "NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR"),
        *("REQUEST_TIMED_OUT", "THROTTLING_QUOTA_EXCEEDED", "SASL_AUTHENTICATION_FAILED", "COORDINATOR_NOT_AVAILABLE"),
    ],
)  # fmt: skip
def test_trouble_with_the_broker_blames_nobody(name: str) -> None:
    """Fails when a name of the table's last lines is taken out: broker trouble would hold rows."""
    assert judged(name).blame is Blame.NOBODY


def test_every_name_in_the_table_is_one_that_the_client_uses() -> None:
    """Fails on a misspelt name: its error would be unknown."""
    known = {
        KafkaError(code).name() for code in vars(KafkaError).values() if isinstance(code, int) and code != 0
    }
    assert set(refusals._BY_NAME) - known == set()


@pytest.mark.case("R-11")
def test_the_first_row_in_the_order_of_handing_over_is_named_whatever_the_order_of_reports() -> None:
    """Fails when the first report wins: the row at fault would be passed by its successors' reports."""
    rows = [row(1, A), row(2, A, payload=b"y"), row(3, A, payload=b"z")]
    reports = [
        report(rows[2], "_PURGE_QUEUE"),
        report(rows[2], "MSG_SIZE_TOO_LARGE"),
        report(rows[1], "MSG_SIZE_TOO_LARGE"),
    ]
    fault = blamed(reports, rows, namespace="shop")
    assert fault is not None
    assert (fault.id, fault.seq, fault.code, fault.scope.kind) == ("id-2", 2, "too_large", Kind.KEY)
    assert not fault.heals


@pytest.mark.case("R-10")
def test_a_topic_is_blamed_before_any_row() -> None:
    """Fails when the first row wins: each key of a missing topic would be held by itself."""
    rows = [row(1), row(2, kind="lines")]
    reports = [report(rows[0], "MSG_SIZE_TOO_LARGE"), report(rows[1], "UNKNOWN_TOPIC_OR_PART")]
    fault = blamed(reports, rows, namespace="shop")
    assert fault is not None
    assert (fault.scope.kind, fault.scope.aggregatetype, fault.topic) == (Kind.TOPIC, "lines", "shop.lines")
    assert (fault.id, fault.seq) == (None, None)


def test_a_row_without_key_is_named_alone() -> None:
    rows = [row(1, None), row(2, None, payload=None)]
    fault = blamed([report(rows[1], "INVALID_RECORD")], rows, namespace="shop")
    assert fault is not None
    assert (fault.scope.kind, fault.scope.message_id) == (Kind.ROW, "id-2")


def test_nobody_is_blamed_for_what_was_dropped() -> None:
    rows = [row(1), row(2, payload=b"y")]
    assert blamed([report(each, "_PURGE_QUEUE") for each in rows], rows, namespace="shop") is None


@pytest.mark.case("P-08")
@pytest.mark.parametrize("name", ["MSG_SIZE_TOO_LARGE", "TOPIC_EXCEPTION", "UNKNOWN"])
def test_a_reason_tells_neither_key_nor_payload(name: str) -> None:
    given = row(1, "a key that nobody may read")
    fault = blamed([report(given, name)], [given], namespace="shop")
    assert SECRET.decode() not in str(fault)
    assert "nobody may read" not in str(fault)


def dropped(rows: list[Row], name: str = "_PURGE_QUEUE") -> list[Report]:
    return [report(each, name) for each in rows]


@pytest.mark.parametrize("broken", [False, True])
def test_a_partition_that_confirms_nothing_while_others_do_is_silent(broken: bool) -> None:
    """Fails when partitions are judged by rows of other partitions, or by those that were confirmed."""
    rows = [row(1, A), row(2, B), row(3, B, payload=b"y"), row(4, C)]
    found = silent(dropped(rows[1:3], "_PURGE_INFLIGHT"), rows, {"orders": PARTITIONS}, namespace="shop", broken=broken)  # fmt: skip
    assert [(each.scope.partition, each.scope.partitions, each.code, each.heals) for each in found] == [
        (1, PARTITIONS, "silent", True)
    ]


def test_where_nothing_is_confirmed_no_partition_is_silent() -> None:
    """Fails when a broker that is away becomes a hold on each partition."""
    rows = [row(1, A), row(2, B)]
    assert silent(dropped(rows), rows, {"orders": PARTITIONS}, namespace="shop", broken=False) == []


def test_a_partition_that_confirmed_one_row_is_not_silent() -> None:
    rows = [row(1, A), row(2, B), row(3, B, payload=b"y")]
    assert silent(dropped(rows[2:]), rows, {"orders": PARTITIONS}, namespace="shop", broken=False) == []


def test_what_waited_in_the_queue_when_another_row_failed_is_not_silent() -> None:
    """Fails when a refused row makes holds of all partitions whose turn had not come."""
    rows = [row(1, A), row(2, B), row(3, C)]
    reports = [report(rows[0], "MSG_SIZE_TOO_LARGE"), *dropped(rows[1:2])]
    assert silent(reports, rows, {"orders": PARTITIONS}, namespace="shop", broken=True) == []


def test_rows_without_key_make_no_partition_silent() -> None:
    rows = [row(1, A), row(2, None)]
    assert silent(dropped(rows[1:]), rows, {"orders": PARTITIONS}, namespace="shop", broken=False) == []
