"""What may run, what waits behind it, and how far all is dealt with: the queue of one partition alone."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packhorse.processor.member.queue import PLAIN, SLOW_KEYS, Kind, Queue, Waiting
from packhorse.processor.record import Record, Stream, delivery_of

STREAM = Stream(topic="shop.orders", topic_id=UUID(int=1), source="shop.orders")
ASYNC = Kind(is_async=True)


def waiting(
    offset: int, key: str | None = "k", kind: Kind = PLAIN, gate: str = "g", epoch: int = 0
) -> Waiting:
    record = Record("shop.orders", 0, offset, epoch, 0, (key or "").encode(), b"v", ())
    return Waiting(delivery_of(record, STREAM), key, kind, gate, 10)


def filled(*records: Waiting) -> Queue:
    queue = Queue(records[0].delivery.record.offset)
    queue.extend(records)
    return queue


def offsets(chunk: list[Waiting]) -> list[int]:
    return [one.delivery.record.offset for one in chunk]


def settle(queue: Queue, chunk: list[Waiting], *left: int, held: dict[int, float] | None = None) -> None:
    queue.settle(chunk, left, held or {}, now=0.0)


@pytest.mark.case("P-23")
def test_a_key_is_in_one_chunk_at_a_time_and_other_keys_go_on() -> None:
    """Fails when a record is taken whose key is in flight."""
    queue = filled(waiting(0, "a"), waiting(1, "b"), waiting(2, "a"), waiting(3, "c"), waiting(4, "b"))
    first = queue.take(2)
    assert offsets(first) == [0, 1]
    assert offsets(queue.take(9)) == [3]
    assert queue.take(9) == []
    settle(queue, first)
    assert offsets(queue.take(9)) == [2, 4]


def test_one_chunk_may_hold_a_key_several_times_in_order() -> None:
    queue = filled(waiting(0, "a"), waiting(1, "a"), waiting(2, "b"))
    assert offsets(queue.take(9)) == [0, 1, 2]


@pytest.mark.case("P-24")
def test_records_without_a_key_are_bound_to_nothing() -> None:
    """Fails when the null key is taken for a key like any other."""
    queue = filled(*(waiting(n, None) for n in range(4)))
    assert [offsets(queue.take(1)) for _ in range(4)] == [[0], [1], [2], [3]]


@pytest.mark.case("P-02")
@pytest.mark.case("P-12")
def test_the_end_never_jumps_a_gap_and_knows_holes_of_the_log() -> None:
    """Fails when the end follows the highest that is done, or waits for offsets that the log does not hold."""
    queue = filled(waiting(3, "a", epoch=1), waiting(7, "b", epoch=2), waiting(8, "c", epoch=3))
    assert queue.load.end == 3
    slow, rest = queue.take(1), queue.take(9)
    settle(queue, rest)
    assert (queue.load.end, queue.load.pending, queue.load.tracked) == (3, 1, 3)
    settle(queue, slow)
    assert (queue.load.end, queue.load.epoch, queue.load.tracked) == (9, 3, 0)


def test_the_epoch_is_that_of_the_last_record_below_the_end() -> None:
    """A later one hides that the log was cut and written anew. Fails when it is taken of the last record that was read."""
    queue = filled(waiting(0, "a", epoch=1), waiting(1, "b", epoch=1), waiting(2, "c", epoch=2))
    first = queue.take(2)
    settle(queue, first)
    assert (queue.load.end, queue.load.epoch) == (2, 1)


def test_what_is_left_comes_again_before_what_came_later() -> None:
    queue = filled(waiting(0, "a"), waiting(1, "b"), waiting(2, "a"), waiting(3, "b"))
    chunk = queue.take(2)
    queue.take(0)
    settle(queue, chunk, 0, 1)
    assert offsets(queue.take(9)) == [0, 1, 2, 3]


def test_one_that_waits_alone_holds_its_key_and_nothing_else() -> None:
    """Fails when what comes behind it of its key goes on, or its neighbours wait too."""
    queue = filled(waiting(0, "a"), waiting(1, "b"), waiting(2, "a"), waiting(3, "a"))
    chunk = queue.take(3)
    settle(queue, chunk, 0, 2, held={0: 5.0})
    assert queue.take(9) == []
    assert queue.wake(4.9) is False
    assert queue.wake(5.0) is True
    assert offsets(queue.take(9)) == [0, 2, 3]
    assert queue.load.end == 0


def test_chunks_are_of_one_kind_and_order_of_a_key_holds_over_kinds() -> None:
    """Fails when a record of another kind is passed over and a later one of its key is not."""
    queue = filled(waiting(0, "a"), waiting(1, "b", ASYNC), waiting(2, "b"), waiting(3, "c"))
    assert offsets(queue.take(9)) == [0, 3]
    assert offsets(queue.take(9)) == [1]
    assert queue.take(9) == []


def test_a_lonely_record_and_a_handler_that_wants_it_so_share_no_chunk() -> None:
    alone = Kind(alone=True)
    queue = filled(waiting(0, "a", alone), waiting(1, "b", alone), waiting(2, "c"), waiting(3, "d"))
    assert [offsets(queue.take(9, lonely={2})) for _ in range(4)] == [[0], [1], [2], [3]]


def test_a_slow_key_goes_alone_and_only_when_it_may() -> None:
    queue = filled(waiting(0, "a"), waiting(1, "b"), waiting(2, "c"))
    queue.learn(slow=["a"], quick=[])
    assert offsets(queue.take(9, slow=False)) == [1, 2]
    assert offsets(queue.take(9)) == [0]
    queue.learn(slow=(str(n) for n in range(2 * SLOW_KEYS)), quick=["a"])
    queue.extend([waiting(5, "d"), waiting(6, "e")])
    assert offsets(queue.take(9)) == [5, 6]


@pytest.mark.case("T-21")
def test_a_shut_gate_lets_nothing_through_but_the_first_of_each_key_as_a_probe() -> None:
    """Fails when a message behind another of its key is tried first."""
    queue = filled(waiting(0, "a"), waiting(1, "a"), waiting(2, "b", gate="other"), waiting(3, "c"))
    assert offsets(queue.take(9, shut={"g"})) == [2]
    assert offsets(queue.candidates("g")) == [0, 3]
    queue.pull(queue.candidates("g")[1])
    assert offsets(queue.candidates("g")) == [0]


@pytest.mark.case("T-20")
def test_a_record_does_not_wait_alone_while_an_earlier_one_of_its_key_goes_back() -> None:
    """
    A transaction was rolled back for the one in the middle, which is to wait; the one before it did nothing wrong.

    Fails when the one before it comes back behind it.
    """
    queue = filled(waiting(0, "a"), waiting(1, "a"), waiting(2, "a"), waiting(3, "b"))
    settle(queue, queue.take(3), 0, 1, 2, held={1: 5.0})
    again = queue.take(9, lonely={1})
    assert offsets(again) == [0, 3]
    settle(queue, again)
    settle(queue, queue.take(9, lonely={1}), 1, held={1: 5.0})
    assert queue.take(9, lonely={1}) == []
    queue.wake(5.0)
    assert [offsets(queue.take(9, lonely={1})), queue.take(9)] == [[1], []]


@pytest.mark.case("T-20")
@pytest.mark.case("T-21")
def test_a_backlog_of_a_stopped_handler_hides_nothing_behind_it() -> None:
    """Fails when the queue is looked through up to some number of records only: other handlers would stand still with it."""
    queue = filled(*(waiting(n, f"k{n}") for n in range(2_000)), waiting(2_000, "x", gate="other"))
    assert offsets(queue.take(5, shut={"g"})) == [2_000]


class Asked(str):
    """The name of a gate that counts how often it is compared."""

    __slots__ = ("compared",)

    def __init__(self, name: str) -> None:
        del name
        self.compared = 0

    def __eq__(self, other: object) -> bool:
        self.compared += 1
        return str.__eq__(self, other) is True

    __hash__ = str.__hash__


def test_a_queue_is_not_looked_through_for_a_gate_of_which_nothing_is_there() -> None:
    """Fails when each look goes through all records: with many partitions that is much of the loop's time."""
    queue = filled(waiting(0, None), *(waiting(n, None, gate="other") for n in range(1, 500)))
    never, gone = Asked("never"), Asked("g")
    assert queue.candidates(never) == []
    assert never.compared == 0

    settle(queue, queue.take(1))
    assert queue.candidates(gone) == []
    once = gone.compared
    assert queue.candidates(gone) == []
    assert gone.compared == once


