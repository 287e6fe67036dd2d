"""Dates and times, checked strictly on the way to the wire and made on the way back."""

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

from packhorse.schemas.mismatch import Mismatch, Unreadable

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LOCAL_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - local timestamps have no zone
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_FIRST_MICRO: Final = (dt.datetime.min.replace(tzinfo=dt.UTC) - EPOCH) // dt.timedelta(microseconds=1)
_LAST_MICRO: Final = (dt.datetime.max.replace(tzinfo=dt.UTC) - EPOCH) // dt.timedelta(microseconds=1)
_DAY_MICROS = 86_400_000_000


def take_date(value: Any) -> int:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.toordinal() - _EPOCH_DAY
    raise Mismatch(value, "datetime.date (a datetime would lose its time)")


def take_micros(value: Any) -> int:
    if isinstance(value, dt.datetime) and value.tzinfo is not None and value.utcoffset() is not None:
        delta = value - EPOCH
        micros = (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
        if _FIRST_MICRO <= micros <= _LAST_MICRO:
            return micros
    raise Mismatch(value, "aware datetime (with tzinfo) of the years 1 to 9999 in UTC", why=_zone(value))


def take_millis(value: Any) -> int:
    millis, rest = divmod(take_micros(value), 1_000)
    if rest:
        raise Mismatch(value, "aware datetime in whole milliseconds; round it before", why=f"{rest} µs over")
    return millis


def take_local_micros(value: Any) -> int:
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        delta = value - _LOCAL_EPOCH
        return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
    raise Mismatch(value, "datetime without tzinfo")


def take_local_millis(value: Any) -> int:
    millis, rest = divmod(take_local_micros(value), 1_000)
    if rest:
        raise Mismatch(
            value, "datetime without tzinfo in whole milliseconds; round it before", why=f"{rest} µs over"
        )
    return millis


def take_time_micros(value: Any) -> int:
    if isinstance(value, dt.time) and value.tzinfo is None:
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * 1_000_000 + value.microsecond
    raise Mismatch(value, "datetime.time without tzinfo")


def take_time_millis(value: Any) -> int:
    millis, rest = divmod(take_time_micros(value), 1_000)
    if rest:
        raise Mismatch(value, "datetime.time in whole milliseconds; round it before", why=f"{rest} µs over")
    return millis


def _zone(value: Any) -> str:
    return "no time zone" if isinstance(value, dt.datetime) and value.utcoffset() is None else ""


def make_date(wire: int) -> dt.date:
    try:
        return dt.date.fromordinal(wire + _EPOCH_DAY)
    except (ValueError, OverflowError):
        raise Unreadable("a date outside of the years 1 to 9999") from None


def make_micros(wire: int) -> dt.datetime:
    try:
        return EPOCH + dt.timedelta(0, 0, wire)
    except OverflowError:
        raise Unreadable("a time outside of the years 1 to 9999") from None


def make_millis(wire: int) -> dt.datetime:
    return make_micros(wire * 1_000)


def make_local_micros(wire: int) -> dt.datetime:
    try:
        return _LOCAL_EPOCH + dt.timedelta(0, 0, wire)
    except OverflowError:
        raise Unreadable("a time outside of the years 1 to 9999") from None


def make_local_millis(wire: int) -> dt.datetime:
    return make_local_micros(wire * 1_000)


def make_time_micros(wire: int) -> dt.time:
    if not 0 <= wire < _DAY_MICROS:
        raise Unreadable("a time of day outside of 24 hours")
    return (_LOCAL_EPOCH + dt.timedelta(0, 0, wire)).time()


def make_time_millis(wire: int) -> dt.time:
    return make_time_micros(wire * 1_000)


TAKE_TIMES: Final[dict[str, Callable[[Any], int]]] = {
    "date": take_date,
    "time-millis": take_time_millis,
    "time-micros": take_time_micros,
    "timestamp-millis": take_millis,
    "timestamp-micros": take_micros,
    "local-timestamp-millis": take_local_millis,
    "local-timestamp-micros": take_local_micros,
}
MAKE_TIMES: Final[dict[str, Callable[[int], Any]]] = {
    "date": make_date,
    "time-millis": make_time_millis,
    "time-micros": make_time_micros,
    "timestamp-millis": make_millis,
    "timestamp-micros": make_micros,
    "local-timestamp-millis": make_local_millis,
    "local-timestamp-micros": make_local_micros,
}
