"""The decisions about one partition, from state and event alone."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packhorse.core.backoff import Backoff
from packhorse.processor.partition.deciding import decide
from packhorse.processor.partition.events import (
    Assigned,
    ChunkEnded,
    CommitFailed,
    CommitRefused,
    Committed,
    Crowded,
    Ended,
    Event,
    Fetched,
    FetchStopped,
    Held,
    LaneBroke,
    Lost,
    Marked,
    MarkFailed,
    MarkRefused,
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
    Forget,
    Mark,
    Open,
    Pause,
    Resume,
    Seek,
    StopProcess,
    Suspect,
    Take,
)
from packhorse.processor.partition.state import (
    Limits,
    Load,
    PartitionState,
    Phase,
)
from packhorse.processor.partition.waiting import Decision

LIMITS = Limits(
    batch=10,
    buffered=20,
    tracked=60,
    mark_every=0.1,
    commit_every=1.0,
    backoff=Backoff(first=0.1, longest=1.0),
)
TOPIC_ID = UUID(int=1)
NOTHING = Load()


def opened(start: int = 0, position: int | None = None, committed: int | None = None) -> Opened:
    at = start if position is None else position
    return Opened(start=start, position=at, leader_epoch=None, committed=committed, topic_id=TOPIC_ID)


def ended(kind: Ended = Ended.WELL, **more: Any) -> ChunkEnded:
    return ChunkEnded(ended=kind, **more)


def fetched(first: int, count: int) -> Fetched:
    return Fetched(first=first, last=first + count - 1)


def follow(
    *events: Event,
    state: PartitionState | None = None,
    load: Load = NOTHING,
    now: float = 0.0,
    limits: Limits = LIMITS,
) -> Decision:
    """Return the state after *events*, and what the last one ordered."""
    state = state or PartitionState(generation=1)
    commands: tuple[Any, ...] = ()
    for event in events:
        state, commands = decide(state, event, load, limits, now=now, jitter=0.0)
    return state, commands


READING = follow(Assigned(), opened(committed=0))[0]
RUNNING = replace(READING, running=1)


def test_an_assigned_partition_reads_its_watermark_before_anything_is_fetched() -> None:
    assert follow(Assigned())[1] == (Open(),)
    assert follow(Assigned(), fetched(0, 3))[1] == ()
    _, commands = follow(Assigned(), opened(7, committed=7))
    assert commands == (Forget(offset=7), Attach(offset=7))


@pytest.mark.case("P-01")
@pytest.mark.case("P-04")
def test_the_watermark_moves_behind_what_is_dealt_with_and_the_commit_behind_the_watermark() -> None:
    """Fails when the commit carries what is dealt with and not durable, or what was only read."""
    state, commands = follow(ended(done=4, left=(4,)), state=RUNNING, load=Load(end=4, epoch=0, pending=5))
    assert commands == (Mark(old=0, new=4, leader_epoch=0),)
    assert follow(Tick(), state=state, load=Load(end=6))[1] == ()
    state, commands = follow(Marked(position=4, leader_epoch=0), state=state, load=Load(end=6, epoch=1))
    assert commands == (Commit(position=4, leader_epoch=0),)
    state, commands = follow(Tick(), state=state, load=Load(end=6, epoch=1), now=0.2)
    assert commands == (Mark(old=4, new=6, leader_epoch=1),)


@pytest.mark.case("P-09")
def test_a_failed_commit_is_sent_again_with_the_newest_though_no_message_follows() -> None:
    """Fails when the retry waits for another chunk, or repeats the old position."""
    state = replace(READING, position=2, committing=2)
    state, commands = follow(CommitFailed(position=2), state=state)
    assert commands == ()
    state = replace(state, position=5)
    assert follow(Tick(), state=state, now=0.5)[1] == ()
    state, commands = follow(Tick(), state=state, now=1.5)
    assert commands == (Commit(position=5, leader_epoch=None),)
    assert follow(Committed(position=5), state=state, now=9.0)[1] == ()


@pytest.mark.case("P-10")
@pytest.mark.parametrize("event", [CommitRefused(), MarkRefused()])
def test_a_refusal_lets_the_watermark_be_read_again_once_nothing_runs(event: Event) -> None:
    """Fails when it is read while a chunk still runs: what that one finishes would count above it."""
    state, _ = follow(event, state=replace(RUNNING, marking=3, committing=2))
    assert state.reopen
    state = replace(state, marking=None)
    assert follow(Tick(), state=state, now=5.0)[1] == ()
    state, _ = follow(ended(), state=state, now=5.0)
    assert follow(Tick(), state=state, now=5.0)[1] == (Open(),)


@pytest.mark.case("P-05")
@pytest.mark.case("P-07")
def test_a_draining_partition_begins_nothing_and_keeps_what_becomes_durable() -> None:
    """Fails when a record that was just taken is run, or a result that comes in time is not kept."""
    state, _ = follow(fetched(0, 5), Revoking(), state=RUNNING)
    assert not state.may_run
    assert follow(fetched(5, 2), Tick(), Voided(), state=state, now=9.0)[1] == ()
    state, commands = follow(ended(done=2), state=state, load=Load(end=2, epoch=0))
    assert commands == (Mark(old=0, new=2, leader_epoch=0),)
    assert state.busy
    state, commands = follow(Marked(position=2, leader_epoch=0), state=state, load=Load(end=2))
    assert (commands, state.position, state.busy) == ((), 2, False)


@pytest.mark.case("P-10")
@pytest.mark.case("P-20")
def test_a_lost_partition_orders_nothing_more() -> None:
    state, _ = follow(fetched(0, 5), Lost(), state=RUNNING)
    for event in (ended(done=5), Tick(), fetched(5, 1), opened(3), Voided(), CommitFailed(position=1)):
        assert follow(event, state=state, now=99.0) == (state, ())


@pytest.mark.case("P-11")
def test_after_the_client_stopped_fetching_a_seek_follows_though_the_watermark_stands() -> None:
    """Fails when what is read ahead is believed: the client fetches nothing more until it is told where."""
    state, commands = follow(FetchStopped(text="out of range"), state=replace(READING, position=2))
    assert type(commands[0]).__name__ == "Alarm"
    state, commands = follow(Tick(), state=state, load=Load(end=2), now=1.0)
    assert commands == (Open(),)
    state, commands = follow(opened(2, committed=2), state=state, load=Load(end=2, pending=3, tracked=3))
    assert commands == (Forget(offset=2), Seek(offset=2))
    assert (state.expected, state.stopped) == (2, False)


@pytest.mark.case("P-25")
def test_fetching_pauses_when_the_queue_is_full_and_resumes_at_half() -> None:
    state, commands = follow(Tick(), state=READING, load=Load(pending=20))
    assert commands == (Pause(),)
    assert follow(Tick(), state=state, load=Load(pending=10))[1] == ()
    assert follow(Tick(), state=state, load=Load(pending=9))[1] == (Resume(),)


@pytest.mark.case("P-12")
def test_fetching_pauses_when_thousands_are_done_behind_one_that_is_not() -> None:
    """Fails when only what is not dealt with bounds the bookkeeping."""
    state, commands = follow(Tick(), state=READING, load=Load(pending=1, tracked=60))
    assert commands == (Pause(),)
    assert follow(Tick(), state=state, load=Load(pending=1, tracked=0))[1] == (Resume(),)


@pytest.mark.case("O-10")
def test_a_paused_partition_begins_nothing_and_fetches_nothing_until_a_person_lets_it() -> None:
    state, commands = follow(Held(paused=True), state=RUNNING)
    assert (commands, state.may_run) == ((Pause(),), False)
    state, commands = follow(Held(paused=False), state=state)
    assert (commands, state.may_run) == ((Resume(),), True)


@pytest.mark.case("T-04")
def test_a_partition_behind_whose_keys_too_much_waits_stands_still_says_so_once_and_goes_on() -> None:
    """Fails when what is parked has no bound, or the alarm is repeated at each count."""
    state, commands = follow(Crowded(text="9 messages"), state=READING)
    assert commands == (Alarm(what="parked", text="9 messages", wait=0.0), Pause())
    assert not state.may_run
    assert follow(Crowded(text="10 messages"), state=state)[1] == ()
    state, commands = follow(Crowded(), state=state)
    assert (commands, state.may_run) == ((Resume(),), True)


def test_a_jump_right_after_a_seek_is_believed_only_when_it_shows_twice() -> None:
    """Fails when a stale fetch is taken for a hole."""
    state, commands = follow(fetched(40, 2), state=READING)
    assert commands == (Seek(offset=0),)
    assert follow(fetched(40, 2), state=state)[1] == (Take(),)
    assert follow(fetched(0, 2), state=state)[1] == (Take(),)
    later, _ = follow(fetched(0, 2), state=READING)
    assert follow(fetched(7, 2), state=later)[1] == (Take(),)


def test_records_from_before_the_position_are_not_taken() -> None:
    state, _ = follow(fetched(0, 5), state=READING)
    assert follow(fetched(3, 2), state=state)[1] == (Seek(offset=5),)


@pytest.mark.case("P-26")
def test_an_outage_waits_longer_each_time_and_then_reads_the_watermark_again() -> None:
    state, waits = RUNNING, []
    event: Event = ended(Ended.AWAY, away="database")
    for _ in range(6):
        state, commands = follow(event, state=state)
        waits += [command.wait for command in commands if isinstance(command, Alarm)]
        assert state.reopen
        state, commands = follow(Tick(), state=state, now=state.due)
        assert commands == (Open(),)
        event = OpenFailed(away="database", text="away")
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    state, commands = follow(opened(committed=0), state=state)
    assert (commands, state.may_run, state.trouble) == ((), True, "")


@pytest.mark.case("P-26")
def test_what_fails_after_the_database_has_answered_does_not_wait_as_long_as_the_outage_had_come_to() -> None:
    """Fails when a lane whose connection ended in the outage has its partition stand still for another half minute."""
    limits = replace(LIMITS, backoff=Backoff(first=0.1, longest=30.0, spread=0.0))
    state = replace(RUNNING, failures=20, phase=Phase.OPENING, opening=True, reopen=True, running=0)
    state, _ = follow(opened(committed=0), state=state, limits=limits)
    state = replace(state, running=1)
    _, commands = follow(ended(Ended.AWAY, away="database"), state=state, limits=limits)
    assert [one.wait for one in commands if isinstance(one, Alarm)] == [1.6]


def test_chunks_that_meet_the_same_outage_count_once() -> None:
    state = replace(READING, running=3)
    for _ in range(3):
        state, _ = follow(ended(Ended.AWAY, away="broker"), state=state)
    assert (state.failures, state.running) == (1, 0)
    assert not follow(Tick(), state=state, now=state.due)[0].reopen


@pytest.mark.case("P-34")
@pytest.mark.parametrize(("back", "suspects"), [(1.0, True), (60.0, False)])
def test_who_ran_when_the_connection_ended_is_suspected_when_the_database_was_well_at_once(
    back: float, suspects: bool
) -> None:
    """Fails when a real outage is taken for the message's fault, or never."""
    state, _ = follow(ended(Ended.AWAY, away="database", suspect=2), state=RUNNING)
    state, _ = follow(Tick(), state=state, now=state.due)
    _, commands = follow(opened(committed=0), state=state, now=back)
    assert (Suspect(offset=2) in commands) is suspects


