"""Where reading starts: from the watermark in the database and what the group's coordinator holds, decided purely."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from packhorse.processor.storing.store import Mark


class MissingRecords(StrEnum):
    """What to do when records above the watermark are no longer in the topic."""

    STOP = "stop"
    CONTINUE = "continue"


class LogEnds(NamedTuple):
    """What the broker says of a partition: the first offset, the next one, and the group's committed offset."""

    low: int
    high: int
    committed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """
    Read from *offset*.

    Attributes:
        offset: Where reading starts.
        watermark: What the watermark is to be.
        first: There is no watermark yet; write it.
        adopt: Another server wrote the watermark, or it moves over a gap; take it over.
        notice: What an operator should know, with numbers.
    """

    offset: int
    watermark: int
    first: bool = False
    adopt: bool = False
    notice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoStart:
    """Do not read: *text* says why and what to do; *waits* when that can pass by itself."""

    text: str
    waits: bool = False


def start_of(
    mark: Mark, ends: LogEnds, *, where: str, group: str, missing: MissingRecords, carries: bool = False
) -> Start | NoStart:
    """
    Return where reading starts; *where* is topic[partition], for the texts.

    Neither watermark nor committed offset: at the earliest. A watermark alone: from it. A committed offset alone: not,
    since nobody knows whether its results are in this database; but when the database knows a topic of this name with another
    id, the topic was made anew, and is read from the earliest. Both: from the lower.

    Of a topic that *carries* copies nothing is ever missed: all that waits is in the database, which sends it again. So there
    reading starts wherever it can, and no gap stops it.
    """
    if carries and (mark.offset is None or not ends.low <= mark.offset <= ends.high):
        return _of_a_tier(mark, ends, where=where)
    if mark.offset is None:
        return _without_watermark(mark, ends, where=where, group=group)
    watermark = mark.offset
    if watermark > ends.high:
        return NoStart(
            text=f"{where} ends at offset {ends.high} and the watermark of group {group} is {watermark}: "
            f"{watermark - ends.high} records are gone from its end (an unclean leader change, or the topic was cut); "
            f"if it stays so, stop the group and run `packhorse offsets reset`",
            waits=True,
        )
    if watermark < ends.low:
        return _over_the_gap(watermark, ends, where=where, missing=missing)
    committed = watermark if ends.committed is None else ends.committed
    notice = ""
    if committed > watermark:
        notice = (
            f"the database is behind: watermark {watermark}, committed offset {committed}; "
            f"the results of {committed - watermark} offsets are made again"
        )
    elif not mark.same:
        notice = "the database server is another than before (restored or failed over); the watermark is taken over"
    return Start(
        offset=max(ends.low, min(watermark, committed)),
        watermark=watermark,
        adopt=not mark.same,
        notice=notice,
    )


def _of_a_tier(mark: Mark, ends: LogEnds, *, where: str) -> Start:
    """Start a tier's partition that was made anew, trimmed beyond a restored watermark, or cut at its end."""
    if mark.offset is None:
        return Start(offset=ends.low, watermark=ends.low, first=True)
    start = ends.low if mark.offset < ends.low else ends.high
    notice = f"{where} holds offsets {ends.low} to {ends.high} and the watermark is {mark.offset}; it goes on at {start}, "
    return Start(
        offset=start,
        watermark=start,
        adopt=True,
        notice=notice + "what still waits is sent again from the database",
    )


def _without_watermark(mark: Mark, ends: LogEnds, *, where: str, group: str) -> Start | NoStart:
    if mark.elsewhere:
        # Whatever was committed is of the earlier topic, or of results that this database does not have.
        notice = f"{where} was made anew; its messages are read from the earliest, offset {ends.low}"
        return Start(offset=ends.low, watermark=ends.low, first=True, notice=notice)
    if ends.committed is None:
        return Start(offset=ends.low, watermark=ends.low, first=True)
    return NoStart(
        text=f"group {group} has committed offset {ends.committed} of {where}, and this database has no watermark for it: "
        "it is another database, or another program used the group; stop the group and say "
        "which counts: `packhorse offsets reset --to committed|earliest|latest`"
    )


def _over_the_gap(watermark: int, ends: LogEnds, *, where: str, missing: MissingRecords) -> Start | NoStart:
    size = ends.low - watermark
    gap = f"offsets {watermark} to {ends.low - 1} ({size}) of {where} have no result and are no longer in the topic"
    if missing is MissingRecords.STOP:
        return NoStart(
            text=f"{gap}; restore them, or stop the group and accept the loss with "
            "`packhorse offsets reset --to earliest` (or the setting missing_records=continue)"
        )
    return Start(
        offset=ends.low,
        watermark=ends.low,
        adopt=True,
        notice=f"{gap}; going on behind them, as missing_records=continue says",
    )
