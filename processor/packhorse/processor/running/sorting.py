"""Sort a chunk by what the database knows of it: what is to be run, what was dealt with, what waits."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from packhorse.core.ids import foreign_id
from packhorse.processor.outcomes import Outcome
from packhorse.processor.record import Delivery, digest_of
from packhorse.processor.running.judging import parked, reused
from packhorse.processor.running.work import (
    InboxRow,
    Known,
    Member,
    Work,
)
from packhorse.processor.tiers.ladder import tier_seconds

_FINISHED = frozenset({Outcome.DONE, Outcome.SKIPPED, Outcome.DISCARDED, Outcome.QUARANTINE})
"""Outcomes of a head behind which its followers may go on; of quarantine the statement that releases has the last word."""
_LATE, _LATER = 1.2, 2.0
"""A copy that is due later than so many times its tier's delay, and so many seconds, was meant to go round."""
_LAP = 1.0
"""Least seconds that a copy lies in a tier before it goes round."""


@dataclass(slots=True, kw_only=True)
class Sorted:
    """
    A chunk, sorted by what is known of it.

    Attributes:
        members: To be dealt with, in order.
        duplicates: Dealt with before; their deliveries are counted.
        uncopied: Recorded before, and their copy is not known to be confirmed.
        circling: Copies whose wait is longer than any tier: they go round once more.
        heads: Keys, by the offset of a copy of their head that came after it was finished, or of a wake-up: whoever sees
            one goes on draining.
        waiting: Not due yet, and all after the first of them.
        wait: Seconds until that one is due; None when nothing waits.
    """

    members: list[Member] = field(default_factory=list)
    duplicates: list[Delivery] = field(default_factory=list)
    uncopied: list[Delivery] = field(default_factory=list)
    circling: list[Delivery] = field(default_factory=list)
    heads: dict[int, str] = field(default_factory=dict)
    waiting: list[Delivery] = field(default_factory=list)
    wait: float | None = None


def below_watermark(delivery: Delivery, work: Work) -> bool:
    """Return whether the offset alone says duplicate: below the watermark, and not of a leader that came after it."""
    if delivery.record.offset >= work.position:
        return False
    epoch = delivery.record.leader_epoch
    return epoch is None or work.leader_epoch is None or epoch <= work.leader_epoch


def sort(deliveries: Sequence[tuple[Delivery, str | None]], known: Known, work: Work) -> Sorted:
    """
    Return *deliveries*, each with the hash of its key, sorted by what is *known*; of equal ids the later are duplicates.

    What is parked is not run: it goes behind the head. A copy runs only if its attempt is the recorded one, also where copies
    of other attempts come before it; a record whose attempt is recorded, and waits as a copy, is never run itself.
    """
    carries = work.stream.carries
    if not (carries or known.rows) and len({one.id.int for one, _ in deliveries}) == len(deliveries):
        return Sorted(members=_all_new(deliveries, known))
    return _sorted(deliveries, known, work)


def _sorted(deliveries: Sequence[tuple[Delivery, str | None]], known: Known, work: Work) -> Sorted:
    """Sort where something is known, or an id comes twice."""
    found, carries = Sorted(), work.stream.carries
    seen: dict[tuple[UUID, int | None], Delivery] = {}
    for at, (delivery, key) in enumerate(deliveries):
        row = known.rows.get(delivery.id)
        if carries and delivery.wakes:
            found.duplicates.append(delivery)
            if key is not None and key in known.parked:
                found.heads[delivery.record.offset] = key
            continue
        first = seen.setdefault((delivery.id, delivery.attempt), delivery)
        if first is not delivery:
            _repeated(found, delivery, first, carries=carries)
            continue
        if row is None:
            _new(found, delivery, key, known, carries=carries)
        elif row.outcome is not Outcome.RETRY:
            _settled(found, delivery, key, row, known, carries=carries)
        elif (not carries and not _waits_in_place(row)) or (carries and delivery.attempt != row.attempt):
            _waits_elsewhere(found, delivery, row, carries=carries)
        elif row.due_in <= 0:
            found.members.append(_due(delivery, key, row, known))
        elif (wait := _wait_of(delivery, row, known, work)) <= 0:
            found.circling.append(delivery)
            found.duplicates.append(delivery)
        else:
            found.waiting = [one for one, _ in deliveries[at:]]
            found.wait = wait
            break
    return found


