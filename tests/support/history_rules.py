"""The rules by which a history is judged; tests/support/history.py says what one is."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from tests.support.history import FAILING, FAILS_ALWAYS, FAILS_ONCE, Effect, History, Sent, Snapshot, story

LATE = 30.0
"""Seconds that a transaction may be open at most: an effect is visible that long after it was written, or never."""


class Fault(NamedTuple):
    """One thing that must not be, the promise that it breaks, and the key's story."""

    promise: str
    text: str
    story: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.text}\n{self.story}"


def faults(history: History) -> list[Fault]:
    """Return all that is wrong with *history*, the promises in their order."""
    checks = (_effects, _ends, _order, _offsets, _attempts, _copies)
    found = [one for check in checks for one in check(history)]
    return [Fault(promise, text, story(history, message_id)) for promise, text, message_id in found]


Found = Iterator[tuple[str, str, UUID]]


def _effects(history: History) -> Found:
    """Each message has one effect at most, with the payload that was sent."""
    counted: dict[UUID, int] = {}
    for one in history.effects:
        counted[one.id] = counted.get(one.id, 0) + 1
        sent = history.messages.get(one.id)
        if sent is None:
            yield "P2", f"{one.id} took effect and was never sent", one.id
        elif sent.n != one.n:
            yield "P4", f"{one.id} was sent with n={sent.n} and took effect with n={one.n}", one.id
    for message_id, count in counted.items():
        if count > 1:
            yield "P2", f"{message_id} took effect {count} times", message_id
    for act in history.acts:
        if act.act == "discard" and act.id in history.effect:
            yield "P4", f"{act.id} was discarded and took effect", act.id


def _ends(history: History) -> Found:
    """Each message is done, rests in quarantine, waits behind one that does, or was discarded."""
    held: dict[tuple[int, bytes], UUID] = {}
    for one in history.messages.values() if history.ended else ():
        place = None if one.key is None else (one.partition, one.key)
        if one.id in history.effect or history.discards.get(one.id):
            continue
        if history.open(one.id):
            if place is not None and history.parks:
                held.setdefault(place, one.id)
        elif place is None or place not in held:
            yield (
                "P2",
                f"{one.id} is lost or stuck: no effect, and nothing before it rests in quarantine",
                one.id,
            )


def _order(history: History) -> Found:
    """The effects of one key stand in the order of arrival, each begun after the one before it was committed."""
    for messages in history.keys.values():
        waits: Sent | None = None
        last: Effect | None = None
        for one in messages:
            effect = history.effect.get(one.id)
            aside = not history.parks and one.id in history.quarantined
            if history.discards.get(one.id) or aside:
                continue
            if effect is None:
                waits = waits or one
                continue
            if waits is not None:
                yield "P3", f"{one.id} took effect, and {waits.id} before it has none yet", one.id
            if last is not None and effect.order < last.order:
                yield "P3", f"{one.id} took effect before {last.id}, which arrived earlier", one.id
            elif last is not None and effect.xid != last.xid and not effect.seen.sees(last.xid):
                yield "P3", f"{one.id} ran while {last.id} before it was not committed", one.id
            last = effect if last is None or effect.order > last.order else last


def _offsets(history: History) -> Found:
    """At each look, all below the committed offset was done, or had its copy, or waited behind one of its key that fails."""
    logs: dict[int, list[Sent]] = {}
    for one in sorted(history.sent):
        logs.setdefault(one.partition, []).append(one)
    copied = _first_copies(history)
    waiting = _Waiting(history)
    reached = dict.fromkeys(logs, 0)
    pending: dict[UUID, Sent] = {}
    told: set[UUID] = set()
    for look in sorted(history.looks):
        for partition, offset in look.committed.items():
            log, at = logs.get(partition, []), reached.get(partition, 0)
            while at < len(log) and log[at].offset < offset:
                pending[log[at].id] = history.messages[log[at].id]
                at += 1
            reached[partition] = at
        for message_id in [one for one in pending if waiting.done(one, look.seen)]:
            del pending[message_id]
        for message_id, one in list(pending.items()):
            durable = copied.get(message_id, look.at + 1) <= look.at if one.deed in FAILING else False
            if durable or waiting.to_the_end(one):
                del pending[message_id]
                continue
            if waiting.behind(one, look.seen) or message_id in told:
                continue
            told.add(message_id)
            offset = look.committed[one.partition]
            yield (
                "P2",
                f"offset {offset} was committed at {look.at:.3f}, {message_id} below it had no outcome",
                message_id,
            )


