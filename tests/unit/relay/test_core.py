"""The relay's decisions, one by one: a state, an event, and the command that must come."""

from dataclasses import replace

import pytest
from tests.support.relay_walk import H0, H1, H2, POLICY, Walk, batch, fault, row

from packhorse.core.errors import SettingsError
from packhorse.relay.deciding.commands import (
    Command,
    Confirm,
    Fetch,
    FlushLog,
    HoldChange,
    Leave,
    LookAtBroker,
    LookAtLog,
    MeasureLag,
    Own,
    ReadOrders,
    RecordTrouble,
    Release,
    RenewSender,
    Save,
    Send,
    Wait,
)
from packhorse.relay.deciding.events import (
    BrokerAway,
    BrokerSeen,
    Confirmed,
    DatabaseFailed,
    Fetched,
    LogFlushed,
    OrdersRead,
    Owned,
    OwnedElsewhere,
    OwnerChanged,
    Refused,
    Released,
    Renewed,
    Saved,
    SenderRenewed,
    Sent,
    Started,
    StopAsked,
    TroubleRecorded,
    Unconfirmed,
    Waited,
)
from packhorse.relay.holds import Fault, Hold, Kind, Scope
from packhorse.relay.model import Policy, Position


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
    assert walk.on(Waited(), after=601) == RenewSender(0.0)
    assert isinstance(walk.on(SenderRenewed()), Wait)


@pytest.mark.case("R-14")
def test_a_renewed_lease_lets_a_long_wait_go_on(walk: Walk) -> None:
    sent(walk, 1)
    walk.on(Unconfirmed(), Renewed(walk.now + 1200), after=599)
    assert isinstance(walk.on(Unconfirmed(), after=300), (Confirm, RecordTrouble))


def test_a_restored_database_counts_orders_again(walk: Walk) -> None:
    """Fails when the highest count ever seen is waited for: nothing else would be done for good."""
    walk.on(Renewed(walk.now + 600, orders=7))
    assert walk.command == ReadOrders()
    walk.on(OrdersRead((), False, 7))
    walk.on(DatabaseFailed("restored", connected=False))
    assert walk.on(Waited(), after=60) == Own()
    assert walk.on(Owned(Position(horizon=H0), walk.now + 600, orders=2)) == Fetch(Position(horizon=H0))


def refuse(walk: Walk, blamed: Fault) -> Command:
    """Let the reports say that the broker refused what is on its way."""
    assert walk.on(Refused(None, "too large", broken=True)) == RenewSender(10.0)
    walk.on(SenderRenewed(blamed))
    if isinstance(walk.command, RecordTrouble):
        walk.on(TroubleRecorded())
    return walk.command


@pytest.mark.case("R-07")
@pytest.mark.case("R-11")
def test_behind_a_refused_row_nothing_of_its_key_is_sent_and_it_is_found_in_halves(walk: Walk) -> None:
    """Fails when the horizon moves past a row that is neither confirmed nor held, or rows of the key go on."""
    start = Position(horizon=H0)
    whole = replace(batch(1, 2, 3, 4, start=start, target=H1), rows=[row(1), row(2), row(3, "bad"), row(4)])
    first, third = fault(1), fault(3, key="bad")
    walk.on(Fetched(whole))
    walk.on(Sent(4))
    # the broker refuses the request as a whole: row 1 is reported, row 3 at fault
    assert refuse(walk, first) == Fetch(start)
    assert isinstance(walk.on(Fetched(whole)), Wait)
    assert walk.on(Waited(), after=1) == Send(whole.rows[:2], ahead=None)
    walk.on(Sent(2))
    behind = Position(horizon=H0, target=H1, progress=2)
    assert walk.on(Confirmed()) == Save(start, behind, 2)
    assert isinstance(walk.on(Saved()), Send)
    walk.on(Sent(2))
    assert refuse(walk, third) == Fetch(behind)
    rest = replace(batch(3, 4, start=behind, target=H1), rows=whole.rows[2:])
    walk.on(Fetched(rest))
    assert walk.on(Waited(), after=1) == Send(rest.rows[:1], ahead=None)
    walk.on(Sent(1))
    held = Hold(fault=third, position=behind)
    saved = refuse(walk, third)
    assert saved == Save(behind, behind, 0, holds=(HoldChange(third.scope, held),))
    walk.on(Saved())
    assert walk.on(Fetched(rest)) == Send([rest.rows[1]], ahead=None)
    assert walk.state.trouble is None