def _wait_of(delivery: Delivery, row: InboxRow, known: Known, work: Work) -> float:
    """
    Return how long *delivery* waits where it is: until it is due, or 0 where it is to go round once more.

    It goes round when it has lain here for as long as the tier says, and a second at least: sooner it would be a loop that
    does nothing else.
    """
    tier = tier_seconds(work.stream.tier or "0s")
    if not work.stream.carries or known.now is None or row.due_in <= tier * _LATE + _LATER:
        return row.due_in
    lap = max(tier, _LAP)
    lain = known.now.timestamp() - delivery.record.timestamp_ms / 1000
    return min(lap - lain, lap)


def _waits_in_place(row: InboxRow) -> bool:
    """Return whether a version without tiers has recorded the attempt: then no copy of it stands anywhere, and this is it."""
    return row.tier is None and row.state != "redriven"


def _repeated(found: Sorted, delivery: Delivery, first: Delivery, *, carries: bool) -> None:
    """Of equal ids in one chunk the later are duplicates, unless they are not what the first is."""
    if carries or first.record.value == delivery.record.value:
        found.duplicates.append(delivery)
    else:
        found.members.append(_other(delivery))


def _new(found: Sorted, delivery: Delivery, key: str | None, known: Known, *, carries: bool) -> None:
    """A copy of what nobody recorded is no message: the record that it was made from comes again, if it is owed."""
    if carries:
        found.duplicates.append(delivery)
        return
    found.members += _all_new([(delivery, key)], known)


def _all_new(deliveries: Sequence[tuple[Delivery, str | None]], known: Known) -> list[Member]:
    """Return the members for first deliveries, each with the hash of its key: where that is parked, they go behind its head."""
    members = [Member(delivery, key) for delivery, key in deliveries]
    if known.parked:
        for member in members:
            if member.key is not None and member.key in known.parked:
                member.result = parked(member)
    return members


def _settled(
    found: Sorted, delivery: Delivery, key: str | None, row: InboxRow, known: Known, *, carries: bool
) -> None:
    if not carries and row.digest is not None and row.digest != digest_of(delivery.record.value):
        found.members.append(_other(delivery))
        return
    found.duplicates.append(delivery)
    if row.outcome is Outcome.QUARANTINE and not row.copied:
        found.uncopied.append(delivery)
    if key is None or key not in known.parked or row.outcome not in _FINISHED:
        return
    if carries or known.parked[key] == delivery.id:
        found.heads[delivery.record.offset] = key


def _due(delivery: Delivery, key: str | None, row: InboxRow, known: Known) -> Member:
    """A copy that is due runs as the head of its key; where that is paused, or has another head, it goes behind."""
    member = Member(delivery=delivery, key=key, row=row)
    if key is not None and key in known.parked:
        member.head = known.parked[key] == delivery.id
        if not member.head:
            member.result = parked(member)
    return member


def _waits_elsewhere(found: Sorted, delivery: Delivery, row: InboxRow, *, carries: bool) -> None:
    if not carries and row.digest is not None and row.digest != digest_of(delivery.record.value):
        found.members.append(_other(delivery))
        return
    found.duplicates.append(delivery)
    if not row.copied:
        found.uncopied.append(delivery)


def _other(delivery: Delivery) -> Member:
    """Return the member for a message whose id was used before: under an id of its own, by its place, and bound to no order."""
    origin = delivery.origin
    other = delivery._replace(id=foreign_id(origin.topic_id, origin.partition, origin.offset))
    member = Member(delivery=other)
    member.result = reused(member)
    return member
