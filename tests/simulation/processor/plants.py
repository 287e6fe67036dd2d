"""Errors to plant: each is one small change that a careless hand could make, and the checker must find every one."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.simulation.processor import adapter, statements
from tests.simulation.processor.statements import STATEMENTS

from packhorse.core.errors import BrokerUnavailable
from packhorse.processor.member.desk import Desk
from packhorse.processor.member.jobs import Report
from packhorse.processor.member.queue import Queue, Waiting
from packhorse.processor.parking import draining, many
from packhorse.processor.partition import deciding, ordering
from packhorse.processor.partition.events import ChunkEnded, Fetched
from packhorse.processor.running import attempting, batch, finishing, lane, lanework, sorting
from packhorse.processor.running.judging import done
from packhorse.processor.running.requests import (
    ReleaseKeys,
    RunHandler,
    SendKept,
)
from packhorse.processor.running.work import Member
from packhorse.processor.storing import postgres
from packhorse.processor.watching.watchdog import Watchdog

Planting = Iterator[None]


@contextmanager
def _all(*patches: Any) -> Planting:
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield


# Those of the small model.


def no_watchdog() -> Any:
    """Let nobody look for what nobody goes on with."""
    return patch.object(Watchdog, "look", lambda self: 0)


def no_resend() -> Any:
    """Take a recorded attempt without a confirmed copy for one that waits as a copy."""

    def sort(*more: Any) -> Any:
        found = _sort(*more)
        found.uncopied.clear()
        return found

    def release(keys: Any) -> Any:
        released = yield ReleaseKeys(sorted(set(keys)))
        return released

    _sort = sorting.sort
    return _all(patch.object(batch, "sort", sort), patch.object(many, "release", release))


def copy_first() -> Any:
    """Send the copy of a failed attempt before its transaction is committed."""
    commit = lane.Lane._commit

    def early(self: Any, runs: Any) -> None:
        store, source = self._plant.store, self._here.stream.source
        ids = [key[1] for key in self._held().transaction.wrote.get("retry", {})]
        uncopied = postgres.run(self._held(), store.uncopied(source, ids))
        places = lanework.copies_sent(uncopied, self._plant)
        postgres.run(self._held(), store.confirm_copies(source, places))
        commit(self, runs)

    return patch.object(lane.Lane, "_commit", early)


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


def no_token_and_no_row() -> Any:
    """
    Let a drainer commit whose claim is another's by now, and whose followers are not parked any more.

    Either of the two alone is enough: the token says no at the end, the inbox row at the beginning.
    """

    def keep(c: Any, v: Any) -> Any:
        row = c.see("key", (v["source"], v["key"]))
        return ([], 1) if row is None else statements.keep_claim(c, {**v, "token": row["token"]})

    def lock(c: Any, v: Any) -> Any:
        rows = [(hashed, c.seize("key", (v["source"], hashed))) for hashed in sorted(v["keys"])]
        return [(hashed, row is None or row["paused"]) for hashed, row in rows], len(rows)

    def update(c: Any, v: Any) -> Any:
        was, expected = list(v["was"]), list(v["expected"])
        for at, one in enumerate(v["ids"]):
            row = c.see("inbox", (v["source"], one))
            if was[at] == "parked" and row is not None:
                was[at], expected[at] = row["outcome"], row["attempt"]
        return statements.update_results(c, {**v, "was": was, "expected": expected})

    return patch.dict(STATEMENTS, {"keep_claim": keep, "lock_claimed": lock, "update_results": update})


def give_up() -> Any:
    """Let who finds that another drains a key pass it by."""

    def release(keys: Any) -> Any:
        released = yield from released_(keys)
        return released._replace(busy={})

    released_ = draining.release
    return patch.object(many, "release", release)


# Those of queue, desk and decisions.


def key_runs_twice() -> Any:
    """Hand out messages of a key that is with a lane already."""
    take = Queue.take

    def free(self: Queue, *more: Any, **named: Any) -> list[Waiting]:
        self._flying = set()
        return take(self, *more, **named)

    return patch.object(Queue, "take", free)


def wait_before_an_earlier_one() -> Any:
    """Let a record wait alone though an earlier one of its key goes back."""

    def settle(self: Queue, chunk: Any, left: Any, held: Any, now: float) -> None:
        settled(self, chunk, left, {}, now)
        for one in [one for one in self._ready if one.delivery.record.offset in held]:
            self._ready.remove(one)
            self._held.append((now + held[one.delivery.record.offset], one))
            if one.key is not None:
                self._flying.add(one.key)

    settled = Queue.settle
    return patch.object(Queue, "settle", settle)


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
        found: Any = commits(state, limits, **named)
        after, commands = found
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
        ahead: set[int] = getattr(self, "_ahead", set())
        cleared(self, offset)
        self._ahead = {one for one in ahead if one >= offset}

    cleared = Queue.clear
    return patch.object(Queue, "clear", clear)


def stay_deaf() -> Any:
    """Remember everything over a reconnect."""
    return patch.object(Desk, "voided", lambda self, places=None: None)


def count_late_reports() -> Any:
    """Let what an earlier ownership finishes late count for the one of now."""
    reported = Desk.reported

    def late(self: Desk, report: Report) -> None:
        slot = self._slots.get(report.place)
        if slot is not None and report.generation != slot.state.generation:
            if report.number is not None:
                self._dispatcher.ended(report.number)
                report = replace(report, number=next(iter(slot.flights), None))
            if report.number is not None or not isinstance(report.event, ChunkEnded):
                report = replace(report, generation=slot.state.generation)
        if slot is None or not isinstance(report.event, ChunkEnded) or report.number in slot.flights:
            reported(self, report)

    return patch.object(Desk, "reported", late)


def believe_every_fetch() -> Any:
    """Take every fetch for what was asked for."""

    def believe(state: Any, event: Any, at: Any) -> Any:
        return deciding._fetched(replace(state, unproved=False), event, at)

    return patch.dict(deciding._REACTIONS, {Fetched: believe})


# Those of a chunk.


def conflict_counts_as_done() -> Any:
    """Take what another was first with, and all that shared its transaction, for dealt with."""

    def attempt(members: Any, how: Any) -> Any:
        results = yield from attempted(members, how)
        return [done(member) for member in members] if results is None else results

    attempted = attempting.attempt
    return patch.object(batch, "attempt", attempt)


def behind_what_stopped_runs() -> Any:
    """Let what comes behind a failed message of its key run in the same transaction."""

    def unparked(members: Any, how: Any) -> Any:
        steps, answer = run(members, how), None
        try:
            request = next(steps)
            while True:
                if isinstance(request, RunHandler):
                    for member in members:
                        if member.result is not None and member.result.parks:
                            member.result = member.result._replace(parks=False)
                answer = yield request
                request = steps.send(answer)
        except StopIteration as done:
            return done.value

    run = attempting._run_members
    return patch.object(attempting, "_run_members", unparked)


def results_without_inbox_rows() -> Any:
    """Commit what a handler did without the fact that it did."""

    def nothing(c: Any, v: Any) -> Any:
        return [], len(list(v["ids"]))

    return patch.dict(STATEMENTS, {"insert_done": nothing})


def keep_what_failed() -> Any:
    """Leave what a failed member has written in the transaction."""
    return patch.object(adapter, "undo", adapter.nothing)


PLANTS: dict[Callable[[], Any], str] = {
    no_watchdog: "parking",
    no_resend: "unwatched",
    copy_first: "unwatched",
    give_up: "unwatched",
    one_statement: "races",
    no_token_and_no_row: "zombies",
    key_runs_twice: "",
    wait_before_an_earlier_one: "systems",
    end_jumps_a_gap: "",
    mark_what_was_read: "",
    commit_what_was_read: "",
    void_keeps_what_is_ahead: "restores",
    stay_deaf: "restores",
    count_late_reports: "returns",
    believe_every_fetch: "restores",
    settle_before_the_copy: "parking",
    run_behind_a_parked_key: "parking",
    behind_what_stopped_runs: "parking",
    conflict_counts_as_done: "zombies",
    results_without_inbox_rows: "",
    keep_what_failed: "",
}
"""The errors, each with the theme that shows it soonest; all of them are found in it within the seeds of the normal run."""
