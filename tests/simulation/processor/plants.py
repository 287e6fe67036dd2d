"""Errors to plant: each is one small change that a careless hand could make, and the checker must find every one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.simulation.processor import statements
from tests.simulation.processor.adapter import PlainLane
from tests.simulation.processor.statements import STATEMENTS

from packhorse.core.errors import BrokerUnavailable
from packhorse.processor.member.desk import Desk
from packhorse.processor.member.jobs import Report
from packhorse.processor.member.queue import Queue, Waiting
from packhorse.processor.outcomes import Outcome
from packhorse.processor.parking import draining
from packhorse.processor.partition import deciding, ordering
from packhorse.processor.partition.events import Fetched
from packhorse.processor.running import batch, finishing, lane, lanes, sorting
from packhorse.processor.running.judging import parked
from packhorse.processor.running.work import LookUp, Member, SendKept
from packhorse.processor.storing import postgres
from packhorse.processor.watching.watchdog import Watchdog

Planting = Iterator[None]


@contextmanager
def _all(*patches: Any) -> Planting:
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield


def _no_watchdog() -> Any:
    return patch.object(Watchdog, "look", lambda self: 0)


# Those of the small model.


def no_watchdog() -> Any:
    """Let nobody look for what nobody goes on with."""
    return _no_watchdog()


def no_resend() -> Any:
    """Take a recorded attempt without a confirmed copy for one that waits as a copy."""
    uncopied = patch.object(lane.Lane, "_send_kept", _send_kept_once)
    return _all(uncopied, _no_watchdog())


def _send_kept_once(self: Any, ids: Sequence[Any]) -> None:
    """Send only what was committed just now."""
    if not getattr(self, "just", False):
        return
    self.just = False
    store, source = self._plant.store, self._here.stream.source
    uncopied = postgres.run(self._held(), store.uncopied(source, ids))
    places = lane.copies_sent(uncopied, self._plant)
    postgres.run(self._held(), store.confirm_copies(source, places))


def copy_first() -> Any:
    """Send the copy of a failed attempt before its transaction is committed."""
    commit = lane.Lane._commit

    def early(self: Any) -> None:
        store, source = self._plant.store, self._here.stream.source
        ids = [key[1] for key in self._held().transaction.wrote.get("retry", {})]
        uncopied = postgres.run(self._held(), store.uncopied(source, ids))
        places = lane.copies_sent(uncopied, self._plant)
        postgres.run(self._held(), store.confirm_copies(source, places))
        commit(self)

    return _all(patch.object(lane.Lane, "_commit", early), _no_watchdog())


def one_statement() -> Any:
    """Let a key go by a look at its followers that was made before its row was locked."""
    looks: dict[Any, bool] = {}

    def lock(c: Any, v: Any) -> Any:
        if c._snapshot is None:
            looks.update({(id(c), key): statements._followed(c, (v["source"], key)) for key in v["keys"]})
        return statements.lock_releasable(c, v)

    def release(c: Any, v: Any) -> Any:
        with patch.object(statements, "_followed", lambda c, key: looks.get((id(c), key[1]), True)):
            return statements.release_keys(c, v)

    return patch.dict(STATEMENTS, {"lock_releasable": lock, "release_keys": release})


def no_token() -> Any:
    """Let a drainer commit whose claim is another's by now."""

    def keep(c: Any, v: Any) -> Any:
        row = c.see("key", (v["source"], v["key"]))
        return statements.keep_claim(c, v if row is None else {**v, "token": row["token"]})

    return patch.dict(STATEMENTS, {"keep_claim": keep})


def give_up() -> Any:
    """Let who loses the race for a key leave it."""

    def leave(state: Any, followers: Any, members: Any) -> Any:
        results = yield from _run(state, followers, members)
        if results is None:
            state.conflicts = 1_000
        return results

    _run = draining._run
    return _all(patch.object(draining, "_run", leave), _no_watchdog())


# Those of queue, desk and decisions.


def key_runs_twice() -> Any:
    """Hand out messages of a key that is with a lane already."""
    take = Queue.take

    def free(self: Queue, *more: Any, **named: Any) -> list[Waiting]:
        self._flying = set()
        return take(self, *more, **named)

    return patch.object(Queue, "take", free)


def end_jumps_a_gap() -> Any:
    """Take the last message that is dealt with for the end."""

    def jump(self: Queue) -> None:
        while self._order and any(offset in self._ahead for offset, _ in self._order):
            offset, self._epoch = self._order.popleft()
            self._ahead.discard(offset)
            self._end = offset + 1
        if self._order:
            self._end = self._order[0][0]

    return patch.object(Queue, "_move_end", jump)


def mark_what_was_read() -> Any:
    """Move the watermark behind what was read."""
    marks = ordering.next_mark

    def read(state: Any, load: Any, limits: Any, **named: Any) -> Any:
        return marks(state, replace(load, end=max(load.end, state.expected)), limits, **named)

    return _all(patch.object(ordering, "next_mark", read), patch.object(deciding, "next_mark", read))


