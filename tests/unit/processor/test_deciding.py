"""The decisions about one partition, from state and event alone."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packhorse.core.backoff import Backoff
from packhorse.processor.partition.deciding import Decision, decide
from packhorse.processor.partition.events import (
    Assigned,
    BatchEnded,
    CommitFailed,
    CommitRefused,
    Committed,
    Ended,
    Event,
    Fetched,
    FetchStopped,
    LaneBroke,
    Lost,
    Opened,
    OpenFailed,
    Revoking,
    Tick,
    Voided,
)
from packhorse.processor.partition.orders import (
    Alarm,
    Attach,
    Commit,
    DropBelow,
    Open,
    Pause,
    Resume,
    Run,
    Seek,
    StopProcess,
    Take,
)
from packhorse.processor.partition.state import (
    Limits,
    PartitionState,
    Phase,
)

LIMITS = Limits(batch=10, buffered=20, commit_every=1.0, backoff=Backoff(first=0.1, longest=1.0))
TOPIC_ID = UUID(int=1)


def opened(start: int = 0, position: int | None = None, committed: int | None = None) -> Opened:
    at = start if position is None else position
    return Opened(start=start, position=at, leader_epoch=None, committed=committed, topic_id=TOPIC_ID)


def ended(handled: int, records: int, kind: Ended = Ended.WELL, **more: Any) -> BatchEnded:
    told = {"position": handled, "leader_epoch": 0, "size": records} | more
    return BatchEnded(ended=kind, handled=handled, records=records, **told)


def fetched(first: int, count: int) -> Fetched:
    return Fetched(first=first, last=first + count - 1, count=count, size=count)


def follow(*events: Event, state: PartitionState | None = None, now: float = 0.0) -> Decision:
    """Return the state after *events*, and what the last one ordered."""
    state = state or PartitionState(generation=1)
    commands: tuple[Any, ...] = ()
    for event in events:
        state, commands = decide(state, event, LIMITS, now=now, jitter=0.0)
    return state, commands


READING = follow(Assigned(), opened(committed=0))[0]


def test_an_assigned_partition_reads_its_watermark_before_anything_is_fetched() -> None:
    assert follow(Assigned())[1] == (Open(),)
    assert follow(Assigned(), fetched(0, 3))[1] == ()
    _, commands = follow(Assigned(), opened(7, committed=7))
    assert [type(c).__name__ for c in commands] == ["Forget", "Attach"]
    assert commands[1] == Attach(offset=7)


@pytest.mark.case("P-01")
@pytest.mark.case("P-04")
def test_a_commit_carries_the_watermark_and_nothing_that_was_only_read() -> None:
    """Fails when the commit carries `expected` or `handled`."""
    state, _ = follow(fetched(0, 9), state=READING)
    state, commands = follow(ended(4, 4, Ended.NOT_DUE, wait=5.0, position=4), state=state)
    assert commands == (DropBelow(offset=4), Commit(position=4, leader_epoch=0))
    assert state.phase is Phase.WAITING
    assert state.expected == 9


@pytest.mark.case("P-09")
def test_a_failed_commit_is_sent_again_with_the_newest_though_no_message_follows() -> None:
    """Fails when the retry waits for another batch, or repeats the old position."""
    state, _ = follow(fetched(0, 2), ended(2, 2), state=READING)
    state, commands = follow(CommitFailed(position=2), state=state)
    assert commands == ()
    state = replace(state, position=5)
    assert decide(state, Tick(), LIMITS, now=0.5, jitter=0.0)[1] == ()
    state, commands = decide(state, Tick(), LIMITS, now=1.5, jitter=0.0)
    assert commands == (Commit(position=5, leader_epoch=0),)
    state, commands = decide(state, Committed(position=5), LIMITS, now=9.0, jitter=0.0)
    assert commands == ()


@pytest.mark.case("P-10")
def test_a_refused_commit_lets_the_watermark_be_read_again() -> None:
    state, _ = follow(fetched(0, 2), ended(2, 2), CommitRefused(), state=READING)
    assert state.reopen
    assert decide(state, Tick(), LIMITS, now=5.0, jitter=0.0)[1] == (Open(),)


@pytest.mark.case("P-05")
@pytest.mark.case("P-07")
def test_a_draining_partition_begins_nothing_and_keeps_what_becomes_durable() -> None:
    """Fails when a record that was just taken is run, or a result that comes in time is not committed."""
    state, commands = follow(fetched(0, 5), Revoking(), state=READING)
    assert state.busy
    assert follow(fetched(5, 2), Tick(), Voided(), state=state, now=9.0)[1] == ()
    state, commands = follow(ended(2, 2), state=state)
    assert commands == (DropBelow(offset=2),)
    assert (state.position, state.busy) == (2, False)


@pytest.mark.case("P-10")
def test_a_lost_partition_orders_nothing_more() -> None:
    state, _ = follow(fetched(0, 5), Lost(), state=READING)
    for event in (ended(5, 5), Tick(), fetched(5, 1), opened(3), Voided(), CommitFailed(position=1)):
        assert follow(event, state=state, now=99.0) == (state, ())


@pytest.mark.case("P-11")
def test_after_the_client_stopped_fetching_a_seek_follows_though_the_watermark_stands() -> None:
    """Fails when what is read ahead is believed: the client fetches nothing more until it is told where."""
    state, _ = follow(fetched(0, 5), ended(2, 2, Ended.NOT_DUE, wait=9.0, position=2), state=READING)
    state, commands = follow(FetchStopped(text="out of range"), state=state)
    assert [type(command).__name__ for command in commands] == ["Alarm"]
    state, commands = decide(state, Tick(), LIMITS, now=1.0, jitter=0.0)
    assert commands == (Open(),)
    state, commands = follow(opened(2, committed=2), state=state)
    assert Seek(offset=2) in commands
    assert (state.expected, state.buffered, state.stopped) == (2, 0, False)


def test_one_job_at_a_time_is_with_a_lane() -> None:
    state, commands = follow(fetched(0, 5), state=READING)
    assert commands == (Take(), Run(limit=10, position=0, leader_epoch=None))
    assert follow(fetched(5, 5), Tick(), state=state)[1] == ()


def test_fetching_pauses_when_the_buffer_is_full_and_resumes_at_half() -> None:
    state, commands = follow(fetched(0, 25), state=READING)
    assert commands[-1] == Pause()
    state, commands = follow(ended(10, 10), state=state)
    assert Resume() not in commands
    assert Resume() in follow(ended(20, 10), state=state)[1]


def test_a_jump_right_after_a_seek_is_believed_only_when_it_shows_twice() -> None:
    """Fails when a stale fetch is taken for a hole."""
    state, commands = follow(fetched(40, 2), state=READING)
    assert commands == (Seek(offset=0),)
    assert Take() in follow(fetched(40, 2), state=state)[1]
    assert Take() in follow(fetched(0, 2), state=state)[1]
    later, _ = follow(fetched(0, 2), state=READING)
    assert Take() in follow(fetched(7, 2), state=later)[1]


def test_records_from_before_the_position_are_not_taken() -> None:
    state, _ = follow(fetched(0, 5), state=READING)
    assert follow(fetched(3, 2), state=state)[1] == (Seek(offset=5),)


@pytest.mark.case("P-26")
def test_an_outage_waits_longer_each_time_and_then_reads_the_watermark_again() -> None:
    state, _ = follow(fetched(0, 5), state=READING)
    waits = []
    for _ in range(6):
        state, commands = follow(
            ended(0, 0, Ended.AWAY, away="database", position=0)
            if state.busy and state.phase is Phase.READING
            else OpenFailed(away="database", text="away"),
            state=state,
        )
        alarms = [c for c in commands if isinstance(c, Alarm)]
        waits.append(alarms[0].wait)
        assert state.reopen
        state, commands = decide(state, Tick(), LIMITS, now=state.due, jitter=0.0)
        assert commands == (Open(),)
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    _, commands = follow(opened(committed=0), state=state)
    assert commands == (Run(limit=10, position=0, leader_epoch=None),)


@pytest.mark.case("P-34")
def test_a_message_that_ends_its_connection_is_charged_after_three_quick_returns() -> None:
    state, _ = follow(fetched(0, 5), state=READING)
    for n in range(3):
        state, _ = follow(ended(0, 0, Ended.AWAY, away="database", suspect=2, position=0), state=state)
        state, _ = decide(state, Tick(), LIMITS, now=state.due, jitter=0.0)
        state, commands = decide(state, opened(committed=0), LIMITS, now=state.due, jitter=0.0)
        charged = 2 if n == 2 else None
        assert commands == (Run(limit=10, position=0, leader_epoch=None, alone=2, charged=charged),)


def test_a_long_outage_blames_nobody() -> None:
    state, _ = follow(fetched(0, 5), state=READING)
    for _ in range(5):
        state, _ = follow(ended(0, 0, Ended.AWAY, away="database", suspect=2, position=0), state=state)
        state, _ = decide(state, Tick(), LIMITS, now=state.due, jitter=0.0)
        state, commands = decide(state, opened(committed=0), LIMITS, now=60.0, jitter=0.0)
        assert commands == (Run(limit=10, position=0, leader_epoch=None),)


def test_contention_runs_smaller_batches_and_alone_five_times_before_it_is_charged() -> None:
    state, _ = follow(fetched(0, 10), state=READING)
    limits = []
    for alone in (False, False, False, False, True, True, True, True, True):
        state, commands = follow(ended(0, 0, Ended.CONTENTION, alone=alone, position=0), state=state)
        if not commands:
            state, commands = decide(state, Tick(), LIMITS, now=state.due, jitter=0.0)
        (run,) = (c for c in commands if isinstance(c, Run))
        limits.append((run.limit, run.contended))
    assert limits == [(5, False), (2, False), (1, False), (1, False), *[(1, False)] * 4, (1, True)]
    state, _ = follow(ended(1, 1), state=state)
    assert (state.limit, state.losses) == (2, 0)


def test_what_is_read_ahead_is_kept_when_the_database_says_what_was_remembered() -> None:
    state, _ = follow(fetched(0, 5), ended(2, 2), Voided(), state=READING)
    state, _ = follow(Tick(), ended(4, 2), Tick(), fetched(5, 3), state=state)
    assert state.phase is Phase.OPENING
    same, commands = follow(opened(2, 4, committed=4), state=state)
    assert [type(c) for c in commands] == [Run]
    assert (same.expected, same.buffered) == (8, 4)
    behind, commands = follow(opened(1, committed=4), state=state)
    assert Seek(offset=1) in commands
    assert (behind.expected, behind.buffered) == (1, 0)


def test_what_a_person_must_decide_is_asked_again_now_and_then() -> None:
    state, commands = follow(Assigned(), OpenFailed(refused=True, text="a gap"))
    assert commands == (Alarm(what="refused", text="a gap", wait=60.0),)
    assert decide(state, Tick(), LIMITS, now=59.0, jitter=0.0)[1] == ()
    assert decide(state, Tick(), LIMITS, now=60.0, jitter=0.0)[1] == (Open(),)


def test_a_stop_and_a_broken_lane_end_the_process() -> None:
    state, _ = follow(fetched(0, 5), state=READING)
    stopped, commands = follow(ended(0, 0, Ended.STOPPED, error="SystemExit", position=0), state=state)
    assert (stopped.phase, commands) == (Phase.CLOSED, (StopProcess(error="SystemExit"),))
    broken, commands = follow(LaneBroke(error="bug"), state=state)
    assert (broken.busy, commands) == (False, (StopProcess(error="bug"),))


EVENTS = st.one_of(
    st.builds(fetched, st.integers(0, 30), st.integers(1, 6)),
    st.sampled_from([Tick(), Voided(), CommitRefused(), CommitFailed(position=1)]),
    st.builds(opened, st.integers(0, 20)),
    st.sampled_from([OpenFailed(text="x", away="database"), OpenFailed(text="x", refused=True)]),
    st.builds(lambda n: Committed(position=n), st.integers(0, 20)),
    st.sampled_from(["well", "not-due", "contention", "away", "void"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(EVENTS, max_size=60))
def test_whatever_happens_the_promises_of_the_state_hold(events: list[Any]) -> None:
    """Commits never pass the watermark, batches end what was taken, one job is out, the next record is the expected one."""
    state, commands = follow(Assigned())
    jobs, taken, now = 1, 0, 0.0
    for drawn in events:
        now += 0.3
        event = drawn
        if isinstance(drawn, str):
            event = _batch(state, Ended(drawn))
        if isinstance(event, BatchEnded | Opened | OpenFailed):
            if (state.phase is Phase.OPENING) is isinstance(event, BatchEnded) or not state.busy:
                continue
            jobs -= 1
        before = state
        state, commands = decide(state, event, LIMITS, now=now, jitter=0.5)
        for command in commands:
            if isinstance(command, Commit):
                assert command.position == state.position
            if isinstance(command, Run | Open):
                jobs += 1
            if isinstance(command, Take):
                assert isinstance(event, Fetched)
                assert event.first >= before.expected
                taken += event.count
        assert jobs == int(state.busy) <= 1
        assert state.buffered >= 0


def _batch(state: PartitionState, kind: Ended) -> BatchEnded:
    done = min(state.buffered, 3) if kind in {Ended.WELL, Ended.NOT_DUE} else 0
    position = (
        max(state.position or 0, state.expected - state.buffered + done) if done else state.position or 0
    )
    return BatchEnded(
        ended=kind,
        position=position,
        leader_epoch=None,
        handled=state.expected - state.buffered + done if done else 0,
        records=done,
        size=min(state.buffered_bytes, done),
        wait=0.5,
        alone=state.limit == 1,
        away="registry",
    )
