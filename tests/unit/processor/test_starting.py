"""Where reading starts and where a reset moves it: tables of rules."""

from typing import Any
from uuid import UUID

import pytest

from packhorse.core.errors import UsageError
from packhorse.processor.offsets.resetting import Move, Reset, Standing, moves
from packhorse.processor.offsets.starting import LogEnds, MissingRecords, NoStart, Start, start_of
from packhorse.processor.storing.store import Mark

NOTHING = Mark(None, None, False, 0)
STOP, CONTINUE = MissingRecords.STOP, MissingRecords.CONTINUE


def mark(offset: int, *, same: bool = True) -> Mark:
    return Mark(offset, 0, same, 0)


def start(found: Mark, ends: LogEnds, missing: MissingRecords = STOP) -> Start | NoStart:
    return start_of(found, ends, where="t[0]", group="g", missing=missing)


@pytest.mark.case("P-31")
@pytest.mark.case("P-32")
@pytest.mark.parametrize(
    ("found", "ends", "offset", "watermark"),
    [
        (mark(5), LogEnds(0, 9, None), 5, 5),  # a watermark alone: from it
        (mark(5), LogEnds(0, 9, 5), 5, 5),
        (mark(5), LogEnds(0, 9, 9), 5, 5),  # the group's offset is ahead: the database counts
        (mark(5), LogEnds(0, 9, 2), 2, 5),  # it is behind: below the watermark all are duplicates
        (mark(5), LogEnds(4, 9, 2), 4, 5),  # what is gone from the topic has its result
        (mark(9), LogEnds(0, 9, 9), 9, 9),
    ],
)
def test_both_known_reads_from_the_lower(found: Mark, ends: LogEnds, offset: int, watermark: int) -> None:
    where = start(found, ends)
    assert isinstance(where, Start)
    assert (where.offset, where.watermark, where.first, where.adopt) == (offset, watermark, False, False)


def test_neither_known_reads_from_the_earliest_and_writes_the_watermark_first() -> None:
    assert start(NOTHING, LogEnds(3, 9, None)) == Start(offset=3, watermark=3, first=True)


@pytest.mark.case("P-32")
def test_a_committed_offset_alone_is_refused() -> None:
    where = start(NOTHING, LogEnds(0, 9, 7))
    assert isinstance(where, NoStart)
    assert not where.waits
    assert "committed offset 7 of t[0]" in where.text
    assert "packhorse offsets reset" in where.text


@pytest.mark.parametrize("committed", [None, 7])
def test_a_topic_that_was_made_anew_is_read_from_its_earliest(committed: int | None) -> None:
    """Fails when the offset that was committed for the earlier topic is believed, or stops the partition."""
    where = start(Mark(None, None, False, 2), LogEnds(3, 9, committed))
    assert isinstance(where, Start)
    assert (where.offset, where.watermark, where.first) == (3, 3, True)
    assert "t[0] was made anew" in where.notice


@pytest.mark.case("P-31")
def test_another_server_is_noticed_and_its_watermark_taken_over() -> None:
    where = start(mark(5, same=False), LogEnds(0, 9, 8))
    assert isinstance(where, Start)
    assert where.adopt
    assert "the results of 3 offsets are made again" in where.notice


@pytest.mark.case("P-28")
def test_a_gap_is_named_with_its_size() -> None:
    where = start(mark(5), LogEnds(8, 9, 5))
    assert isinstance(where, NoStart)
    assert "offsets 5 to 7 (3) of t[0]" in where.text
    assert start(mark(5), LogEnds(8, 9, 5), CONTINUE) == Start(
        offset=8,
        watermark=8,
        adopt=True,
        notice="offsets 5 to 7 (3) of t[0] have no result and are no longer in the topic; going on behind them, "
        "as missing_records=continue says",
    )


def test_a_log_that_ends_below_the_watermark_is_waited_for_and_named() -> None:
    where = start(mark(9), LogEnds(0, 7, 9))
    assert isinstance(where, NoStart)
    assert where.waits
    assert "2 records are gone from its end" in where.text


@pytest.mark.case("P-31")
@pytest.mark.parametrize(
    ("found", "ends", "offset", "first"),
    [
        (
            NOTHING,
            LogEnds(4, 9, 7),
            4,
            True,
        ),  # made anew, the coordinator has not forgotten the old offset yet
        (mark(2), LogEnds(4, 9, 9), 4, False),  # the database was restored, the tier trimmed since
        (mark(9), LogEnds(0, 7, 9), 7, False),  # records are gone from its end
        (mark(5), LogEnds(0, 9, 5), 5, False),
    ],
)
def test_a_tier_starts_wherever_it_can(found: Mark, ends: LogEnds, offset: int, *, first: bool) -> None:
    """Fails when a tier is judged like a source: one that was trimmed would stop the process after each restore."""
    where = start_of(found, ends, where="t.g.retry.5s[0]", group="g", missing=STOP, carries=True)
    assert isinstance(where, Start)
    assert (where.offset, where.watermark, where.first) == (offset, offset, first)
    assert where.adopt is (offset in {4, 7} and not first)


STANDINGS = [
    Standing("t", UUID(int=1), 0, 5, 5, 2, 9),
    Standing("t", UUID(int=1), 1, None, 3, 0, 3),
]


def test_a_reset_moves_what_is_not_there_yet() -> None:
    assert moves(STANDINGS, Reset(to="committed")) == [Move(STANDINGS[1], 3)]
    assert moves(STANDINGS, Reset(to="earliest")) == [Move(STANDINGS[0], 2), Move(STANDINGS[1], 0)]
    assert moves(STANDINGS, Reset(to="latest", partition=0)) == [Move(STANDINGS[0], 9)]
    assert moves(STANDINGS, Reset(to="5", partition=0)) == []


@pytest.mark.parametrize(
    ("given", "about"),
    [
        ({"to": "now"}, "'now' is not allowed"),
        ({"to": "²", "partition": 0}, "'²' is not allowed"),
        ({"to": "7"}, "name it with --partition"),
        ({"to": "10", "partition": 0}, "offset 10 is not in"),
        ({"to": "1", "partition": 0}, "offset 1 is not in"),
        ({"to": "latest", "partition": 7}, "partition 7 does not exist"),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused(given: dict[str, Any], about: str) -> None:
    with pytest.raises(UsageError, match=about):
        moves(STANDINGS, Reset(**given))
    none = [STANDINGS[0]._replace(committed=None)]
    with pytest.raises(UsageError, match="has no committed offset"):
        moves(none, Reset(to="committed"))