def commit_what_was_read() -> Any:
    """Commit the offset that was read, as a client's auto-commit does."""
    commits = ordering._next_commit

    def read(state: Any, limits: Any, **named: Any) -> Any:
        after, commands = commits(state, limits, **named)
        return after, tuple(replace(one, position=max(one.position, state.expected)) for one in commands)

    return patch.object(ordering, "_next_commit", read)


def settle_before_the_copy() -> Any:
    """Let an offset pass whose copy the broker has not confirmed."""

    def deaf(chunk: Any, *more: Any) -> Any:
        steps = finish(chunk, *more)
        answer: Any = None
        try:
            request = next(steps)
            while True:
                try:
                    answer = yield request
                except BrokerUnavailable:
                    if not isinstance(request, SendKept):
                        raise
                    answer = None
                request = steps.send(answer)
        except StopIteration as done:
            return done.value

    finish = finishing.finish
    return patch.object(batch, "finish", deaf)


def run_behind_a_parked_key() -> Any:
    """Run a message though its key is parked."""

    def new(found: Any, delivery: Any, key: Any, known: Any, *, carries: bool) -> None:
        del known
        if carries:
            found.duplicates.append(delivery)
        else:
            found.members.append(Member(delivery=delivery, key=key))

    return patch.object(sorting, "_new", new)


def void_keeps_what_is_ahead() -> Any:
    """Remember over a reconnect what is dealt with above the watermark."""

    def clear(self: Queue, offset: int) -> None:
        ahead = getattr(self, "_ahead", set())
        cleared(self, offset)
        self._ahead = {one for one in ahead if one >= offset}

    cleared = Queue.clear
    return patch.object(Queue, "clear", clear)


def stay_deaf() -> Any:
    """Remember everything over a reconnect."""
    return patch.object(Desk, "voided", lambda self, places=None: None)


def count_late_reports() -> Any:
    """Let what an earlier ownership finishes late count."""
    reported = Desk.reported

    def late(self: Desk, report: Report) -> None:
        slot = self._slots.get(report.place)
        if slot is not None and report.number in (None, *slot.flights):
            report = replace(report, generation=slot.state.generation)
        reported(self, report)

    return patch.object(Desk, "reported", late)


def believe_every_fetch() -> Any:
    """Take every fetch for what was asked for."""

    def believe(state: Any, event: Any, at: Any) -> Any:
        return deciding._fetched(replace(state, unproved=False), event, at)

    return patch.dict(deciding._REACTIONS, {Fetched: believe})


# Those of a chunk.


def no_look_after_a_conflict() -> Any:
    """Try again with what was known before another was first."""

    def forgetful(*more: Any, **named: Any) -> Any:
        steps, known = batch.run_batch(*more, **named), {}
        answer: Any = None
        try:
            request = next(steps)
            while True:
                asked = tuple(request.ids) if isinstance(request, LookUp) else None
                if asked in known:
                    request = steps.send(known[asked])
                    continue
                try:
                    answer = yield request
                except Exception as error:  # noqa: BLE001 handed on
                    request = steps.throw(error)
                    continue
                if asked is not None:
                    known[asked] = answer
                request = steps.send(answer)
        except StopIteration as done:
            return done.value

    return patch.object(lanes, "run_batch", forgetful)


def later_ones_of_a_key_run() -> Any:
    """Let what comes behind a failed message of its key run in the same chunk."""
    return _all(
        patch.object(batch, "attempt", _attempt_unparked),
    )


def _attempt_unparked(members: Any, how: Any) -> Any:
    for member in members:
        if member.result is not None and member.result.outcome is Outcome.PARKED and not member.head:
            continue
    return (yield from _attempt(members, how))


_attempt = batch.attempt


def results_without_inbox_rows() -> Any:
    """Commit what a handler did without the fact that it did."""

    def nothing(c: Any, v: Any) -> Any:
        return [], len(list(v["ids"]))

    return patch.dict(STATEMENTS, {"insert_done": nothing})


def keep_what_failed() -> Any:
    """Leave what a failed member has written in the transaction."""
    return patch.object(postgres, "undo", lambda connection: None)


MODEL = (no_watchdog, no_resend, copy_first, one_statement, no_token, give_up)
MEMBER = (
    key_runs_twice,
    end_jumps_a_gap,
    mark_what_was_read,
    commit_what_was_read,
    void_keeps_what_is_ahead,
    stay_deaf,
    count_late_reports,
    believe_every_fetch,
)
CHUNK = (
    settle_before_the_copy,
    run_behind_a_parked_key,
    no_look_after_a_conflict,
    results_without_inbox_rows,
    keep_what_failed,
)

Plant = Callable[[], Any]
__all__ = ["CHUNK", "MEMBER", "MODEL", "PlainLane", "Plant", "parked"]
