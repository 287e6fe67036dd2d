"""Decide what speaks for or against redriving a set, from what was counted. Pure: no I/O, no clock."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from packhorse.console.redriving.records import Check
from packhorse.processor.record import time_of_header

STALE_DAYS = 7
"""Days in quarantine after which a message may tell of a world that has moved on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """
    One group of the set.

    Attributes:
        started_at: Since when its newest process runs; None: none is alive.
        braked: A handler of it is stopped by brake or breaker.
        failing: Messages that came to quarantine since then for the same reason at the same place.
    """

    group: str
    started_at: datetime | None
    braked: bool
    failing: int


def expired_by(now: datetime, expiries: Iterable[tuple[str, int]]) -> int:
    """Return how many of *expiries*, pairs of a header in base64 and how many have it, have passed at *now*."""
    return sum(count for text, count in expiries if (at := _time(text)) is not None and at <= now)


def _time(text: str) -> datetime | None:
    try:
        return time_of_header(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return None


def checked(
    counted: Mapping[str, Any], groups: Iterable[GroupFacts], *, expired: int, cap: int | None
) -> tuple[Check, ...]:
    """Return what is to be known before a set is confirmed, what weighs most first."""
    found = [*_cause(groups), *_bytes(counted), *_effects(counted), *_order(counted)]
    if counted["stale"]:
        said = (
            f"in quarantine for more than {STALE_DAYS} days (the oldest since {_day(counted['oldest'])}): their effect "
            "comes about now; see that it still makes sense"
        )
        found.append(Check(code="stale", count=counted["stale"], said=said))
    if expired:
        said = "their `expires-at` has passed: they will end as skipped, and no handler runs"
        found.append(Check(code="expired", count=expired, said=said))
    if counted["capped"]:
        said = (
            f"redriven {cap} times or more and left out by name: going round and round helps nobody; "
            "--beyond-cap takes them in"
        )
        found.append(Check(code="capped", count=counted["capped"], said=said))
    if counted["purged"]:
        found.append(Check(code="purged", count=counted["purged"], said="their bytes were purged: left out"))
    return tuple(found)


def _cause(groups: Iterable[GroupFacts]) -> Iterator[Check]:
    for group in groups:
        if group.started_at is None:
            said = f"no process of group {group.group} is alive: what is asked for is sent once one runs"
            yield Check(code="cause", count=None, said=said)
            continue
        if group.braked:
            said = f"a handler of group {group.group} is stopped by its brake or breaker: the cause may still be there"
            yield Check(code="cause", count=None, said=said)
        if group.failing:
            since = group.started_at.astimezone(UTC)
            said = (
                f"failed alike since the newest process of group {group.group} started, at {since:%Y-%m-%d %H:%M:%S}Z: "
                "what runs now is not mended, unless the cause lay outside of it"
            )
            yield Check(code="cause", count=group.failing, said=said)


def _bytes(counted: Mapping[str, Any]) -> Iterator[Check]:
    if counted["same_bytes"]:
        said = "failed for what lies in the bytes or in what is deployed; the bytes stay the same"
        yield Check(code="same-bytes", count=counted["same_bytes"], said=said)
    if counted["redriven_before"]:
        said = "were redriven before and failed again"
        yield Check(code="cause", count=counted["redriven_before"], said=said)


def _effects(counted: Mapping[str, Any]) -> Iterator[Check]:
    if counted["in_doubt"]:
        said = (
            "are jobs with an outside effect that may or may not have happened: the outside system is asked again where the job's code "
            "can, else they stop again; packhorse job resolve says what happened, of one job at a time"
        )
        yield Check(code="in-doubt", count=counted["in_doubt"], said=said)
    if counted["effects"]:
        said = (
            "crashed, timed out or lost their connection in some attempt: what they did outside the database may be done "
            "already, and is done again"
        )
        yield Check(code="side-effects", count=counted["effects"], said=said)


def _order(counted: Mapping[str, Any]) -> Iterator[Check]:
    if counted["overtaken"]:
        said = "have a key that is not parked: later messages of it may have gone on, these take effect after them"
        yield Check(code="order", count=counted["overtaken"], said=said)
    if counted["behind_others"]:
        said = "have a key that waits behind another quarantined message, which is not in the set: they will be left"
        yield Check(code="order", count=counted["behind_others"], said=said)
    if counted["more_of_a_key"]:
        said = "share a key with an earlier member: they are asked for with it, and run behind it in their first order"
        yield Check(code="order", count=counted["more_of_a_key"], said=said)


def _day(at: datetime | None) -> str:
    return "-" if at is None else at.date().isoformat()
