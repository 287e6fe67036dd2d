"""What is judged of a row without a record, and of a record without a row."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from packhorse.core.errors import SettingsError
from packhorse.core.partitions import partition_of
from packhorse.relay.verify.model import Absent, Found, Kept, Question, Report, Stretch, Topic
from packhorse.relay.verify.times import time_from

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
KEY = "N14228"
NUMBER = partition_of(KEY.encode(), 12)
ROW = Absent("an-id", 7, "orders", KEY, NOON, False, False, ())
TOPIC = Topic(name="shop.orders", partitions=12)


def judged(row: Absent, topic: Topic = TOPIC, *, since: dict[int, datetime | None] | None = None) -> Found:
    cut = {(topic.name, number): at for number, at in (since or {}).items()}
    return Kept(topics={topic.name: topic}, since=cut).judge(row, topic.name)


def test_a_row_without_a_record_is_missing() -> None:
    assert judged(ROW) is Found.MISSING
    assert judged(ROW, Topic(name="shop.orders", partitions=0)) is Found.MISSING, "the topic is gone"


def test_what_a_person_gave_up_and_what_a_hold_keeps_back_is_no_loss() -> None:
    assert judged(replace_(ROW, discarded=True)) is Found.DISCARDED
    assert judged(replace_(ROW, held=True)) is Found.HELD
    assert judged(replace_(ROW, held_partitions=((NUMBER, 12),))) is Found.HELD
    other = (NUMBER + 1) % 12
    assert judged(replace_(ROW, held_partitions=((other, 12),))) is Found.MISSING


def test_what_the_rows_own_partition_may_have_deleted_is_not_judged() -> None:
    later, earlier = NOON + timedelta(hours=1), NOON - timedelta(hours=1)
    assert judged(ROW, since={NUMBER: later}) is Found.OLDER
    assert judged(ROW, since={NUMBER: None}) is Found.OLDER, "nothing is left there"
    assert judged(ROW, since={NUMBER: earlier}) is Found.MISSING
    assert judged(ROW, since={(NUMBER + 1) % 12: later}) is Found.MISSING
    assert judged(replace_(ROW, key=None), since={5: later}) is Found.OLDER, (
        "without key it may have been anywhere"
    )


def test_a_compacted_topic_is_not_judged() -> None:
    assert judged(ROW, replace(TOPIC, compacted=True)) is Found.COMPACTED


def replace_(row: Absent, **changed: object) -> Absent:
    return replace(row, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "start", "end", "cut"),
    [
        (0, 0, 10, False),  # it has had no record deleted
        (5, 7, 10, False),  # reading begins behind what was deleted
        (5, 5, 10, True),
        (10, 10, 10, True),  # it had ten, and has none
        (5, 10, 10, False),  # no record since, and older ones are left
    ],
)
def test_a_partition_may_have_lost_what_was_asked_for_when_reading_begins_at_its_first_record(
    low: int, start: int, end: int, cut: bool
) -> None:
    assert Stretch(topic="t", partition=0, low=low, start=start, end=end).maybe_cut is cut


def test_a_question_names_what_it_can_not_ask() -> None:
    question = Question(since=NOON, until=None, namespace="shop", topics=("shop.orders",))
    assert question.aggregatetype("shop.orders") == "orders"
    with pytest.raises(SettingsError, match="not after --since"):
        Question(since=NOON, until=NOON, namespace="shop")
    with pytest.raises(SettingsError, match="not in the namespace 'shop'"):
        Question(since=NOON, until=None, namespace="shop", topics=("other.orders",))
    with pytest.raises(SettingsError, match="--since 'yesterday' is no time"):
        time_from("yesterday", flag="--since")


def test_a_report_tells_ids_and_next_steps_and_nothing_of_keys() -> None:
    report = Report(
        since=NOON, until=NOON, incarnation="7/00000001", topics=["shop.orders"], gone=1, retired=3,
        gone_list=[{"id": "id-1", "topic": "shop.orders", "partition": 2, "offset": 40, "at": "then"}],
        rows={"rows": 9, "missing": 1}, missing_list=[{"id": "id-2", "seq": 8, "topic": "shop.orders"}],
        absent_topics=["shop.lost"], missing_ranges={"shop.orders": (8, 8)},
    )  # fmt: skip
    text = "\n".join(report.lines())
    for word in (
        "id-1",
        "shop.orders/2 offset 40",
        "id-2",
        "seq 8",
        "packhorse relay republish --topic shop.orders --from 8 --to 8",
        "shop.lost does not exist",
    ):
        assert word in text
    assert not report.agrees
    assert report.as_dict()["missing"] == 1
    assert KEY not in repr(ROW)
