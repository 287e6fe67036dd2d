"""What does not move is told apart from what explains itself, said once and then ever more rarely."""

import asyncio
import threading
from collections.abc import Iterable

import pytest

from packhorse.processor.watching.alarms import Alarms, Ended, Standing, speak
from packhorse.processor.watching.hands import Hand, Hands
from packhorse.processor.watching.stacks import MOST_FRAMES, stack_of, trimmed
from packhorse.processor.watching.stall import Cause, PartitionSample, Stall, Tracks, look

AFTER = 60.0


def sample(**given: object) -> PartitionSample:
    fields: dict[str, object] = {
        "topic": "a.b",
        "partition": 3,
        "generation": 1,
        "phase": "reading",
        "position": 10,
        "pending": 5,
    }
    return PartitionSample(**(fields | given))  # type: ignore[arg-type]


def hand(since: float, *, offset: int = 10, partition: int = 3) -> Hand:
    return Hand(offset, "a.b", partition, offset, "b.Done", since, 1)


def after(
    seconds: float, *samples: PartitionSample, hands: Iterable[Hand] = (), lanes: int = 4
) -> tuple[Stall, ...]:
    """Look once at 0 and once after *seconds*, at the same samples."""
    held = list(hands)
    tracks, _ = look(Tracks(), samples, [h for h in held if h.since <= 0], lanes=lanes, now=0.0, after=AFTER)
    return look(tracks, samples, held, lanes=lanes, now=seconds, after=AFTER)[1]


@pytest.mark.case("X-03")
@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({}, Cause.UNEXPLAINED),
        ({"pending": 0, "end": 11}, Cause.UNEXPLAINED),
        ({"pending": 0, "running": 1}, Cause.UNEXPLAINED),
        ({"position": None, "pending": 0, "phase": "opening"}, Cause.UNEXPLAINED),
        ({"phase": "waiting", "until": 500.0}, Cause.NOT_DUE),
        ({"phase": "waiting", "until": 0.5}, Cause.UNEXPLAINED),
        ({"until": 70.0}, Cause.HELD),
        ({"held": "paused by ann"}, Cause.PAUSED),
        ({"trouble": "the database is away"}, Cause.TROUBLE),
        ({"unreachable": "no leader"}, Cause.BROKER_AWAY),
        ({"phase": "draining"}, Cause.LEAVING),
        ({"full": True}, Cause.LANES),
        ({"full": True, "pending": 0, "end": 11}, Cause.UNEXPLAINED),
        ({"full": True, "running": 1}, Cause.UNEXPLAINED),
        ({"full": True, "phase": "opening"}, Cause.UNEXPLAINED),
    ],
)
def test_a_partition_with_work_that_stands_still_is_named_with_its_cause(
    given: dict[str, object], cause: Cause
) -> None:
    """Fails when a look drops the partition, or takes the one cause for the other."""
    found = after(61, sample(**given))
    assert [stall.cause for stall in found] == [cause]
    assert found[0].where == "a.b[3]"
    assert after(59, sample(**given)) == ()


def test_a_partition_without_work_never_stalls() -> None:
    assert after(9_000, sample(pending=0, end=10), sample(partition=4, pending=0)) == ()


@pytest.mark.parametrize("change", [{"position": 11}, {"generation": 2}])
def test_a_watermark_that_moves_or_another_ownership_begins_anew(change: dict[str, object]) -> None:
    tracks, _ = look(Tracks(), [sample()], [], lanes=4, now=0.0, after=AFTER)
    tracks, _ = look(tracks, [sample(**change)], [], lanes=4, now=50.0, after=AFTER)
    assert look(tracks, [sample(**change)], [], lanes=4, now=100.0, after=AFTER)[1] == ()
    assert look(tracks, [sample(**change)], [], lanes=4, now=111.0, after=AFTER)[1] != ()


@pytest.mark.case("P-22")
def test_a_handler_that_runs_for_long_is_named_and_explains_its_partition() -> None:
    partition, handler = after(61, sample(running=1), hands=[hand(0.0)])
    assert (partition.cause, partition.unexplained) == (Cause.HANDLER, False)
    assert (handler.cause, handler.offset, handler.where) == (
        Cause.HANDLER,
        10,
        "a.b[3] at offset 10",
    )


def test_handlers_that_begin_one_after_another_move_a_partition_for_a_while() -> None:
    """One slow batch is no stall; a watermark that stands for five times as long behind a hole is one."""
    assert after(61, sample(running=1), hands=[hand(60.0)]) == ()
    assert [stall.cause for stall in after(301, sample(), hands=[hand(300.0)])] == [Cause.UNEXPLAINED]