def test_contention_makes_chunks_smaller_and_success_larger_again() -> None:
    state, limits = RUNNING, []
    for _ in range(5):
        state, _ = follow(ended(Ended.CONTENTION), state=replace(state, running=1))
        limits.append(state.limit)
    assert limits == [5, 2, 1, 1, 1]
    state, _ = follow(ended(done=1), state=replace(state, running=1))
    assert state.limit == 2


@pytest.mark.case("T-06")
def test_a_copy_that_is_not_due_lets_its_partition_wait_and_nothing_else() -> None:
    state, _ = follow(ended(Ended.NOT_DUE, wait=5.0, left=(3,)), state=RUNNING)
    assert (state.phase, state.may_run) == (Phase.WAITING, False)
    assert follow(Tick(), state=state, now=4.9)[0].phase is Phase.WAITING
    assert follow(Tick(), state=state, now=5.0)[0].phase is Phase.READING


def test_what_is_read_ahead_is_kept_only_when_nothing_of_it_was_dealt_with() -> None:
    """Fails when what is remembered above the watermark survives a reconnect."""
    state, _ = follow(fetched(0, 8), Voided(), state=replace(READING, position=4, expected=8))
    state = replace(state, phase=Phase.OPENING, opening=True)
    same = Load(end=4, pending=4, tracked=4)
    assert follow(opened(2, 4, committed=2), state=state, load=same)[1] == ()
    ahead = Load(end=4, pending=3, tracked=4)
    assert Seek(offset=4) in follow(opened(4, committed=4), state=state, load=ahead)[1]
    assert Seek(offset=1) in follow(opened(1, committed=4), state=state, load=same)[1]


