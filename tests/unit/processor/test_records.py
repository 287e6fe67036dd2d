"""What records say about themselves, whatever they hold; copies and how they are taken apart again."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.core.ids import foreign_id
from packhorse.processor.copies import circling, to_quarantine, to_retry, to_tier, wake_up, where_read
from packhorse.processor.record import (
    CARRIED,
    HeaderList,
    Record,
    Stream,
    delivery_of,
    original_headers,
    time_of_header,
    trace_of,
)
from packhorse.processor.storing.rows import headers_of, headers_text
from packhorse.processor.storing.store import Quarantined
from packhorse.processor.tiers.ladder import ReadTopic

TOPIC_ID = UUID(int=5)
SOURCE = Stream(topic="t", topic_id=TOPIC_ID, source="t")
CARRIER = Stream(topic="t.g.retry.0s", topic_id=UUID(int=6), source="t")
HEADERS = st.lists(
    st.tuples(st.sampled_from(["id", "x", *CARRIED]), st.none() | st.binary(max_size=8)), max_size=8
).map(tuple)


def record(headers: HeaderList = (), offset: int = 3) -> Record:
    return Record("t", 1, offset, 0, 0, b"k", b"v", headers)


@pytest.mark.parametrize("header", [None, b"", b"7", b"\xff" * 36, b"0" * 35, b"g" * 32])
def test_a_record_without_a_usable_id_gets_one_from_where_it_stands(header: bytes | None) -> None:
    found = delivery_of(record((("id", header),)), SOURCE)
    assert found.id == foreign_id(TOPIC_ID, 1, 3)
    assert delivery_of(record(), SOURCE).id == found.id
    assert delivery_of(record(offset=4), SOURCE).id != found.id


def test_of_equal_headers_the_last_wins() -> None:
    a, b = UUID(int=1), UUID(int=2)
    found = delivery_of(record((("id", str(a).encode()), ("id", str(b).encode()), ("type", b"T"))), SOURCE)
    assert (found.id, found.type) == (b, "T")


@pytest.mark.parametrize("header", [b"\xff", b"a\0b", b"x" * 600, b""])
def test_a_type_that_no_table_can_hold_is_none(header: bytes) -> None:
    assert delivery_of(record((("type", header),)), SOURCE).type is None


@pytest.mark.parametrize("value", [b"now", b"2026-13-01", b"2026-01-01T00:00:00", b"\xff", None, b"9" * 400])
def test_an_absurd_time_is_none(value: bytes | None) -> None:
    assert time_of_header(value) is None


@pytest.mark.parametrize("value", [b"x", b"00-zz-b7ad6b7169203331-01", b"\xff", b""])
def test_an_absurd_traceparent_is_none(value: bytes) -> None:
    assert trace_of(delivery_of(record((("traceparent", value),)), SOURCE)) is None


def quarantined(headers: HeaderList, error: str | None = "e", payload: bytes | None = b"v") -> Quarantined:
    at = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    return Quarantined(UUID(int=9), "t", TOPIC_ID, 1, 3, b"k", payload, headers, "failed", error, 4, at)


@given(HEADERS, st.none() | st.just("e"))
@pytest.mark.case("S-06")
def test_a_copy_adds_its_headers_behind_and_they_come_off_again(
    headers: HeaderList, error: str | None
) -> None:
    """Also when the original has headers of the same names, or an optional one is left out."""
    copy = to_retry(quarantined(headers, error), "g", datetime(2026, 1, 1, tzinfo=UTC))
    assert copy.headers[: len(headers)] == headers
    assert [name for name, _ in copy.headers[len(headers) :]] == [
        name for name in CARRIED if error is not None or name != "error"
    ]
    found = delivery_of(record(copy.headers), CARRIER)
    assert original_headers(found) == headers
    assert (found.attempt, found.origin) == (4, ("t", TOPIC_ID, 1, 3))


@pytest.mark.case("T-19")
@pytest.mark.parametrize("reason", ["id-reused", "failed", "later"])
def test_a_copy_of_a_message_known_by_its_place_stays_that_message(reason: str) -> None:
    """
    Another had its id first, so it has one of its own.

    Fails when only a copy whose reason says so is known by its place: after a second redrive, or a `Later`, it would be taken for
    a duplicate of the other, and wait for ever.
    """
    place = foreign_id(TOPIC_ID, 1, 3)
    message = quarantined((("id", str(UUID(int=9)).encode()),))._replace(id=place, reason=reason)
    copy = to_tier(message, "g", "5s", datetime(2026, 1, 2, tzinfo=UTC))
    read = Record(copy.topic, copy.partition, 77, 0, 0, copy.key, copy.value, copy.headers)
    stream = Stream(topic=copy.topic, topic_id=UUID(int=6), source="t", tier="5s")
    assert delivery_of(read, stream).id == place


@pytest.mark.case("T-12")
def test_a_copy_of_a_tombstone_has_no_payload() -> None:
    copy = to_quarantine(quarantined((), payload=None), "g")
    assert (copy.key, copy.value, copy.topic, copy.partition) == (b"k", None, "t.g.quarantine", 1)
    assert dict(copy.headers)["first-failed-at"] == b"2026-01-02T03:04:05.000006Z"
    assert "due-at" not in dict(copy.headers)


@pytest.mark.case("T-19")
def test_a_copy_keeps_key_partition_and_origin_through_every_tier_and_round() -> None:
    """Fails when a round in a longer tier builds its headers anew, or goes by the tier's own partition count or key."""
    due = datetime(2026, 1, 2, tzinfo=UTC)
    copy = to_tier(quarantined((("id", str(UUID(int=9)).encode()), ("x", None))), "g", "5s", due)
    assert (copy.topic, copy.partition, copy.key, copy.value) == ("t.g.retry.5s", 1, b"k", b"v")
    assert dict(copy.headers)["due-at"] == b"2026-01-02T00:00:00.000000Z"
    read = Record(copy.topic, copy.partition, 77, 0, 0, copy.key, copy.value, copy.headers)
    stream = Stream(topic=copy.topic, topic_id=UUID(int=6), source="t", tier="5s")
    again = circling(delivery_of(read, stream), "g", "10m")
    assert again.topic == "t.g.retry.10m"
    assert (again.id, again.attempt, again.partition) == (copy.id, 4, 1)
    assert (again.key, again.value, again.headers) == (copy.key, copy.value, copy.headers)
    assert delivery_of(read, stream).origin == ("t", TOPIC_ID, 1, 3)


