"""What a replay decides: its ranges, what is handed over and how, when it waits, halts and ends."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from packhorse.console.replaying.checks import (
    GroupFacts,
    check_allowed,
    check_handler,
    checks_of,
)
from packhorse.console.replaying.handing.deciding import Facts, Hand, decide
from packhorse.console.replaying.handing.learning import Lasts, Tail
from packhorse.console.replaying.ranges import Log, Range, check_topic, ranges_of
from packhorse.console.replaying.reading import SILENT, Batch, batches
from packhorse.console.replaying.records import (
    Seen,
    Standing,
    handing,
    hashed,
    is_handed,
    matcher_of,
    standing_of,
)
from packhorse.console.replaying.tally import Tally
from packhorse.console.replaying.wanted import Wanted, wanted_from
from packhorse.console.running.deciding import End, Halt, Wait
from packhorse.core.errors import BrokerUnavailable, NotReady, UsageError
from packhorse.core.ids import id_of, replayed_id, time_of, uuid7_from
from packhorse.processor.record import Delivery, Record, Stream, delivery_of, digest_of, replay_handler_of

TOPIC_ID = UUID(int=7)
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
GROUP = GroupFacts(now=NOW, kept_from=None, members=1, handlers=(), pauses=())


def wanted(**given: Any) -> Wanted:
    told: dict[str, Any] = {"group": "g", "topic": "t", "since": NOW} | given
    return Wanted(**told)


def record(offset: int, key: bytes | None = b"k", value: bytes | None = b"v", **headers: str) -> Record:
    told = {"id": str(uuid7_from(NOW, offset.to_bytes(10))), "type": "T"} | headers
    kept = tuple((name.replace("_", "-"), text.encode()) for name, text in told.items())
    return Record("t", 0, offset, None, int(NOW.timestamp() * 1000), key, value, kept)


def delivery(offset: int, **given: Any) -> Delivery:
    return delivery_of(record(offset, **given), Stream(topic="t", topic_id=TOPIC_ID, source="t"))


@pytest.mark.parametrize(
    ("given", "about"),
    [
        ({"since": None}, "say the range"),
        ({"from_offset": 1}, "say the range"),
        ({"since": None, "from_offset": 1}, "name it with --partition"),
        ({"since": None, "from_offset": -1, "partitions": (0,)}, "0 or more"),
        ({"since": None, "from_offset": 3, "to_offset": 3, "partitions": (0,)}, "the range is empty"),
        ({"since": NOW.replace(tzinfo=None)}, "has no zone"),
        ({"until": NOW}, "not before --until"),
        ({"beyond": True}, "--beyond belongs to --again"),
        ({"with_discarded": True}, "--with-discarded belongs to --again"),
        ({"again": True, "handler": "h"}, "leave --again out"),
        ({"rate": 0.0}, "--rate 0"),
        ({"most_failures": -1}, "--most-failures"),
        ({"keys": ("\x1b",), "left_out": ("\x1b",)}, r"key \\x1b is both"),
    ],
)
def test_what_is_not_allowed_is_named(given: dict[str, Any], about: str) -> None:
    """Fails when a wish that can't be meant is planned."""
    with pytest.raises(UsageError, match=about):
        wanted(**given)


def test_a_wish_is_kept_as_it_was() -> None:
    """Fails when a plan is run otherwise than it was made."""
    made = wanted(partitions=(1, 2), types=("T",), until=NOW + timedelta(hours=1), again=True)
    assert wanted_from({**made.as_json(), "counts": {}}) == made


@pytest.mark.parametrize(
    ("given", "log", "found"),
    [
        ({"from_offset": 0}, {}, Range(partition=0, first=5, past=20, gone=5, ahead=10)),
        ({"from_offset": 7, "to_offset": 12}, {}, Range(partition=0, first=7, past=12)),
        ({"from_offset": 7, "to_offset": 99}, {}, Range(partition=0, first=7, past=20, ahead=10)),
        ({"to_offset": 6}, {}, Range(partition=0, first=5, past=6)),
        ({"since": NOW}, {"since": 9}, Range(partition=0, first=9, past=20, ahead=10)),
        ({"until": NOW}, {"until": 9}, Range(partition=0, first=5, past=9)),
    ],
)
def test_a_range_ends_at_the_log_and_at_the_watermark(
    given: dict[str, Any], log: dict[str, int], found: Range
) -> None:
    """Fails when what the live group does itself is replayed too, or what is gone is not counted."""
    by_time = "since" in given or "until" in given
    wish = Wanted(group="g", topic="t", partitions=() if by_time else (0,), **given)
    stands = Log(partition=0, low=5, high=30, watermark=20, **log)
    assert ranges_of(wish, [stands]) == [found]