@pytest.mark.parametrize("how", ["left", "held", "behind", "new"])
def test_a_gate_is_looked_for_again_when_records_come(how: str) -> None:
    """Fails when only new records count: what comes back from a lane would never be tried."""
    queue = filled(waiting(0, "a"), waiting(1, "b", gate="other"))
    if how == "behind":
        queue = filled(waiting(0, "a", gate="other"), waiting(1, "a"))
    chunk = queue.take(1)
    assert queue.take(1, shut={"other"}) == []
    assert queue.candidates("g") == []
    if how == "new":
        queue.extend([waiting(2, "c")])
    else:
        left = [] if how == "behind" else [0]
        settle(queue, chunk, *left, held={0: 1.0} if how == "held" else None)
        queue.wake(2.0)
    assert len(queue.candidates("g")) == 1


class Machine:
    """The queue beside a plain list of what it was given; records whose offset is even are behind one of two gates."""

    def __init__(self) -> None:
        self.queue, self.next = Queue(0), 0
        self.flying: list[list[Waiting]] = []
        self.done: set[int] = set()
        self.all: dict[int, str | None] = {}

    def extend(self, keys: list[str | None], hole: int) -> None:
        self.next += hole
        records = [waiting(at, key, gate="ab"[at % 2]) for at, key in enumerate(keys, self.next)]
        self.all.update(enumerate(keys, self.next))
        self.next += len(keys)
        self.queue.extend(records)

    def take(self, limit: int, shut: str = "", lonely: int = -1) -> None:
        chunk = self.queue.take(limit, shut=set(shut), lonely={lonely})
        assert not {one.gate for one in chunk} & set(shut)
        assert len(chunk) == 1 or lonely not in offsets(chunk)
        held = {one.key for other in self.flying for one in other if one.key is not None}
        for one in chunk:
            assert one.key is None or one.key not in held
            before = [
                at for at, key in self.all.items() if key == one.key and at < one.delivery.record.offset
            ]
            together = {other.delivery.record.offset for other in chunk}
            assert one.key is None or all(at in self.done or at in together for at in before)
        assert _in_order(chunk)
        if chunk:
            self.flying.append(chunk)

    def settle(self, which: int, left: int, waits: int) -> None:
        if not self.flying:
            return
        chunk = self.flying.pop(which % len(self.flying))
        back = offsets(chunk)[len(chunk) - left % (len(chunk) + 1) :]
        self.done |= set(offsets(chunk)) - set(back)
        settle(self.queue, chunk, *back, held={at: 1.0 for n, at in enumerate(back) if waits >> n & 1})

    def wake(self) -> None:
        self.queue.wake(1.0)

    def check(self) -> None:
        undone = [at for at in self.all if at not in self.done]
        load = self.queue.load
        assert load.pending == len(undone)
        assert load.size == 10 * len(undone)
        assert load.end <= min(undone, default=self.next)
        assert not undone or load.end == min(undone) or not self.all


def _in_order(chunk: list[Waiting]) -> bool:
    """Return whether each key's records stand in order; keys may change places."""
    last: dict[str, int] = {}
    for one in chunk:
        at = one.delivery.record.offset
        if one.key is not None and at < last.get(one.key, -1):
            return False
        if one.key is not None:
            last[one.key] = at
    return True


STEPS = st.one_of(
    st.tuples(
        st.just("extend"), st.lists(st.sampled_from(["a", "b", "c", None]), max_size=6), st.integers(0, 2)
    ),
    st.tuples(st.just("take"), st.integers(1, 5), st.sampled_from(["", "a", "b"]), st.integers(-1, 20)),
    st.tuples(st.just("settle"), st.integers(0, 5), st.integers(0, 5), st.integers(0, 31)),
    st.tuples(st.just("wake")),
)


@pytest.mark.case("P-23")
@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_whatever_comes_a_key_runs_once_at_a_time_and_in_order(steps: list[Any]) -> None:
    machine = Machine()
    for name, *arguments in steps:
        getattr(machine, name)(*arguments)
        machine.check()
    for _ in range(200):
        machine.wake()
        machine.take(5)
        machine.settle(0, 0, 0)
    assert machine.done == set(machine.all)
