"""The relay's decisions, one by one: a state, an event, and the command that must come."""

from dataclasses import replace

import pytest

from packhorse.core.errors import SettingsError
from packhorse.relay.core import decide
from packhorse.relay.model import Batch, Fault, Policy, Position, Row
from packhorse.relay.state import State
from packhorse.relay.steps import (
    Command,
    Confirm,
    Confirmed,
    DatabaseFailed,
    Event,
    Fetch,
    Fetched,
    FlushLog,
    Leave,
    LogFlushed,
    LookAtLog,
    MeasureLag,
    Own,
    Owned,
    OwnedElsewhere,
    OwnerChanged,
    RecordTrouble,
    Refused,
    Release,
    Released,
    Renewed,
    RenewSender,
    Save,
    Saved,
    Send,
    SenderRenewed,
    Sent,
    Started,
    StopAsked,
    TroubleRecorded,
    Unconfirmed,
    Wait,
    Waited,
)

POLICY = Policy(  # powers of two, so that sums and differences of times are exact
    batch_rows=4, poll=1 / 64, idle_poll=1 / 16, save=1 / 4, flush_patience=1 / 64, flush_poll=1 / 1024, retry_first=1 / 8,
)  # fmt: skip
H0, H1, H2 = "1:5:", "1:9:", "1:12:"


def row(seq: int) -> Row:
    return (seq, "orders", "k", b"x", 0, f"id-{seq}", "t.T", "1", *[None] * 10)


def batch(
    *seqs: int, start: Position, target: str, complete: bool = True, unflushed: str | None = None
) -> Batch:
    return Batch(
        start=start, target=target, rows=[row(seq) for seq in seqs], complete=complete, unflushed=unflushed
    )


