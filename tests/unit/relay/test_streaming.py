"""The relay's decisions on the stream: in without a gap, marks, and out to polling."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.support.relay_walk import H0, H1, POLICY, Walk, fault, row

from packhorse.relay.cdc.stream import Cause, Slot, SlotState, StreamBatch
from packhorse.relay.deciding.commands import (
    Command,
    Confirm,
    Fetch,
    LookAtSlot,
    MarkHorizon,
    PrepareSlot,
    ReadStream,
    RecordMode,
    Release,
    RenewSender,
    Save,
    Send,
    StartStream,
    StopStream,
    Wait,
)
from packhorse.relay.deciding.events import (
    Confirmed,
    DatabaseFailed,
    Fetched,
    ModeRecorded,
    Owned,
    OwnerChanged,
    Refused,
    Saved,
    SenderRenewed,
    Sent,
    StopAsked,
    Unconfirmed,
    Waited,
)
from packhorse.relay.deciding.events_stream import (
    Marked,
    SlotAsked,
    SlotReady,
    SlotSeen,
    Streamed,
    StreamFailed,
    StreamStarted,
    StreamStopped,
)
from packhorse.relay.doing.streamer import Streamer
from packhorse.relay.holds import Fault, Hold, Kind, Scope
from packhorse.relay.model import Batch, Position

AUTO = replace(POLICY, mode="auto")
SLOT = Slot(name="slot", fence=7, at=100)


def polled(walk: Walk, target: str) -> Command:
    """Let the next poll come up empty at *target*."""
    while not isinstance(walk.command, Fetch):
        walk.told()
        if isinstance(walk.command, (Wait, Confirm)):
            walk.on(Waited(), after=POLICY.idle_poll)
    return walk.on(Fetched(Batch(start=walk.command.position, target=target, rows=[], complete=True)))


def approaching() -> Walk:
    """Own the shard at H0 with nothing waiting, and have a slot whose fence is 7."""
    walk = Walk(AUTO)
    walk.owning()
    polled(walk, H0)
    assert walk.told() == PrepareSlot()
    assert not isinstance(walk.on(SlotAsked()), PrepareSlot)
    walk.on(SlotReady(SLOT))
    return walk


def streaming() -> Walk:
    """Stream, with the horizon 8:9:8 saved and a slot seen just now."""
    walk = approaching()
    polled(walk, "8:9:8")
    assert walk.told() == StartStream("8:9:8", 100)
    walk.on(StreamStarted())
    walk.told()
    assert isinstance(walk.command, ReadStream)
    return walk


def read(walk: Walk, *seqs: int, received: int) -> Command:
    return walk.on(Streamed(StreamBatch(rows=[row(seq) for seq in seqs], received=received)))


@pytest.mark.case("C-02")
def test_the_stream_begins_only_when_the_horizon_is_past_the_fence() -> None:
    """Fails when it streams at once: what ran when the slot was made is in neither."""
    walk = approaching()
    polled(walk, "5:9:5")
    assert not isinstance(walk.told(), StartStream)
    polled(walk, "8:9:8")
    assert walk.told() == StartStream("8:9:8", 100)


def test_nothing_is_read_before_the_table_has_heard_of_the_mode() -> None:
    """Fails when rows go out although the database may have started anew since the horizon was read."""
    walk = approaching()
    polled(walk, "8:9:8")
    walk.told()
    walk.on(StreamStarted())
    while not isinstance(walk.command, ReadStream):
        before = walk.state.mode_told
        walk.told()
    assert (before, walk.state.mode_told) == (("polling", "start"), ("cdc", "caught_up"))


@pytest.mark.case("C-01")
def test_the_slot_hears_only_of_what_the_broker_confirmed() -> None:
    """Fails when what was read or sent goes back as confirmed."""
    walk = streaming()
    assert isinstance(read(walk, 1, 2, received=120), Send)
    walk.state = replace(walk.state, save_at=walk.now + 100)
    assert isinstance(walk.on(Sent(2)), Confirm)
    assert walk.state.stream is not None
    assert walk.state.stream.confirmed == 100
    command = walk.on(Confirmed())
    assert isinstance(command, ReadStream)
    assert command.confirmed == 120


def test_a_marked_snapshot_is_the_horizon_once_all_up_to_the_mark_is_confirmed() -> None:
    """Fails when the horizon moves while a row that the snapshot shows is unread or unconfirmed."""
    walk = streaming()
    read(walk, 1, received=120)
    walk.on(Sent(1))
    walk.state = replace(walk.state, save_at=walk.now)
    assert walk.on(Confirmed()) == MarkHorizon()
    command = walk.on(Marked("9:10:9", 130))
    assert isinstance(command, ReadStream)
    assert command.ask
    assert isinstance(read(walk, 2, received=140), Send)
    assert walk.state.confirmed == Position(horizon="8:9:8")
    assert isinstance(walk.on(Sent(1)), Confirm)
    saved = walk.on(Confirmed())
    assert isinstance(saved, Save)
    assert (saved.old, saved.new, saved.rows) == (
        Position(horizon="8:9:8"),
        Position(horizon="9:10:9"),
        2,
    )
    assert isinstance(walk.on(Saved()), ReadStream)


@pytest.mark.case("C-04")
@pytest.mark.parametrize("cause", [Cause.STREAM_FAILED, Cause.SLOT_IN_USE])
def test_polling_goes_on_from_the_horizon_when_the_stream_breaks(cause: Cause) -> None:
    """Fails when polling begins behind what was read: rows on their way would be lost."""
    walk = streaming()
    read(walk, 1, 2, received=120)
    walk.on(Sent(1))
    assert walk.on(StreamFailed(cause, "cut")) == StopStream()
    walk.on(StreamStopped())
    while not isinstance(walk.command, Fetch):
        walk.on(Confirmed()) if isinstance(walk.command, Confirm) else walk.told()
    assert walk.command.position == Position(horizon="8:9:8")
    assert walk.state.mode == "polling"
    assert walk.state.mode_cause == cause


@pytest.mark.case("C-07")
def test_a_slot_over_its_budget_is_given_up_and_polled_instead() -> None:
    """Fails when the log grows on while the broker is away."""
    walk = streaming()
    assert walk.on(Waited(), after=POLICY.slot_look) == LookAtSlot()
    over = SlotState(name="slot", exists=True, held_bytes=POLICY.slot_budget + 1, lag_bytes=0)
    assert walk.on(SlotSeen(over)) == StopStream(drop=True)
    walk.on(StreamStopped())
    assert walk.state.mode_cause == Cause.OVER_BUDGET


@pytest.mark.case("C-03")
def test_a_lost_slot_is_dropped_and_made_anew_after_a_pause_that_grows() -> None:
    """Fails when the same error comes at each look, or without a pause."""
    walk = streaming()
    pauses: list[float] = []
    for _ in range(3):
        walk.on(Waited(), after=POLICY.slot_look)
        if isinstance(walk.command, LookAtSlot):
            command = walk.on(SlotSeen(SlotState(name="slot", exists=True, lost="wal_removed")))
            assert command == StopStream(drop=True)
            walk.on(StreamStopped())
        begin = walk.now
        while not isinstance(walk.command, PrepareSlot):
            polled(walk, H1)
            walk.told()
        pauses.append(walk.now - begin)
        walk.on(StreamFailed(Cause.SLOT_LOST, "no"))
    assert pauses[0] < pauses[1] < pauses[2]


def test_a_stream_that_lags_leaves_the_backlog_to_polling() -> None:
    walk = streaming()
    walk.on(Waited(), after=POLICY.slot_look)
    behind = SlotState(name="slot", exists=True, held_bytes=1, lag_bytes=POLICY.slot_lag + 1)
    assert walk.on(SlotSeen(behind)) == StopStream()


def test_a_bad_row_in_the_stream_is_held_at_the_saved_horizon_and_the_stream_goes_on() -> None:
    """Fails when the hold begins where the stream is: rows of the key between the two would be lost."""
    walk = streaming()
    rows = [row(1, "a"), row(2, "bad"), row(3, "a")]
    walk.on(Streamed(StreamBatch(rows=rows, received=120)))
    walk.on(Refused(fault(2, key="bad"), "too large", broken=False, sent=1))
    assert isinstance(walk.command, Confirm)
    walk.on(Confirmed())
    (hold,) = walk.state.holds
    assert hold.position == Position(horizon="8:9:8")
    command = walk.told()
    assert isinstance(command, Send)
    assert list(command.rows) == [row(3, "a")]


def test_a_release_is_done_by_polling() -> None:
    """Fails when a hold's rows are sent beside a stream: nothing says where the two meet."""
    walk = streaming()
    topic = Scope(kind=Kind.TOPIC, aggregatetype="orders")
    missing = Fault(scope=topic, code="missing", reason="", heals=True, topic="t.orders")
    hold = Hold(fault=missing, position=Position(horizon=H0), releasing=True)
    walk.state = replace(walk.state, holds=(hold,), saved_holds=(hold,))
    assert walk.on(Waited()) == StopStream()