def _first_copies(history: History) -> dict[UUID, float]:
    found: dict[UUID, float] = {}
    for one in history.copies:
        found[one.id] = min(one.at, found.get(one.id, one.at))
    return found


class _Waiting:
    """Who was done, and who may have waited behind a failing message of its key."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._before = {
            after.id: before for messages in history.keys.values() for before, after in pairwise(messages)
        }

    def done(self, message_id: UUID, seen: Snapshot) -> bool:
        effect = self._history.effect.get(message_id)
        return effect is not None and seen.sees(effect.xid)

    def to_the_end(self, one: Sent) -> bool:
        """Return whether nothing before it, back to one that fails, ever had an effect: so it waits at every look."""
        while (before := self._before.get(one.id)) is not None and before.id not in self._history.effect:
            if before.deed in FAILING:
                return True
            one = before
        return False

    def behind(self, one: Sent, seen: Snapshot) -> bool:
        """Return whether those before it, back to one that fails, had no effect when the next arrived."""
        arrived = one.at
        while (before := self._before.get(one.id)) is not None:
            effect = self._history.effect.get(before.id)
            if effect is not None and seen.sees(effect.xid) and effect.at + LATE < arrived:
                return False
            if before.deed in FAILING:
                return True
            one, arrived = before, before.at
        return False


def _attempts(history: History) -> Found:
    """Failures are bounded, waited for and charged to those that fail; nobody else is charged."""
    seen: dict[UUID, dict[int, float]] = {}
    for run in history.runs:
        first = seen.setdefault(run.id, {})
        first[run.attempt] = min(run.at, first.get(run.attempt, run.at))
    for message_id, first in seen.items():
        yield from _tries(history, message_id, first)
    for effect in history.effect.values():
        if (sent := history.messages.get(effect.id)) is None:
            continue
        if sent.deed == FAILS_ONCE and effect.attempt != 2:
            yield "P4", f"{effect.id} fails once and took effect in attempt {effect.attempt}", effect.id
        if sent.deed not in FAILING and effect.attempt != 1:
            yield "P6", f"{effect.id} does not fail and took effect in attempt {effect.attempt}", effect.id


def _tries(history: History, message_id: UUID, first: Mapping[int, float]) -> Found:
    """The tries of one message: *first* says when each attempt first began."""
    sent = history.messages.get(message_id)
    most = history.attempts + history.redrives.get(message_id, 0)
    if max(first) > most:
        yield "P4", f"{message_id} was tried {max(first)} times, {most} are allowed", message_id
    if sent is not None and sent.deed not in FAILING and max(first) > 1:
        yield "P6", f"{message_id} does not fail and was charged: attempt {max(first)} began", message_id
    for attempt, delay in enumerate(history.delays[: history.attempts - 1], 1):
        if attempt in first and attempt + 1 in first and first[attempt + 1] < first[attempt] + delay:
            early = first[attempt] + delay - first[attempt + 1]
            yield "P4", f"attempt {attempt + 1} of {message_id} came {early:.3f} s early", message_id


def _copies(history: History) -> Found:
    """Only what always fails comes to quarantine, once for each round, byte for byte, and not after it was done."""
    for copy in history.copies:
        sent = history.messages.get(copy.id)
        if sent is None:
            yield "P4", f"{copy.topic} holds {copy.id}, which was never sent", copy.id
        elif copy.digest != sent.digest:
            yield (
                "P4",
                f"the copy of {copy.id} in {copy.topic}[{copy.partition}]@{copy.offset} has other bytes",
                copy.id,
            )
        elif copy.partition != sent.partition:
            yield (
                "P4",
                f"the copy of {copy.id} stands in partition {copy.partition}, not {sent.partition}",
                copy.id,
            )
    for message_id, rounds in history.quarantined.items():
        sent, effect = history.messages.get(message_id), history.effect.get(message_id)
        if sent is not None and sent.deed != FAILS_ALWAYS:
            charge = "P4" if sent.deed in FAILING else "P6"
            yield charge, f"{message_id} ({sent.deed or 'well'}) came to quarantine", message_id
        if len(rounds) > 1 + history.redrives.get(message_id, 0):
            yield (
                "P4",
                f"{message_id} came to quarantine after attempts {rounds}, and nobody ordered it back",
                message_id,
            )
        if effect is not None and effect.attempt <= rounds[-1]:
            text = f"{message_id} took effect in attempt {effect.attempt} and came to quarantine after {rounds[-1]}"
            yield "P2", text, message_id
