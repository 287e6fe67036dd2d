import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from tests.support.accounts import AccountOpened, AmountMoved

from packhorse.core.errors import InvalidMessage, PayloadTooLarge, UsageError, ValueMismatch
from packhorse.core.message import HEADER_COLUMNS, MAX_HEADERS_BYTES, MAX_TEXT
from packhorse.core.telemetry import TraceContext
from packhorse.producer import MessageContext, Outgoing, Tombstone
from packhorse.producer.rows import Draft, Row, Stamp, drafted, expiry_text, headers_text, kind_of, row_of
from packhorse.producer.sql import COLUMNS

ID = UUID("019b76da-a800-7000-8000-000000000001")
MOVED = AmountMoved(account="a", amount=5)
STAMP = Stamp(origin="ops", context=MessageContext(), trace=None, max_payload_bytes=1000)


def built(draft: Draft, stamp: Stamp = STAMP) -> dict[str, object]:
    row: Row = row_of(draft, 7, ID, stamp)
    return dict(zip(COLUMNS, row, strict=True))


def test_a_row_has_every_column_that_becomes_a_header() -> None:
    assert {column for _, column in HEADER_COLUMNS} < set(COLUMNS)


def test_a_plain_message_fills_what_it_must_and_leaves_the_rest_empty() -> None:
    assert built(Outgoing(message=MOVED, key="a")) == {
        **dict.fromkeys(COLUMNS),
        "id": ID,
        "aggregatetype": "account",
        "aggregateid": "a",
        "type": "bank.AmountMoved",
        "schema_version": "2",
        "payload": b"\0\0\0\0\x07\x02a\x0a",
        "origin": "ops",
    }


def test_arguments_win_over_the_context() -> None:
    around = MessageContext(correlation_id="c0", causation_id="x0", actor="a0", tenant="t0")
    stamp = dataclasses.replace(STAMP, context=around, trace=TraceContext(traceparent="tp", tracestate="ts"))
    row = built(Outgoing(message=MOVED, key=None, actor="a1", tenant=""), stamp)
    assert row["correlation_id"] == "c0"
    assert row["causation_id"] == "x0"
    assert row["actor"] == "a1"
    assert row["tenant"] == ""
    assert (row["traceparent"], row["tracestate"]) == ("tp", "ts")


def test_a_tracestate_that_is_too_long_is_let_go_rather_than_the_transaction() -> None:
    long = TraceContext(traceparent="tp", tracestate="x" * (MAX_TEXT + 1))
    row = built(Outgoing(message=MOVED, key=None), dataclasses.replace(STAMP, trace=long))
    assert (row["traceparent"], row["tracestate"]) == ("tp", None)


@pytest.mark.case("B-07")
def test_a_tombstone_has_its_key_and_no_payload() -> None:
    """Fails when row_of encodes something, or an empty payload, for a tombstone."""
    row = built(Tombstone(of=AmountMoved, key="a"))
    assert row["payload"] is None
    assert (row["aggregateid"], row["type"], row["schema_version"]) == ("a", "bank.AmountMoved", "2")


@pytest.mark.parametrize("key", [None, "", 17])
def test_a_tombstone_without_a_key_is_refused(key: object) -> None:
    with pytest.raises(InvalidMessage, match="key"):
        built(Tombstone(of=AmountMoved, key=key))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key", "said"),
    [(17, "key is int"), (ID, "key is UUID"), ("a\0b", "NUL"), ("x" * 513, "513"), ("\ud800", "surrogate")],
)
def test_a_key_that_no_row_or_record_can_carry_is_refused(key: object, said: str) -> None:
    with pytest.raises(InvalidMessage, match=said):
        built(Outgoing(message=MOVED, key=key))  # type: ignore[arg-type]


@pytest.mark.case("B-05")
def test_a_wrong_value_names_its_field() -> None:
    """Fails when the row is built from whatever the encoder happens to accept."""
    wrong = AccountOpened(account="a", owner="Ada", limit=2**31)
    with pytest.raises(ValueMismatch, match="limit") as caught:
        built(Outgoing(message=wrong, key="a"))
    assert caught.value.path == "limit"