def test_a_client_made_anew_reads_on_from_the_table() -> None:
    walk = streaming()
    read(walk, 1, 2, received=120)
    walk.on(Sent(2))
    assert isinstance(walk.on(Refused(None, "refused", broken=True)), RenewSender)
    walk.on(SenderRenewed())
    assert walk.command == StopStream()


def test_without_the_lease_the_stream_is_left() -> None:
    walk = streaming()
    assert walk.on(OwnerChanged()) == StopStream()
    walk.on(StreamStopped())
    assert isinstance(walk.command, Wait)
    walk.on(Waited(), after=5)
    walk.on(Owned(Position(horizon=H0), walk.now + 600, mode="cdc"))
    walk.told()
    assert walk.state.mode_told == ("polling", "owner_changed")


def test_polling_mode_looks_for_no_stream() -> None:
    walk = Walk()
    walk.owning()
    for _ in range(3):
        assert not isinstance(polled(walk, H1), PrepareSlot)
    assert walk.on(ModeRecorded()) is not None


def test_a_clean_stop_saves_what_the_stream_brought_and_reads_no_further() -> None:
    """Fails when a stop leaves the horizon of a while ago: all since then would go out again at the next start."""
    walk = streaming()
    read(walk, 1, received=120)
    walk.on(Sent(1))
    assert walk.on(StopAsked()) == MarkHorizon()
    assert isinstance(walk.on(Marked("9:10:9", 130)), ReadStream)
    assert isinstance(read(walk, received=140), Confirm)
    saved = walk.on(Confirmed())
    assert isinstance(saved, Save)
    assert saved.new == Position(horizon="9:10:9")
    assert walk.on(Saved()) == StopStream()
    assert walk.on(StreamStopped()) == Release()