def test_followers_that_are_run_from_a_tier_move_it() -> None:
    """Fails when a tier's partition that drains thousands of followers counts as standing still: they bear the source's name."""
    tier = sample(topic="a.b.g.retry.0s", source="a.b", running=1)
    assert after(61, tier, hands=[hand(50.0)]) == ()
    idle = sample(topic="a.b.g.retry.0s", source="a.b")
    assert [stall.cause for stall in after(61, idle, hands=[hand(50.0)])] == [Cause.UNEXPLAINED]


def test_a_partition_that_waits_for_lanes_says_so() -> None:
    others = [hand(30.0, partition=7), hand(30.0, partition=8, offset=11)]
    assert [stall.cause for stall in after(61, sample(), hands=others, lanes=2)] == [Cause.LANES]


def test_a_stall_is_said_once_then_ever_more_rarely_and_its_end_too() -> None:
    alarms, said = Alarms(), []
    tracks, _ = look(Tracks(), [sample()], [], lanes=4, now=0.0, after=AFTER)
    for now in range(1, 1_000):
        tracks, stalls = look(tracks, [sample()], [], lanes=4, now=now, after=AFTER)
        alarms, spoken = speak(alarms, stalls, now=now, after=AFTER)
        said += [now] * len(spoken)
    assert said == [60, 120, 240, 480, 960]
    alarms, spoken = speak(alarms, [], now=1_000, after=AFTER)
    assert spoken == (Ended(subjects=(("partition", "a.b", 3, None),), seconds=1_000),)
    assert speak(alarms, [], now=1_001, after=AFTER)[1] == ()


def test_a_cause_that_changes_is_said_at_once_and_what_a_person_wants_is_not_said() -> None:
    away = after(61, sample(trouble="away"))
    alarms, spoken = speak(Alarms(), away, now=61, after=AFTER)
    assert len(spoken) == 1
    alarms, spoken = speak(alarms, after(62, sample()), now=62, after=AFTER)
    assert [one.stalls[0].cause for one in spoken if isinstance(one, Standing)] == [Cause.UNEXPLAINED]
    assert speak(Alarms(), after(61, sample(held="paused by ann")), now=61, after=AFTER)[1] == ()


def test_an_outage_that_stops_hundreds_is_one_line_with_their_number() -> None:
    """Fails when each partition that an outage stops is a line of its own, at each of the seconds in which they come to stand."""
    alarms, said = Alarms(), []
    away = [
        Stall(topic="a.b", partition=number, since=0.0, cause=Cause.TROUBLE, text="away")
        for number in range(300)
    ]
    for now in range(60):
        alarms, spoken = speak(alarms, away[: 5 * (now + 1)], now=float(now), after=AFTER)
        said += [len(one.stalls) for one in spoken if isinstance(one, Standing)]
    assert said == [5]
    alarms, (again,) = speak(alarms, away, now=60.0, after=AFTER)
    assert isinstance(again, Standing)
    assert len(again.stalls) == 300
    alarms, spoken = speak(alarms, away[:1], now=70.0, after=AFTER)
    assert spoken == ()
    alarms, (over,) = speak(alarms, [], now=80.0, after=AFTER)
    assert isinstance(over, Ended)
    assert (len(over.subjects), over.seconds) == (300, 80.0)


def handler_that_waits(inside: threading.Event, go: threading.Event) -> None:
    inside.set()
    go.wait(10)


def test_the_stack_of_a_thread_names_the_handler_and_no_value() -> None:
    inside, go = threading.Event(), threading.Event()
    hands = Hands(lambda: 0.0)

    def lane() -> None:
        number = hands.take("a.b", 3, 10, "b.Done")
        handler_that_waits(inside, go)
        hands.drop(number)

    thread = threading.Thread(target=lane)
    thread.start()
    assert inside.wait(10)
    stack = stack_of(hands.held()[0])
    go.set()
    thread.join(10)
    assert any("test_stalls.py:" in line and "handler_that_waits" in line for line in stack)
    assert hands.held() == []


def test_the_stack_of_a_task_follows_what_it_awaits() -> None:
    """Fails when the task's own frame alone is taken: where it hangs would not be told."""

    async def deepest(inside: asyncio.Event) -> None:
        inside.set()
        await asyncio.Event().wait()

    async def handler(inside: asyncio.Event) -> None:
        await deepest(inside)

    async def run() -> tuple[str, ...]:
        inside = asyncio.Event()
        task = asyncio.create_task(handler(inside))
        await inside.wait()
        held = Hand(1, "a.b", 3, 10, "b.Done", 0.0, threading.get_ident(), task)
        stack = stack_of(held)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return stack

    stack = asyncio.run(run())
    named = [line.rpartition(".")[2] for line in stack]
    assert named.index("handler") < named.index("deepest")


def test_a_deep_stack_is_cut_at_its_outer_end() -> None:
    frames = [(f"/srv/app/{n}.py", n, "f") for n in range(100)]
    lines = trimmed(frames)
    assert len(lines) == MOST_FRAMES + 1
    assert lines[-1] == "srv/app/99.py:99 f"