class Walk:
    """Drive the core by hand; the time passes only when a test says so."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.policy = policy
        self.state = State()
        self.now = 128.0
        self.command: Command = Leave()

    def on(self, *events: Event, after: float = 0.0) -> Command:
        self.now += after
        self.state, self.command = decide(self.state, events, now=self.now, policy=self.policy, jitter=0.0)
        return self.command


@pytest.fixture
def walk() -> Walk:
    """Own the shard, at horizon H0, with nothing sent and a lease of 600 s."""
    walk = Walk()
    walk.on(Started())
    walk.on(Owned(Position(horizon=H0), deadline=walk.now + 600))
    return walk


def sent(walk: Walk, *seqs: int) -> None:
    """Fetch and send one small cycle to H1."""
    walk.on(Fetched(batch(*seqs, start=Position(horizon=H0), target=H1)))
    assert isinstance(walk.command, Send)
    walk.on(Sent(len(seqs)))


def test_it_takes_the_lease_first_and_reads_from_the_position_in_the_table() -> None:
    walk = Walk()
    assert walk.on(Started()) == Own()
    at = Position(horizon=H0, target=H1, progress=7)
    assert walk.on(Owned(at, deadline=walk.now + 5)) == Fetch(at)


def test_a_standby_looks_again_after_a_while() -> None:
    walk = Walk()
    walk.on(Started())
    assert walk.on(OwnedElsewhere()) == Wait(POLICY.standby_poll)
    assert walk.on(Waited(), after=POLICY.standby_poll) == Own()


def test_an_empty_poll_moves_the_horizon_in_memory_and_waits(walk: Walk) -> None:
    walk.on(Fetched(batch(start=Position(horizon=H0), target=H1)))
    walk.on(Saved())
    assert walk.command == Wait(POLICY.idle_poll)
    assert walk.on(Waited(), after=POLICY.idle_poll) == Fetch(Position(horizon=H1))


def test_polls_are_short_while_rows_come_and_long_afterwards(walk: Walk) -> None:
    sent(walk, 1)
    walk.on(Confirmed())
    walk.on(Saved())
    walk.on(Waited(), after=POLICY.poll)
    assert walk.on(Fetched(batch(start=Position(horizon=H1), target=H2))) == Wait(POLICY.poll)
    walk.on(Waited(), after=POLICY.idle_after)
    assert walk.on(Fetched(batch(start=Position(horizon=H2), target=H2))) == Wait(POLICY.idle_poll)


def test_a_full_batch_is_followed_by_the_next_while_it_is_on_its_way(walk: Walk) -> None:
    full = batch(1, 2, 3, 4, start=Position(horizon=H0), target=H1, complete=False)
    behind = Position(horizon=H0, target=H1, progress=4)
    assert walk.on(Fetched(full)) == Send(full.rows, ahead=behind)
    walk.state = replace(walk.state, save_at=walk.now + 1)
    assert walk.on(Sent(4)) == Fetch(behind)


def test_what_is_sent_is_confirmed_before_it_is_saved(walk: Walk) -> None:
    sent(walk, 1, 2)
    assert isinstance(walk.command, Confirm)
    assert walk.on(Confirmed()) == Save(Position(horizon=H0), Position(horizon=H1), 2)


def test_saves_come_at_most_five_times_a_second(walk: Walk) -> None:
    sent(walk, 1)
    walk.on(Confirmed())
    walk.on(Saved())
    walk.on(Waited(), after=POLICY.poll)
    walk.on(Fetched(batch(2, start=Position(horizon=H1), target=H2)))
    assert isinstance(walk.on(Sent(1)), Confirm)
    assert isinstance(walk.on(Confirmed()), Wait)
    assert isinstance(walk.on(Waited(), after=POLICY.save), Save)


def test_until_the_next_poll_it_waits_for_confirmations(walk: Walk) -> None:
    walk.state = replace(walk.state, save_at=walk.now + 1, idle_save_at=walk.now + 1)
    sent(walk, 1)
    assert walk.state.waiting == 1
    assert walk.command == Confirm(POLICY.poll)
    assert walk.on(Confirmed()) == Wait(POLICY.poll)


def test_slow_confirmations_make_saves_rarer(walk: Walk) -> None:
    sent(walk, 1)
    walk.on(Confirmed(), after=0.1)
    walk.on(Saved())
    assert walk.state.save_at - walk.now == pytest.approx(0.9)


def test_no_row_is_sent_before_the_log_is_flushed_and_nobody_waits_long(walk: Walk) -> None:
    waiting = batch(1, start=Position(horizon=H0), target=H1, unflushed="0/10")
    assert walk.on(Fetched(waiting)) == LookAtLog("0/10")
    assert walk.on(LogFlushed(False)) == Wait(POLICY.flush_poll)
    assert walk.on(Waited(), after=POLICY.flush_poll) == LookAtLog("0/10")
    walk.on(LogFlushed(False))
    assert walk.on(Waited(), after=POLICY.flush_patience) == FlushLog()
    assert isinstance(walk.on(LogFlushed(True)), Send)


@pytest.mark.case("R-05")
def test_after_a_failed_save_nothing_is_sent_until_it_succeeds(walk: Walk) -> None:
    """Fails when a failed save is forgotten: the next poll's rows would go out, round after round."""
    sent(walk, 1)
    walk.on(Confirmed())
    pauses: list[float] = []
    told: list[str | None] = []
    for _ in range(4):
        command = walk.on(DatabaseFailed("no room on the disk", connected=True))
        assert isinstance(command, Wait)
        pauses.append(command.seconds)
        command = walk.on(Waited(), after=command.seconds)
        if isinstance(command, RecordTrouble):
            told.append(command.text)
            command = walk.on(TroubleRecorded())
        assert command == Save(Position(horizon=H0), Position(horizon=H1), 1)
    assert told == ["no room on the disk"]
    assert pauses == sorted(pauses)
    assert pauses[-1] > pauses[0]


@pytest.mark.case("R-05")
def test_a_lost_connection_voids_what_was_read_and_pauses_grow_until_a_save(walk: Walk) -> None:
    """Fails when the position of before is used again: a database that crashed gives transaction ids out anew."""
    pauses = []
    for _ in range(3):
        sent(walk, 1)
        walk.on(Confirmed())
        command = walk.on(DatabaseFailed("cut", connected=False))
        assert isinstance(command, Wait)
        pauses.append(command.seconds)
        assert walk.on(Waited(), after=command.seconds) == Own()
        assert walk.on(Owned(Position(horizon=H0), walk.now + 60)) == Fetch(Position(horizon=H0))
    assert pauses == [1 / 8, 1 / 4, 1 / 2]


