"""Parked keys, their followers and what waits for another attempt, as steps; what is beside the writing of results."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from packhorse.processor.outcomes import Outcome
from packhorse.processor.record import Delivery, Record, Stream, delivery_of
from packhorse.processor.running.work import (
    Claim,
    Claimed,
    ClaimedKeys,
    FirstFollowers,
    InboxRow,
    Released,
)
from packhorse.processor.storing.rows import headers_of, literal
from packhorse.processor.storing.steps import (
    BEGIN,
    COMMIT,
    PORTION,
    Quarantined,
    Statement,
    Steps,
    Tables,
    kept,
)

LEASE = 30.0
"""Seconds for which a drainer has a key without renewing."""
NO_TOKEN = -1
"""The token of who holds no claim."""
GRACE = 10.0
"""Seconds after its due time at which a copy that was never confirmed is overdue; one that was, after three times that."""


class Wake(NamedTuple):
    """A key that somebody should look at: its head is finished, and nobody drains it."""

    topic: str
    key_hash: str
    key: bytes | None
    partition: int
    head: UUID | None


class HeldKey(NamedTuple):
    """A claim, with the source topic that its key is of."""

    topic: str
    key: str
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasingSteps(Tables):
    """How keys are let go."""

    def _let_go(self, source: str, keys: Sequence[str], locked: Sequence[str]) -> Steps[Released]:
        """
        Let go of those of *locked* whose head is finished and behind which nothing waits, and say how *keys* stand, sorted.

        In a statement after the one that has locked them: what it sees of followers must be from behind that.
        """
        which = {"group": self.group, "source": source, "keys": literal(keys), "locked": literal(locked)}
        found = yield Statement(self.queries.release_keys, which)
        waiting, heads, busy = [], [], {}
        for key, head, paused, mine, finished, seconds, followed in found.rows:
            if not finished:
                heads.append(head)
            elif mine and followed:
                waiting.append(key)
            elif not mine and not paused:
                busy[key] = seconds
        return Released(waiting, busy, heads)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkingSteps(ReleasingSteps):
    """What is done with parked keys."""

    def release(self, source: str, keys: Sequence[str], held: Sequence[Claim] = ()) -> Steps[Released]:
        """
        Let go of those of *keys* whose head is finished, that nobody else drains and behind which nothing waits.

        *held* are the claims of who asks.

        A transaction of its own. The rows are locked in one statement, followers are looked for in a second: one that is
        being added holds the lock until it is committed, and who comes later finds no key, or a new one.
        """
        tokens = {claim.key: claim.token for claim in held}
        each = sorted(set(keys))
        which = {
            "group": self.group,
            "source": source,
            "keys": literal(each),
            "tokens": literal(tokens.get(key, NO_TOKEN) for key in each),
        }
        yield Statement(BEGIN, {})
        locked = yield Statement(self.queries.lock_releasable, which)
        released = yield from self._let_go(source, each, [row[0] for row in locked.rows])
        yield Statement(COMMIT, {})
        return released

    def claim(
        self, source: str, key: str, drainer: str, held: Claim | None = None, lease: float = LEASE
    ) -> Steps[Claimed]:
        """
        Claim *key* to drain it, and return its first followers; they are read when the claim is durable.

        A follower that the inbox does not know as parked (any more) is dropped.
        """
        which = {
            "group": self.group,
            "source": source,
            "key": key,
            "held": NO_TOKEN if held is None else held.token,
        }
        answer = yield Statement(self.queries.claim_key, {**which, "drainer": drainer, "lease": lease})
        if not answer.rows:
            standing = yield Statement(self.queries.key_standing, which)
            return _refused(standing.rows)
        claim = Claim(key, answer.rows[0][0])
        found = yield Statement(self.queries.followers, which)
        stale = [row[0] for row in found.rows if row[9] != Outcome.PARKED.value]
        if stale:
            yield Statement(
                self.queries.delete_parked, {"group": self.group, "source": source, "ids": literal(stale)}
            )
        followers = [_follower(source, row) for row in found.rows if row[9] == Outcome.PARKED.value]
        now = found.rows[0][14] if found.rows else None
        return Claimed(claim, now, followers)

    def claim_keys(
        self, source: str, keys: Sequence[str], drainer: str, lease: float = LEASE
    ) -> Steps[ClaimedKeys]:
        """Claim those of *keys* that can be drained now, to drain them together; of the others nothing is said."""
        which = {"group": self.group, "source": source, "keys": literal(sorted(set(keys)))}
        answer = yield Statement(self.queries.claim_keys, {**which, "drainer": drainer, "lease": lease})
        return ClaimedKeys(sorted(Claim(*row) for row in answer.rows))

    def first_followers(self, source: str, keys: Sequence[str]) -> Steps[FirstFollowers]:
        """Return the first follower of each of *keys*, which are claimed; one that the inbox does not know as parked is left out."""
        which = {"group": self.group, "source": source, "keys": literal(keys)}
        answer = yield Statement(self.queries.first_followers, which)
        known = [row for row in answer.rows if row[9] == Outcome.PARKED.value]
        now = answer.rows[0][14] if answer.rows else None
        return FirstFollowers(now, {row[15]: _follower(source, row) for row in known})

    def leave(self, source: str, claim: Claim) -> Steps[None]:
        """End *claim*, unless it is another's by now; the key stays parked, and the watchdog will look at it."""
        which = {"group": self.group, "source": source, "key": claim.key, "token": claim.token}
        yield Statement(self.queries.leave_key, which)

    def leave_all(self, held: Sequence[HeldKey]) -> Steps[None]:
        """End claims, as `leave` does."""
        yield Statement(self.queries.leave_keys, {"group": self.group, **_named(held)})

    def renew(self, held: Sequence[HeldKey], lease: float = LEASE) -> Steps[set[HeldKey]]:
        """Renew the leases of claimed keys; return those that are still ours."""
        if not held:
            return set()
        which = {"group": self.group, **_named(held), "lease": lease}
        answer = yield Statement(self.queries.renew_claims, which)
        return {HeldKey._make(row) for row in answer.rows}

    def overdue_retries(self, topics: Sequence[str], grace: float = GRACE) -> Steps[list[Quarantined]]:
        """
        Return messages whose next attempt is overdue, to be sent again; a portion.

        Who gets one alone has it: its next time is written first, at a wait that doubles from a minute. So a crash before
        it is sent delays it, and two watchdogs don't send it twice.
        """
        which = {"group": self.group, "topics": list(topics), "grace": grace, "most": PORTION}
        answer = yield Statement(self.queries.overdue_retries, which)
        return [kept(row) for row in answer.rows]

    def due_wakes(self, topics: Sequence[str]) -> Steps[list[Wake]]:
        """Return keys that are to be woken, a portion; each comes again after a minute, if it is still so."""
        which = {"group": self.group, "topics": list(topics), "most": PORTION}
        answer = yield Statement(self.queries.due_wakes, which)
        return [Wake._make(row) for row in answer.rows]

    def sweep(self, after: tuple[str, str]) -> Steps[tuple[str, str]]:
        """Have the keys behind *after* woken whose head is finished; return where to go on, ("", "") at the end."""
        topic, key = after
        answer = yield Statement(
            self.queries.sweep_keys, {"group": self.group, "after_topic": topic, "after_key": key}
        )
        return (answer.rows[0][0], answer.rows[0][1]) if answer.rows else ("", "")

    def parked_standing(self) -> Steps[dict[tuple[str, int], tuple[int, int]]]:
        """Return how many messages wait behind parked keys and their bytes, by source topic and partition."""
        answer = yield Statement(self.queries.parked_standing, {"group": self.group})
        return {(topic, partition): (messages, size) for topic, partition, messages, size in answer.rows}

    def pause_key(
        self, source: str, key_hash: str, *, key: bytes | None, partition: int, actor: str, why: str | None
    ) -> Steps[bool]:
        """Stop a key: what comes of it waits behind it; return False when it was paused already."""
        which = {"group": self.group, "source": source, "hash": key_hash, "actor": actor, "why": why}
        answer = yield Statement(self.queries.pause_key, {**which, "key": key, "partition": partition})
        return answer.touched == 1

    def resume_key(self, source: str, key_hash: str) -> Steps[bool]:
        """Let a paused key go on at the watchdog's next look; return False when it was not paused."""
        which = {"group": self.group, "source": source, "hash": key_hash}
        answer = yield Statement(self.queries.resume_key, which)
        return answer.touched == 1