@pytest.mark.case("T-18")
@pytest.mark.parametrize(("recorded", "goes_to"), [("5s", "5s"), ("2s", "5s"), ("7s", "1m"), ("1h", "1m")])
def test_a_retry_of_a_tier_that_is_gone_goes_to_one_that_is_read(recorded: str, goes_to: str) -> None:
    """Fails when the recorded tier is taken as it is: its copies would fail for ever, and with them all that go together."""
    read = {f"t.g.retry.{tier}": ReadTopic("t", tier) for tier in ("1m", "0s", "5s")}
    read |= {"t": ReadTopic("t", None), "other.g.retry.8s": ReadTopic("other", "8s")}
    message = quarantined(())._replace(tier=recorded)
    assert where_read(message, "g", read).tier == goes_to
    assert where_read(quarantined(()), "g", read).tier is None


def test_a_wake_up_carries_no_message_and_says_so() -> None:
    copy = wake_up(UUID(int=9), group="g", source="t", partition=1, key=b"k")
    assert (copy.topic, copy.partition, copy.key, copy.value) == ("t.g.retry.0s", 1, b"k", None)
    read = Record(copy.topic, copy.partition, 7, 0, 0, copy.key, copy.value, copy.headers)
    found = delivery_of(read, CARRIER)
    assert (found.id, found.attempt, found.wakes) == (UUID(int=9), 0, True)
    foreign = delivery_of(record((("reason", b"wake"), ("attempt", b"0"))), SOURCE)
    assert not foreign.wakes, "a message of the source is none, whatever its headers say"
    assert not delivery_of(
        record(to_retry(quarantined(()), "g", datetime(2026, 1, 1, tzinfo=UTC)).headers), CARRIER
    ).wakes


def test_a_carrier_that_was_tampered_with_is_no_copy_of_anything() -> None:
    found = delivery_of(record((("attempt", b"x"), ("source-offset", b"-1"))), CARRIER)
    assert found.attempt is None
    assert found.origin.offset == 3


@given(HEADERS)
def test_headers_survive_the_table(headers: HeaderList) -> None:
    assert headers_of(headers_text(headers)) == headers