def test_a_watermark_that_can_t_be_moved_is_trouble_with_the_database() -> None:
    state, commands = follow(MarkFailed(text="away"), state=replace(READING, marking=3))
    assert [type(command).__name__ for command in commands] == ["Alarm"]
    assert (state.marking, state.reopen) == (None, True)


def test_what_a_person_must_decide_is_asked_again_now_and_then() -> None:
    state, commands = follow(Assigned(), OpenFailed(refused=True, text="a gap"))
    assert commands == (Alarm(what="refused", text="a gap", wait=60.0),)
    assert follow(Tick(), state=state, now=59.0)[1] == ()
    assert follow(Tick(), state=state, now=60.0)[1] == (Open(),)


def test_a_stop_and_a_broken_lane_end_the_process() -> None:
    stopped, commands = follow(ended(Ended.STOPPED, error="SystemExit"), state=RUNNING)
    assert (stopped.phase, commands) == (Phase.CLOSED, (StopProcess(error="SystemExit"),))
    broken, commands = follow(LaneBroke(error="bug"), state=RUNNING)
    assert (broken.busy, commands) == (False, (StopProcess(error="bug"),))


EVENTS = st.one_of(
    st.builds(fetched, st.integers(0, 30), st.integers(1, 6)),
    st.sampled_from(
        [Tick(), Voided(), CommitRefused(), CommitFailed(position=1), Held(paused=True), Held(paused=False)]
    ),
    st.builds(opened, st.integers(0, 20)),
    st.sampled_from([OpenFailed(text="x", away="database"), OpenFailed(text="x", refused=True)]),
    st.builds(lambda n: Committed(position=n), st.integers(0, 20)),
    st.sampled_from([Marked(position=-1, leader_epoch=None), MarkRefused(), MarkFailed(text="x")]),
    st.builds(lambda kind: ended(kind, away="database", wait=0.5), st.sampled_from(list(Ended)[:5])),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(EVENTS, st.integers(0, 20)), max_size=60))