@pytest.mark.parametrize(
    ("given", "log", "about"),
    [
        ({"partitions": (3,)}, {}, "partition 3 of t does not exist"),
        ({}, {"watermark": None}, "it has never read it"),
        ({"to_offset": 4}, {}, "all 4 offsets of the range are no longer in the log"),
        ({"from_offset": 22}, {}, "has dealt with none of its 8 offsets"),
        ({"from_offset": 40}, {}, r"the range is empty; the log holds \[0\] 5 to before 30"),
    ],
)
def test_an_empty_range_says_why(given: dict[str, Any], log: dict[str, Any], about: str) -> None:
    """Fails when a range that holds nothing is planned, or its reason is not told."""
    told: dict[str, Any] = {"group": "g", "topic": "t", "partitions": (0,), "from_offset": 0} | given
    with pytest.raises(UsageError, match=about):
        ranges_of(Wanted(**told), [Log(**({"partition": 0, "low": 5, "high": 30, "watermark": 20} | log))])


def test_a_topic_that_was_made_anew_is_refused() -> None:
    """Fails when offsets of another topic of that name are replayed."""
    check_topic(wanted(), TOPIC_ID, {TOPIC_ID: 1})
    check_topic(wanted(), TOPIC_ID, {})
    with pytest.raises(NotReady, match="was made anew"):
        check_topic(wanted(), TOPIC_ID, {UUID(int=8): 1})


@pytest.mark.parametrize(
    ("seen", "kept_from", "standing"),
    [
        (None, None, Standing.NEVER),
        (None, NOW, Standing.NEVER),
        (None, NOW + timedelta(milliseconds=1), Standing.OLDER),
        (Seen("done", digest_of(b"v")), NOW + timedelta(hours=1), Standing.DONE),
        (Seen("skipped", None), None, Standing.DONE),
        (Seen("discarded", None), None, Standing.DISCARDED),
        (Seen("discarded", None, edited=True), None, Standing.EDITED),
        (Seen("discarded", digest_of(b"other"), purged=True), None, Standing.PURGED),
        (Seen("done", None, purged=True), None, Standing.PURGED),
        (Seen("quarantine", None), None, Standing.OPEN),
        (Seen("done", digest_of(b"other")), None, Standing.REUSED),
    ],
)
def test_the_inbox_decides(seen: Seen | None, kept_from: datetime | None, standing: Standing) -> None:
    """Fails when a missing row of a time that the inbox has forgotten counts as never done."""
    assert standing_of(delivery(1), seen, kept_from) is standing


def test_only_what_was_never_done_is_handed_over_unless_again_was_said() -> None:
    """Fails when something that waits elsewhere is handed over too."""
    handed = [one for one in Standing if is_handed(one, wanted())]
    again = {one for one in Standing if is_handed(one, wanted(again=True))}
    assert handed == [Standing.NEVER]
    assert again == {Standing.NEVER, Standing.DONE, Standing.OLDER}


def test_what_a_person_gave_up_comes_about_only_where_that_was_said() -> None:
    """Fails when --again hands over what was discarded, or --with-discarded what was purged or edited."""
    along = {one for one in Standing if is_handed(one, wanted(again=True, with_discarded=True))}
    assert along == {Standing.NEVER, Standing.DONE, Standing.OLDER, Standing.DISCARDED}
    assert not is_handed(Standing.PURGED, wanted(handler="rebuild"))


def test_what_was_never_done_keeps_its_bytes_and_id() -> None:
    """Fails when a backfill invents an identity: a later one would repeat it."""
    one = delivery(3)
    made = handing(one, Standing.NEVER, wanted(again=True), run=9)
    assert (made.id, made.headers, made.stand_in) == (one.id, one.record.headers, None)


def test_what_is_done_once_more_has_an_id_of_run_and_message() -> None:
    """Fails when two runs, or two groups, share an identity, or a copy in a tier is known by another id."""
    one = delivery(3)
    made = handing(one, Standing.DONE, wanted(again=True), run=9)
    headers = dict(made.headers)
    assert id_of(headers["id"]) == made.id == replayed_id(one.id, 9, "g")
    assert headers["replay-of"] == str(one.id).encode()
    assert time_of(made.id) == NOW
    assert len({replayed_id(one.id, run, group) for run in (9, 10) for group in ("g", "h")}) == 4
    copied = replace_headers(one, made.headers)
    assert replay_handler_of(copied) is None
    once_more = handing(copied, Standing.DONE, wanted(handler="rebuild"), run=10)
    named = replace_headers(one, once_more.headers)
    assert replay_handler_of(named) == "rebuild"
    assert [name for name, _ in once_more.headers].count("replay-of") == 1