@pytest.mark.case("R-12")
def test_a_refused_save_stops_everything_at_once(walk: Walk) -> None:
    """Fails when OwnerChanged keeps the batch or the positions: a row would leave without the lease."""
    sent(walk, 1)
    walk.on(Confirmed())
    walk.on(OwnerChanged())
    assert walk.state.saved is None
    assert walk.state.batch is None
    assert not walk.state.owned
    assert isinstance(walk.command, Wait)


@pytest.mark.case("R-12")
def test_past_the_end_of_the_lease_what_is_on_its_way_is_dropped(walk: Walk) -> None:
    sent(walk, 1)
    assert walk.on(Waited(), after=601) == RenewSender(at_once=True)
    assert isinstance(walk.on(SenderRenewed()), Wait)


@pytest.mark.case("R-14")
def test_a_renewed_lease_lets_a_long_wait_go_on(walk: Walk) -> None:
    sent(walk, 1)
    walk.on(Unconfirmed(), Renewed(walk.now + 1200), after=599)
    assert isinstance(walk.on(Unconfirmed(), after=300), (Confirm, RecordTrouble))


def refuse(walk: Walk, fault: Fault) -> Command:
    """Let the reports say that the broker refused what is on its way."""
    assert walk.on(Refused(None, "too large", broken=True)) == RenewSender(at_once=False)
    walk.on(SenderRenewed(fault))
    if isinstance(walk.command, RecordTrouble):
        walk.on(TroubleRecorded())
    return walk.command


@pytest.mark.case("R-07")
def test_behind_a_refused_row_nothing_is_sent_and_it_is_found_in_halves(walk: Walk) -> None:
    """Fails when the horizon moves past a row that was not confirmed, or rows behind it go on."""
    start = Position(horizon=H0)
    whole = batch(1, 2, 3, 4, start=start, target=H1)
    first, third = (Fault(seq=n, id=f"id-{n}", topic="t.orders", reason="too large") for n in (1, 3))
    walk.on(Fetched(whole))
    walk.on(Sent(4))
    assert refuse(walk, first) == Fetch(
        start
    )  # the broker refuses the request as a whole: row 1 is reported, row 3 at fault
    assert isinstance(walk.on(Fetched(whole)), Wait)
    assert walk.on(Waited(), after=1) == Send(whole.rows[:2], ahead=None)
    walk.on(Sent(2))
    behind = Position(horizon=H0, target=H1, progress=2)
    assert walk.on(Confirmed()) == Save(start, behind, 2)
    assert isinstance(walk.on(Saved()), Send)
    walk.on(Sent(2))
    assert refuse(walk, third) == Fetch(behind)
    rest = batch(3, 4, start=behind, target=H1)
    walk.on(Fetched(rest))
    assert walk.on(Waited(), after=1) == Send(rest.rows[:1], ahead=None)
    walk.on(Sent(1))
    refuse(walk, third)
    assert walk.state.confirmed == behind
    assert walk.state.trouble == "row id-3 for topic t.orders: too large"


@pytest.mark.case("R-07")
def test_a_row_refused_alone_is_tried_with_growing_pauses_and_heals(walk: Walk) -> None:
    whole = batch(1, 2, start=Position(horizon=H0), target=H1)
    fault = Fault(seq=1, id="id-1", topic="t.orders", reason="too large")
    walk.on(Fetched(whole))
    walk.on(Sent(2))
    refuse(walk, fault)
    pauses = []
    for _ in range(5):
        walk.on(Fetched(whole))
        assert isinstance(walk.command, Wait)
        pauses.append(walk.command.seconds)
        assert walk.on(Waited(), after=walk.command.seconds) == Send(whole.rows[:1], ahead=None)
        walk.on(Sent(1))
        refuse(walk, fault)
    assert pauses == [1 / 8, 1 / 8, 1 / 4, 1 / 2, 1]
    walk.on(Fetched(whole))
    walk.on(Waited(), after=60)
    walk.on(Sent(1))
    walk.on(Confirmed())
    walk.on(Saved())
    assert walk.command == Send(whole.rows[1:], ahead=None)
    walk.on(Sent(1))
    walk.on(Confirmed())
    walk.on(Saved())
    walk.on(Waited(), after=1)
    assert walk.on(Fetched(batch(start=Position(horizon=H1), target=H2))) == RecordTrouble(None)