def test_whatever_happens_the_promises_of_the_state_hold(drawn: list[tuple[Any, int]]) -> None:
    """Commits never pass the watermark, nor it what is dealt with; it is read only while nothing runs."""
    state, now, end = follow(Assigned())[0], 0.0, 0
    for wanted, further in drawn:
        now += 0.3
        if state.may_run and not state.running:
            state = replace(state, running=1)
        event = _possible(state, wanted)
        if event is None:
            continue
        end = max(end, further) if isinstance(event, ChunkEnded) else end
        before = state
        state, commands = decide(state, event, Load(end=end), LIMITS, now=now, jitter=0.5)
        for command in commands:
            _held(before, state, event, command, end)
            if isinstance(command, Forget):
                end = command.offset


def _possible(state: PartitionState, event: Any) -> Any:
    """Return *event* as it can come about in *state*; None when it can't."""
    if isinstance(event, Opened | OpenFailed):
        return event if state.opening else None
    if isinstance(event, Marked | MarkRefused | MarkFailed) and state.marking is None:
        return None
    if isinstance(event, ChunkEnded) and not state.running:
        return None
    return Marked(position=state.marking or 0, leader_epoch=None) if isinstance(event, Marked) else event


def _held(before: PartitionState, state: PartitionState, event: Any, command: Any, end: int) -> None:
    match command:
        case Commit():
            assert command.position == state.position
        case Mark():
            assert (command.old, command.new) == (state.position, end)
            assert before.marking is None or isinstance(event, Marked)
        case Open():
            assert (state.running, state.marking) == (0, None)
        case Take():
            assert isinstance(event, Fetched)
            assert event.first >= before.expected