def replace_headers(one: Delivery, headers: Any) -> Delivery:
    return delivery_of(one.record._replace(headers=headers), Stream(topic="t", topic_id=TOPIC_ID, source="t"))


def test_messages_without_a_key_share_stand_ins() -> None:
    """Fails when each has a parked key of its own, or all share one."""
    made = [handing(delivery(n, key=None), Standing.NEVER, wanted(), run=9) for n in range(64)]
    assert len({one.hash for one in made}) == 8
    assert all(one.stand_in and one.hash == hashed(one.stand_in) for one in made)


def test_the_filter_looks_at_type_and_key() -> None:
    """Fails when a filter lets through what is not wanted."""
    records = [record(0), record(1, key=b"a"), record(2, key=None), record(3, type="U")]
    for given, offsets in (
        ({}, [0, 1, 2, 3]),
        ({"types": ("T",)}, [0, 1, 2]),
        ({"keys": ("a",)}, [1]),
        ({"left_out": ("k",)}, [1, 2]),
    ):
        match = matcher_of(wanted(**given), TOPIC_ID)
        assert [one.record.offset for one in match(records)] == offsets
        assert [one.offset for one in match.only(records)] == offsets


def test_a_tally_tells_order_from_disorder() -> None:
    """Fails when an older message that comes after a newer one of its key is not told of."""
    tally = Tally()
    some = [
        delivery(0),
        delivery(1, key=b"a"),
        delivery(2),
        delivery(3, key=None, value=None, expires_at="2020-01-01T00:00:00Z"),
    ]
    tally.take(some, [Standing.NEVER, Standing.NEVER, Standing.DONE, Standing.NEVER], wanted(), now=NOW)
    tally.look_beyond([record(9, key=b"a"), record(10, key=b"b"), record(11, key=None)])
    found = tally.as_json()
    assert (found["keys"], found["keys_behind"], found["keys_beyond"]) == (2, 1, 1)
    assert (found["tombstones"], found["keyless"], found["expired"], found["handed"]) == (1, 1, 1, 3)


def test_checks_say_what_matters_and_refuse_what_would_go_back_in_time() -> None:
    """Fails when --again puts old state over new without a word."""
    tally = Tally(read=4, matched=4, handed=4, keys={1, 2}, beyond={1}, stuck=1, expired=2)
    with pytest.raises(UsageError, match="1 of 2 keys"):
        check_allowed(wanted(again=True), tally)
    check_allowed(wanted(again=True, beyond=True), tally)
    check_allowed(wanted(), tally)
    group = replace(GROUP, members=0, pauses=("", "t[1]"), open_runs=(5,))
    some = Range(partition=0, first=0, past=4, gone=3, ahead=2)
    codes = [one.code for one in checks_of(wanted(types=("T",)), [some], tally, group)]
    assert codes == [
        "keys-beyond",
        "no-processor",
        "paused",
        "paused",
        "stuck",
        "expired",
        "open-run",
        "gone",
        "ahead",
        "matches-all",
    ]
    with pytest.raises(UsageError, match="matches none"):
        check_allowed(wanted(types=("T",)), Tally(read=4))
    with pytest.raises(UsageError, match="they know: other"):
        check_handler(wanted(handler="rebuild"), replace(GROUP, handlers=("other",)))


FACTS = Facts(left=True, unproved=0, resting=0, failed=0, retrying=0, most_failures=2, rate=500)


@pytest.mark.parametrize(
    ("changed", "allowance", "what"),
    [
        ({}, 1000.0, Hand(most=200)),
        ({}, 0.5, Wait(seconds=0.001)),
        ({"unproved": 1990}, 1000.0, Hand(most=10)),
        ({"unproved": 2000}, 1000.0, Wait(seconds=0.2)),
        ({"resting": 9_000}, 1000.0, Hand(most=200)),
        ({"failed": 1, "retrying": 1}, 1000.0, Hand(most=200)),
        ({"left": False, "unproved": 1}, 0.0, Wait(seconds=0.2)),
        ({"left": False}, 0.0, End(said=None)),
        ({"left": False, "failed": 9}, 0.0, End(said="9 messages stopped in quarantine or as uncertain")),
    ],
)
def test_the_runner_hands_over_as_fast_as_rate_and_group_allow(
    changed: dict[str, Any], allowance: float, what: object
) -> None:
    """Fails when more is handed over than the group works off, or what rests keeps the rest waiting."""
    assert decide(replace(FACTS, **changed), allowance) == what


