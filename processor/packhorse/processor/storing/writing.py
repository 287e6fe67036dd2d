"""The writing of results in the transaction that their handlers ran in, as steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from packhorse.processor.outcomes import Outcome
from packhorse.processor.record import Stream
from packhorse.processor.running.work import Claim, Released, Result
from packhorse.processor.storing.parking import LEASE, ReleasingSteps
from packhorse.processor.storing.rows import (
    done_rows,
    is_plain,
    key_rows,
    literal,
    message_rows,
    new_rows,
    old_rows,
    quarantine_rows,
    retry_rows,
    uuids,
)
from packhorse.processor.storing.steps import Statement, Steps

_FINISHED = frozenset({Outcome.DONE, Outcome.SKIPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingSteps(ReleasingSteps):
    """Results, and all that goes with them."""

    def write(
        self,
        stream: Stream,
        results: Sequence[Result],
        xid: str,
        *,
        topic_age: int = 0,
        claim: Claim | None = None,
        claims: Sequence[Claim] = (),
    ) -> Steps[bool | Released]:
        """
        Record *results* in the open transaction *xid*; return False when another owner was first with anything.

        Of followers of several keys it returns how those stand: behind which nothing waits any more are let go.

        In this order: inbox rows (first results are inserted, a unique violation is the driver's to translate; known ones are
        compare-and-set on outcome and attempt), failed attempts, what waits in retry, in quarantine and behind parked keys,
        and last the keys, sorted: no two transactions wait for each other in a ring, and a key is locked for a moment only.

        Args:
            stream: Where they were read from.
            results: One a message. A first result with `parks` parks its key and must be the one who does; a follower
                (outcome parked) must find its key parked, or it is to be run.
            xid: The transaction that was begun; in another one nothing is recorded.
            topic_age: How many other topic ids of the source's name the group knows, see Mark.
            claim: Of followers that were run, which are all of one key. When its token has moved, all is refused.
            claims: Of followers that were run, one of each key; in the order of *results*. When one's token has moved, all is
                refused.
        """
        who = {"group": self.group, "source": stream.source, "xid": xid}
        new = [result for result in results if result.row is None]
        old = [result for result in results if result.row is not None]
        if new:
            plain = all(map(is_plain, new))
            statement = (
                Statement(self.queries.insert_done, {**who, **done_rows(new)})
                if plain
                else Statement(self.queries.insert_results, {**who, **new_rows(new)})
            )
            answer = yield statement
            if answer.touched != len(new):
                return False
            if plain and not old:
                return True
        if old:
            answer = yield Statement(self.queries.update_results, {**who, **old_rows(old)})
            if answer.touched != len(old):
                return False
        if not old and all(r.outcome in _FINISHED for r in results):
            return True
        yield from self._failures(stream, [r for r in results if r.failed_as is not None])
        yield from self._messages(stream, results, None if stream.carries else topic_age)
        if claim is not None:
            return (yield from self._keep(stream, results[-1], claim))
        if claims:
            return (yield from self._keep_all(stream, results, claims))
        return (yield from self._keys(stream, results))

    def _failures(self, stream: Stream, failed: Sequence[Result]) -> Steps[None]:
        if failed:
            yield Statement(
                self.queries.insert_failed,
                {
                    **self._of(stream),
                    "ids": uuids(r.delivery.id for r in failed),
                    "attempts": literal(r.attempt for r in failed),
                    "reasons": [r.failed_as for r in failed],
                    "errors": [r.error for r in failed],
                    "delays": literal(r.delay if r.outcome is Outcome.RETRY else None for r in failed),
                },
            )

    def _messages(self, stream: Stream, results: Sequence[Result], topic_age: int | None) -> Steps[None]:
        """Keep the bytes of what is not finished where it waits from now on, and no longer where it waited."""
        who, queries = self._of(stream), self.queries
        if again := [r for r in results if r.outcome is Outcome.RETRY and r.tier is not None]:
            yield Statement(queries.upsert_retry, {**who, **retry_rows(again)})
        if left := [r for r in results if _was(r, Outcome.RETRY) and r.outcome is not Outcome.RETRY]:
            yield Statement(queries.delete_retry, {**who, "ids": uuids(r.delivery.id for r in left)})
        if stopped := [r for r in results if r.outcome is Outcome.QUARANTINE]:
            yield Statement(queries.upsert_quarantined, {**who, **quarantine_rows(stopped)})
        if parked := [r for r in results if r.outcome is Outcome.PARKED]:
            yield Statement(queries.insert_parked, {**who, **message_rows(parked), "topic_age": topic_age})
        if run := [r for r in results if _was(r, Outcome.PARKED)]:
            yield Statement(queries.delete_parked, {**who, "ids": uuids(r.delivery.id for r in run)})

    def _keys(self, stream: Stream, results: Sequence[Result]) -> Steps[bool]:
        """
        Park keys and let their heads go; return False when a key stands otherwise than the results take it.

        Keys that are there are locked first, sorted, then new ones are inserted, sorted.
        """
        who = self._of(stream)
        heads = [r for r in results if r.parks]
        first = {r.key for r in heads if r.row is None}
        followers = {r.key for r in results if r.outcome is Outcome.PARKED} - first
        again = {r.key: r for r in heads if r.row is not None}
        stopped = {r.key: r for r in results if r.key is not None and _heads_no_more(r)}
        there: dict[str | None, Any] = {}
        if followers or again or stopped:
            keys = sorted(key for key in {*followers, *again, *stopped} if key is not None)
            locked = yield Statement(self.queries.lock_keys, {**who, "keys": literal(keys)})
            there = dict(locked.rows)
        if not followers <= (there.keys() | again.keys()):
            return False
        if any(there.get(key, r.delivery.id) != r.delivery.id for key, r in again.items()):
            return False
        if stopped.keys() & there.keys():
            ids = literal(r.delivery.id for r in stopped.values())
            yield Statement(
                self.queries.unhead_keys, {**who, "keys": literal(sorted(map(str, stopped))), "heads": ids}
            )
        parks = [r for r in heads if r.row is None or r.key not in there]
        if parks:
            answer = yield Statement(self.queries.park_keys, {**who, **key_rows(parks)})
            return answer.touched == len(parks)
        return True

    def _keep(self, stream: Stream, last: Result, claim: Claim) -> Steps[bool]:
        """Hold on to the claim: the last follower that was run is the head, finished, or one that the key waits for."""
        answer = yield Statement(
            self.queries.keep_claim,
            {
                **self._of(stream),
                "key": claim.key,
                "token": claim.token,
                "head": last.delivery.id if last.parks or last.outcome in _FINISHED else None,
                "ends": last.parks,
                "lease": LEASE,
            },
        )
        return answer.touched == 1

    def _keep_all(
        self, stream: Stream, results: Sequence[Result], claims: Sequence[Claim]
    ) -> Steps[bool | Released]:
        """
        Hold on to claims, of keys whose follower failed until it is their head, and let go of keys behind which nothing waits.

        A follower that is being added holds the lock that is taken here first: it is seen, or finds no key.
        """
        held = sorted(claims)
        locked = yield Statement(
            self.queries.lock_claimed,
            {
                **self._of(stream),
                "keys": literal(one.key for one in held),
                "tokens": literal(one.token for one in held),
            },
        )
        if len(locked.rows) != len(held):
            return False
        for result, claim in zip(results, claims, strict=True):
            if result.parks:
                yield from self._keep(stream, result, claim)
        heads = {claim.key for result, claim in zip(results, claims, strict=True) if result.parks}
        keys = [claim.key for claim in held if claim.key not in heads]
        return (yield from self._let_go(stream.source, keys, [row[0] for row in locked.rows if not row[1]]))

    def _of(self, stream: Stream) -> dict[str, Any]:
        return {"group": self.group, "source": stream.source}


def _heads_no_more(result: Result) -> bool:
    """Return whether it was the head of its key, maybe, and is none now although it is not finished."""
    passes = result.outcome is Outcome.QUARANTINE and not result.parks
    return result.row is not None and (passes or result.outcome is Outcome.PARKED)


def _was(result: Result, outcome: Outcome) -> bool:
    return result.row is not None and result.row.outcome is outcome