def _named(held: Sequence[HeldKey]) -> dict[str, Any]:
    return {
        "topics": [one.topic for one in held],
        "keys": literal(one.key for one in held),
        "tokens": literal(one.token for one in held),
    }


def _refused(rows: Sequence[tuple[Any, ...]]) -> Claimed:
    """Return why a key was not claimed; one whose lease has ended meanwhile is worth another try at once."""
    if not rows:
        return Claimed(None)
    head, paused, finished, busy = rows[0]
    if paused:
        return Claimed(None)
    return Claimed(None, busy=max(busy, 0.01)) if finished else Claimed(None, head=head)


def _follower(source: str, row: tuple[Any, ...]) -> tuple[Delivery, InboxRow]:
    """Return a follower as it was delivered where it first stood, and what the inbox knows of it."""
    topic_id, partition, offset, epoch, timestamp, key, payload, headers = row[1:9]
    record = Record(source, partition, offset, epoch, timestamp, key, payload, headers_of(headers))
    delivery = delivery_of(record, Stream(topic=source, topic_id=topic_id, source=source))
    outcome, attempt, age, state, digest = row[9:14]
    known = InboxRow(Outcome(outcome), attempt, 0.0, age, state, copied=True, digest=digest)
    return delivery._replace(id=row[0]), known