@pytest.mark.parametrize("said", [Sent(0), Refused(fault(1), "too large", broken=False)])
def test_a_clean_stop_waits_for_confirmations_where_the_client_takes_nothing(said: Sent | Refused) -> None:
    """Fails when the rows are handed over again at once, and again, until the time for the stop is over."""
    walk = streaming()
    read(walk, 0, 1, received=120)
    walk.on(Sent(1))
    walk.on(StopAsked(), Marked("9:10:9", 130))
    assert isinstance(walk.on(Unconfirmed()), Send)
    assert isinstance(walk.on(said), Confirm)


def test_a_slot_that_is_ready_after_a_stop_was_asked_for_is_left_alone() -> None:
    walk = Walk(AUTO)
    walk.owning()
    polled(walk, H0)
    walk.told()
    walk.on(SlotAsked())
    walk.on(StopAsked(), SlotReady(SLOT))
    assert walk.state.stream is None


class Waiting:
    """A slot that is ready when a test says so; be `Pace` and `Pending`."""

    def __init__(self) -> None:
        self.work: list[Callable[[], object]] = []
        self.ready = False

    def aside(self, work: Callable[[], object]) -> "Waiting":
        self.work.append(work)
        self.ready = False
        return self

    def done(self) -> bool:
        return self.ready

    def result(self) -> object:
        return self.work[-1]()


def test_a_fence_that_was_drawn_for_an_earlier_question_is_drawn_again() -> None:
    """Fails when it counts: the database may have started anew since, and given the transaction ids behind it out again."""
    slots = iter([SLOT, replace(SLOT, fence=9)])
    pace = Waiting()
    streamer = Streamer(SimpleNamespace(prepare=lambda: next(slots)), pace, limit=4)  # type: ignore[arg-type]
    assert streamer.do[PrepareSlot](PrepareSlot()) == SlotAsked()
    assert streamer.do[PrepareSlot](PrepareSlot()) == SlotAsked()
    first, pace.ready = pace.work[0](), True
    assert streamer.prepared() is None
    pace.ready = True
    assert (first, streamer.prepared()) == (SLOT, SlotReady(replace(SLOT, fence=9)))
    assert len(pace.work) == 2


def test_a_lost_connection_voids_the_slot_that_was_asked_for() -> None:
    walk = Walk(AUTO)
    walk.owning()
    polled(walk, H0)
    walk.told()
    walk.on(SlotAsked())
    walk.on(DatabaseFailed("away", connected=False))
    walk.on(Owned(Position(horizon=H0), deadline=walk.now + 600), SlotReady(SLOT))
    assert walk.state.stream is None


def test_the_table_hears_why_there_is_no_stream() -> None:
    """Fails when only a change of the mode is told: a relay that can't stream from its start would seem to be well."""
    walk = Walk(AUTO)
    walk.owning()
    polled(walk, H0)
    walk.told()
    walk.on(SlotAsked())
    walk.on(StreamFailed(Cause.NOT_SET_UP, "no right"))
    assert walk.command == RecordMode("polling", Cause.NOT_SET_UP)
    walk.told()
    assert walk.state.mode_told == ("polling", Cause.NOT_SET_UP)


def test_a_clean_stop_is_told_as_one() -> None:
    """Fails when leaving the stream for a stop counts as its failure."""
    walk = streaming()
    assert walk.on(StopAsked()) == StopStream()
    walk.on(StreamStopped())
    assert walk.state.mode_cause is Cause.STOP