@pytest.mark.case("R-10")
def test_a_row_that_cannot_be_sent_is_named_and_tried_with_growing_pauses(walk: Walk) -> None:
    whole = batch(1, 2, start=Position(horizon=H0), target=H1)
    fault = Fault(seq=2, id="id-2", topic="t.orders", reason="the topic does not exist")
    walk.on(Fetched(whole))
    walk.on(Refused(fault, fault.reason, broken=False, sent=1))
    assert walk.command == RecordTrouble(str(fault))
    assert isinstance(walk.on(TroubleRecorded()), Confirm)
    assert isinstance(walk.on(Confirmed()), Save)
    pauses = []
    command = walk.on(Saved())
    for _ in range(3):
        assert isinstance(command, Wait)
        pauses.append(command.seconds)
        assert isinstance(walk.on(Waited(), after=command.seconds), Send)
        command = walk.on(Refused(fault, fault.reason, broken=False))
    assert pauses == [1 / 8, 1 / 4, 1 / 2]
    walk.on(Waited(), after=1)
    assert walk.on(Sent(1)) == RecordTrouble(None)


def test_trouble_ends_when_the_refused_row_is_gone(walk: Walk) -> None:
    sent(walk, 1)
    refuse(walk, Fault(seq=1, id="id-1", topic="t", reason="r"))
    assert walk.state.trouble is not None
    assert walk.on(Fetched(batch(start=Position(horizon=H0), target=H2))) == RecordTrouble(None)


@pytest.mark.case("R-06")
def test_a_silent_broker_is_told_and_awaited(walk: Walk) -> None:
    """Fails when silence drops rows or gives the lease up."""
    sent(walk, 1)
    assert isinstance(walk.on(Unconfirmed(), after=1), Confirm)
    assert isinstance(walk.on(Unconfirmed(), after=5), RecordTrouble)
    assert isinstance(walk.on(TroubleRecorded()), Confirm)
    walk.on(Unconfirmed(), Renewed(walk.now + 600), after=50)
    assert isinstance(walk.command, Confirm)
    assert walk.on(Confirmed()) == RecordTrouble(None)


def test_a_client_without_room_is_drained_before_more_is_handed_over(walk: Walk) -> None:
    walk.state = replace(walk.state, save_at=walk.now + 10)
    whole = batch(1, 2, 3, start=Position(horizon=H0), target=H1)
    walk.on(Fetched(whole))
    assert isinstance(walk.on(Sent(2)), Confirm)
    command = walk.on(Unconfirmed())
    assert isinstance(command, Send)
    assert list(command.rows) == [whole.rows[2]]


@pytest.mark.case("X-09")
def test_a_stop_confirms_and_saves_what_was_sent_and_gives_the_lease_back(walk: Walk) -> None:
    """Fails when a stop leaves without the save, or takes something new."""
    sent(walk, 1)
    assert isinstance(walk.on(Unconfirmed(), StopAsked()), Confirm)
    assert isinstance(walk.on(Confirmed()), Save)
    assert walk.on(Saved()) == Release()
    assert walk.on(Released()) == Leave()


@pytest.mark.case("X-09")
def test_a_stop_never_hangs(walk: Walk) -> None:
    sent(walk, 1)
    walk.on(StopAsked())
    assert walk.on(Unconfirmed(), after=POLICY.stop_within) == RenewSender(at_once=True)
    assert walk.on(SenderRenewed()) == Release()
    assert walk.on(DatabaseFailed("away", connected=False)) == Leave()


def test_rows_in_hand_are_left_at_a_stop(walk: Walk) -> None:
    waiting = batch(1, start=Position(horizon=H0), target=H1, unflushed="0/10")
    walk.on(Fetched(waiting))
    assert walk.on(StopAsked()) == Release()


def test_what_waits_is_measured_now_and_then() -> None:
    walk = Walk(Policy(measure=15))
    walk.on(Started())
    assert walk.on(Owned(Position(horizon=H0), walk.now + 60)) == MeasureLag(Position(horizon=H0))


def test_progress_needs_its_target() -> None:
    with pytest.raises(AssertionError):
        Position(horizon=H0, progress=3)


@pytest.mark.parametrize("values", [{"batch_rows": 0}, {"poll": 0.0}, {"poll": 2.0, "idle_poll": 1.0}])
def test_a_policy_checks_itself(values: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="not allowed"):
        Policy(**values)  # type: ignore[arg-type]