@pytest.mark.case("B-06")
def test_a_payload_over_the_limit_is_refused_with_size_and_limit() -> None:
    """Fails when row_of does not check the size of what it encoded."""
    large = AmountMoved(account="x" * 1000, amount=1)
    with pytest.raises(PayloadTooLarge, match=r"1008 bytes, the limit is 1000"):
        built(Outgoing(message=large, key="a"))
    fits = AmountMoved(account="x" * 992, amount=1)
    assert len(built(Outgoing(message=fits, key="a"))["payload"]) == 1000  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expires_at", "text"),
    [
        (datetime(2026, 7, 31, 12, tzinfo=UTC), "2026-07-31T12:00:00.000000Z"),
        (datetime(2026, 7, 31, 12, tzinfo=timezone(timedelta(hours=2))), "2026-07-31T10:00:00.000000Z"),
        (None, None),
    ],
)
def test_expiry_is_iso_text_in_utc(expires_at: datetime | None, text: str | None) -> None:
    assert expiry_text(expires_at) == text


def test_expiry_outside_of_the_calendar_is_refused() -> None:
    """Fails when an OverflowError reaches the caller."""
    late = datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))
    with pytest.raises(InvalidMessage, match="outside of the years 1 to 9999 in UTC"):
        expiry_text(late)


@pytest.mark.parametrize("wrong", [datetime(2026, 7, 31), "2026-07-31T12:00:00Z", 5])  # noqa: DTZ001 - the mistake
def test_expiry_without_a_zone_or_of_another_type_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidMessage, match="aware datetime"):
        expiry_text(wrong)  # type: ignore[arg-type]


def test_headers_are_one_json_object_spelled_as_postgres_prints_it() -> None:
    assert headers_text({"a": "ü", "b": '"'}) == '{"a": "ü", "b": "\\""}'
    assert headers_text({}) is None
    assert headers_text(None) is None


def test_headers_are_capped_in_bytes_of_utf8() -> None:
    room = MAX_HEADERS_BYTES - len('{"a": ""}')
    assert headers_text({"a": "x" * room}) is not None
    with pytest.raises(InvalidMessage, match=f"{MAX_HEADERS_BYTES + 1} bytes as JSON"):
        headers_text({"a": "x" * (room + 1)})
    with pytest.raises(InvalidMessage, match="limit"):
        headers_text({"a": "ü" * (room // 2 + 1)})


@pytest.mark.parametrize(
    "wrong", [{"a": 1}, {1: "a"}, {"": "a"}, {"a": "\0"}, {"a\0": "b"}, {"a": "\ud800"}, ["a"]]
)
def test_headers_that_jsonb_would_refuse_are_refused_before(wrong: object) -> None:
    with pytest.raises(InvalidMessage, match="header"):
        headers_text(wrong)  # type: ignore[arg-type]


def test_a_header_whose_name_is_no_text_is_told_by_the_names_type() -> None:
    """Fails when the value's type, which is right, is named instead."""
    with pytest.raises(InvalidMessage, match="name 1 of a header is int;"):
        headers_text({1: "a"})  # type: ignore[dict-item]


def test_a_refused_header_is_not_quoted() -> None:
    with pytest.raises(InvalidMessage) as caught:
        headers_text({"who": b"Ada Lovelace"})  # type: ignore[dict-item]
    assert "Ada" not in str(caught.value)


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (Outgoing(message={"a": 1}, key="a"), "dict is no message"),  # type: ignore[arg-type]
        (Outgoing(message=AmountMoved, key="a"), "AmountMoved is the class"),  # type: ignore[arg-type]
        (Tombstone(of=MOVED, key="a"), "pass the class AmountMoved"),  # type: ignore[arg-type]
        (Tombstone(of=str, key="a"), "str is no message"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_message_is_refused_and_named(draft: Draft, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        kind_of(draft)


def test_an_id_is_a_uuid() -> None:
    with pytest.raises(InvalidMessage, match="id is str"):
        row_of(Outgoing(message=MOVED, key="a"), 7, str(ID), STAMP)  # type: ignore[arg-type]


def test_emit_many_takes_pairs_and_drafts_alone() -> None:
    pair = drafted((MOVED, "a"))
    assert pair == Outgoing(message=MOVED, key="a")
    assert drafted(pair) is pair
    for wrong in (MOVED, (MOVED,), [MOVED, "a"]):
        with pytest.raises(UsageError, match="emit_many was given"):
            drafted(wrong)  # type: ignore[arg-type]