@pytest.mark.parametrize("changed", [{"failed": 2, "retrying": 1}, {"resting": 10_001}])
def test_the_runner_halts_when_too_much_fails_or_rests(changed: dict[str, Any]) -> None:
    """Fails when a replay fills quarantine, or piles up behind keys that stand still."""
    assert isinstance(decide(replace(FACTS, **changed), 100.0), Halt)


def test_a_run_ends_with_what_rests_named() -> None:
    """Fails when a run waits for ever for a person."""
    end = decide(replace(FACTS, left=False, resting=3), 0.0)
    assert isinstance(end, End)
    assert end.said is not None
    assert "3 messages rest" in end.said


def test_it_is_known_of_which_keys_more_comes() -> None:
    """Fails when a key is let go before its last message, or held behind it."""
    lasts = Lasts(matcher_of(wanted(types=("T",)), TOPIC_ID), past=9)
    lasts.learn(
        [record(0), record(1, key=b"a"), record(4), record(7, type="U"), record(8, key=b"a", type="U")]
    )
    more, through = lasts.split([delivery(0), delivery(1, key=b"a"), delivery(2, key=None)], to=3)
    assert (set(more), set(through)) == ({hashed(b"k")}, {hashed(b"a")})
    assert lasts.split([delivery(4)], to=5) == (frozenset(), frozenset({hashed(b"k")}))


def test_a_key_that_moved_on_is_left_out_unless_it_is_in_hand() -> None:
    """Fails when a message that is not dealt with yet counts, or one that waits for the replay."""
    tail = Tail(10, {hashed(b"mine")}, read=10)
    tail.take([record(10, key=b"mine"), record(11, key=b"k"), record(12, key=b"a")], None)
    assert tail.advance(12)
    assert [
        one.record.key
        for one in tail.stay([delivery(n, key=key) for n, key in enumerate((b"mine", b"k", b"a", None))])
    ] == [
        b"mine",
        b"a",
        None,
    ]
    assert not tail.advance(20)
    assert len(tail.stay([delivery(5, key=b"a")])) == 1


def test_a_key_that_is_done_above_the_watermark_has_moved_on() -> None:
    """Fails when only what is below the watermark counts: one slow message would hide that later ones of other keys are done."""
    tail = Tail(10, {hashed(b"mine")}, read=10)
    above = [record(11, key=b"k"), record(12, key=b"mine"), record(13, key=b"other"), record(14, key=None)]
    tail.take(above, 15)
    assert tail.advance(10)
    assert tail.whole
    assert not tail.far
    mine = [delivery(n, key=key) for n, key in enumerate((b"mine", b"k", None))]
    assert [one.offset for one in tail.unsure(mine)] == [11]
    tail.mark(above[:1])
    assert [one.record.key for one in tail.stay(mine)] == [b"mine", None]


class Script:
    """A reader that brings what it is told."""

    def __init__(self, *found: Batch) -> None:
        self._found = list(found)

    def begin(self, partition: int, offset: int) -> None:
        """Take it."""

    def batch(self, most: int, wait: float) -> Batch:
        """Return the next."""
        return self._found.pop(0) if self._found else Batch([], None)

    def close(self) -> None:
        """Do nothing."""


def test_a_range_is_read_to_its_end_whatever_stands_there() -> None:
    """Fails when a reader waits for a last record that is a mark of a transaction, or reads on behind the range."""
    whole = [Batch([record(0), record(1)], None), Batch([record(2), record(5)], None)]
    assert [[one.offset for one in some] for some in batches(Script(*whole), 0, 0, 4)] == [[0, 1], [2]]
    marked = [Batch([record(0)], None), Batch([], 3)]
    assert [len(some) for some in batches(Script(*marked), 0, 0, 3)] == [1]
    assert list(batches(Script(), 0, 3, 3)) == []


def test_a_broker_that_says_nothing_is_away() -> None:
    """Fails when a plan waits for ever."""
    with pytest.raises(BrokerUnavailable, match=f"for {SILENT} s"):
        list(batches(Script(), 0, 0, 4))