@pytest.mark.case("R-10")
def test_a_row_that_cannot_be_sent_is_held_once_what_stands_before_it_is_confirmed(walk: Walk) -> None:
    """Fails when the hold begins while rows before it are unconfirmed, or the rest waits for it."""
    whole = replace(
        batch(1, 2, 3, start=Position(horizon=H0), target=H1), rows=[row(1), row(2, "bad"), row(3)]
    )
    walk.on(Fetched(whole))
    blamed = fault(2, key="bad")
    assert isinstance(walk.on(Refused(blamed, blamed.reason, broken=False, sent=1)), Confirm)
    assert walk.state.holds == ()
    at = Position(horizon=H0, target=H1, progress=1)
    saved = walk.on(Confirmed())
    held = Hold(fault=blamed, position=at)
    assert saved == Save(Position(horizon=H0), at, 1, holds=(HoldChange(blamed.scope, held),))
    command = walk.on(Saved())
    assert isinstance(command, Send)
    assert list(command.rows) == [row(3)]


def test_a_missing_topic_is_held_at_once_however_many_rows_were_refused(walk: Walk) -> None:
    """Fails when the topic's rows are halved down to one, as for a row's own fault."""
    sent(walk, 1, 2)
    scope = Scope(kind=Kind.TOPIC, aggregatetype="orders")
    missing = Fault(scope=scope, code="missing", reason="make it", heals=True, topic="t.orders")
    command = refuse(walk, missing)
    assert isinstance(command, Save)
    assert [change.scope for change in command.holds] == [scope]
    walk.on(Saved())
    walk.on(Fetched(batch(1, 2, start=Position(horizon=H0), target=H1)))
    assert walk.state.sent == Position(horizon=H1), "the relay moves on without the topic's rows"


def silent(walk: Walk) -> None:
    """Let the broker confirm nothing for longer than is borne."""
    sent(walk, 1)
    assert isinstance(walk.on(Unconfirmed(), after=POLICY.silence + 1), RecordTrouble)
    assert walk.on(TroubleRecorded()) == LookAtBroker()


@pytest.mark.case("R-10")
def test_a_partition_that_the_broker_gives_up_is_held_and_the_rest_goes_again(walk: Walk) -> None:
    """Fails when one partition's silence stops the others, or rows of it are dropped with the client."""
    silent(walk)
    scope = Scope(kind=Kind.PARTITION, aggregatetype="orders", partition=0, partitions=1)
    unled = Fault(scope=scope, code="no_leader", reason="no leader", heals=True, topic="t.orders")
    assert walk.on(BrokerSeen([unled])) == RenewSender(1.0)
    command = walk.on(SenderRenewed())
    if isinstance(command, RecordTrouble):
        command = walk.on(TroubleRecorded())
    assert isinstance(command, Save)
    assert command.holds == (HoldChange(scope, Hold(fault=unled, position=Position(horizon=H0))),)


@pytest.mark.case("R-06")
def test_a_broker_that_is_away_holds_nothing(walk: Walk) -> None:
    """Fails when an outage of the whole broker is taken for a fault of partitions."""
    silent(walk)
    walk.on(BrokerAway())
    walk.on(Unconfirmed(), Renewed(walk.now + 9_999), after=600)
    assert walk.state.holds == ()
    assert not walk.state.broken


@pytest.mark.case("R-06")
def test_a_silent_broker_is_told_and_awaited(walk: Walk) -> None:
    """Fails when silence drops rows or gives the lease up."""
    sent(walk, 1)
    assert isinstance(walk.on(Unconfirmed(), after=1), Confirm)
    assert isinstance(walk.on(Unconfirmed(), after=5), RecordTrouble)
    assert isinstance(walk.on(TroubleRecorded()), LookAtBroker)
    assert isinstance(walk.on(BrokerAway()), Confirm)
    walk.on(Unconfirmed(), Renewed(walk.now + 600), after=50)
    assert isinstance(walk.command, LookAtBroker)
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
    assert walk.on(Unconfirmed(), after=POLICY.stop_within) == RenewSender(0.0)
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
