"""The relay's decisions on releases: from a hold's position to the relay's, in order, beside everything else."""

from dataclasses import replace

import pytest
from tests.support.relay_walk import H0, H1, H2, POLICY, Walk, batch, fault, row

from packhorse.relay.deciding.commands import (
    Command,
    Confirm,
    ConfirmHeld,
    Fetch,
    FetchHeld,
    ProbeScope,
    ReadOrders,
    RenewReleaser,
    Save,
    SendHeld,
    Wait,
)
from packhorse.relay.deciding.events import Confirmed, Fetched, OrdersRead, Refused, Renewed, Saved, Waited
from packhorse.relay.deciding.events_release import (
    HeldConfirmed,
    HeldFetched,
    HeldRefused,
    HeldSent,
    HeldUnconfirmed,
    ReleaserRenewed,
    ScopeProbed,
)
from packhorse.relay.holds import Fault, Hold, Kind, Leg, Scope, Screen, next_leg
from packhorse.relay.model import Batch, Position

HELD = Hold(fault=fault(3), position=Position(horizon=H0))
TOPIC = Scope(kind=Kind.TOPIC, aggregatetype="orders")
MISSING = Fault(scope=TOPIC, code="missing", reason="make it", heals=True, topic="t.orders")
HERE = Position(horizon=H1)


def ordered(hold: Hold = HELD) -> Walk:
    """Own the shard at H1 with *hold*, and hear that a person orders its release."""
    walk = Walk()
    walk.owning(hold, at=HERE)
    walk.on(Renewed(walk.now + 600, orders=1))
    assert walk.command == ReadOrders()
    walk.on(OrdersRead((replace(hold, asked=True),), False, 1))
    walk.told()
    return walk


def release_step(walk: Walk) -> Command:
    """Let polls come up empty until the release takes its turn."""
    for _ in range(10):
        if isinstance(walk.command, Fetch):
            walk.on(Fetched(Batch(start=walk.command.position, target=H1, rows=[], complete=True)))
        elif isinstance(walk.command, (Wait, Confirm)):
            walk.on(Waited(), after=POLICY.idle_poll)
        else:
            walk.told()
        if not isinstance(walk.command, (Fetch, Wait, Confirm, Save)):
            break
    return walk.command


def leg_of(walk: Walk) -> Leg:
    command = release_step(walk)
    assert isinstance(command, FetchHeld)
    return command.leg


@pytest.mark.case("R-11")
def test_a_release_sends_from_the_hold_to_the_relay_and_ends_in_the_save_where_they_meet() -> None:
    """Fails when the hold ends before it has reached the relay, or its rows are saved as sent before they are confirmed."""
    walk = ordered()
    leg = leg_of(walk)
    assert leg.start == Position(horizon=H0, target=H1)
    walk.on(HeldFetched(batch(3, 5, start=leg.start, target=H1)))
    assert release_step(walk) == SendHeld([row(3)]), "one row alone at first: it may still be at fault"
    walk.on(HeldSent(1))
    assert isinstance(release_step(walk), ConfirmHeld)
    assert walk.state.holds[0].position == Position(horizon=H0)
    walk.on(HeldConfirmed())
    assert walk.state.holds[0].position == Position(horizon=H0, target=H1, progress=3)
    walk.told()
    assert release_step(walk) == SendHeld([row(5)])
    walk.on(HeldSent(1))
    release_step(walk)
    walk.on(HeldConfirmed())
    assert walk.state.holds == ()
    assert isinstance(walk.command, RenewReleaser)
    command = walk.on(ReleaserRenewed())
    assert isinstance(command, Save)
    assert [change.hold for change in command.holds] == [None]


def test_a_row_that_still_can_t_go_is_held_again_and_waits_for_a_person() -> None:
    """Fails when a failed release spins, or lets the row behind it pass."""
    walk = ordered()
    leg = leg_of(walk)
    walk.on(HeldFetched(batch(3, 5, start=leg.start, target=H1)))
    release_step(walk)
    walk.on(HeldRefused(fault(3), "still too large", broken=False))
    command = walk.command
    assert command == RenewReleaser(1.0)
    walk.on(ReleaserRenewed())
    walk.told()
    (hold,) = walk.state.holds
    assert not hold.releasing
    assert hold.tries == 1
    for _ in range(5):
        command = walk.on(Waited(), after=60)
        assert not isinstance(command, (FetchHeld, SendHeld, ProbeScope))


def test_a_row_refused_by_the_broker_among_others_is_looked_for_one_by_one() -> None:
    """Fails when the first of several refused together is blamed."""
    walk = ordered()
    leg = leg_of(walk)
    walk.on(HeldFetched(batch(3, 5, 6, 7, start=leg.start, target=H1)))
    walk.on(HeldSent(1), HeldConfirmed())
    assert release_step(walk) == SendHeld([row(5), row(6)])
    walk.on(HeldSent(2))
    walk.on(HeldRefused(None, "refused", broken=True))
    walk.on(ReleaserRenewed(fault(5)))
    assert walk.state.holds[0].releasing
    assert leg_of(walk).start.progress == 3
    walk.on(HeldFetched(batch(5, 6, 7, start=walk.state.release.sent, target=H1)))  # type: ignore[union-attr]
    assert release_step(walk) == SendHeld([row(5)])


def test_a_bad_row_in_a_topic_s_release_becomes_a_hold_of_its_key_where_the_topic_stands() -> None:
    """Fails when the new hold begins at the relay's position: the key's earlier rows would be lost."""
    hold = Hold(fault=MISSING, position=Position(horizon=H0), releasing=True)
    walk = Walk()
    walk.owning(hold, at=HERE)
    leg = leg_of(walk)
    rows = [row(1, "a"), row(2, "b"), row(4, "a")]
    walk.on(HeldFetched(Batch(start=leg.start, target=H1, rows=rows, complete=True)))
    walk.on(HeldSent(1), HeldConfirmed())
    walk.told()
    assert release_step(walk) == SendHeld([row(2, "b"), row(4, "a")])
    walk.on(HeldRefused(fault(2, key="b"), "too large", broken=False))
    walk.on(ReleaserRenewed())
    walk.told()
    topic, key = walk.state.holds
    assert key.scope == fault(2, key="b").scope
    assert key.position == topic.position == Position(horizon=H0, target=H1, progress=1)
    assert topic.releasing
    assert leg_of(walk).start == topic.position
    walk.on(HeldFetched(Batch(start=topic.position, target=H1, rows=rows[1:], complete=True)))
    assert release_step(walk) == SendHeld([row(4, "a")])


def test_a_narrow_hold_s_release_waits_for_the_wide_one() -> None:
    """Fails when a key goes back on its way while its topic is held: the two would meet in no order."""
    wide = Hold(fault=MISSING, position=Position(horizon=H0))
    walk = Walk()
    walk.owning(replace(HELD, asked=True), wide, at=HERE)
    for _ in range(6):
        command = release_step(walk)
        assert not isinstance(command, FetchHeld)
        walk.on(ScopeProbed(TOPIC, "still missing")) if isinstance(command, ProbeScope) else walk.on(
            Waited(), after=1
        )
    assert walk.state.release is None


def test_a_hold_that_heals_is_probed_with_growing_pauses_and_then_released() -> None:
    """Fails when a topic that is there again waits for a person, or a missing one is asked for without a pause."""
    walk = Walk()
    walk.owning(Hold(fault=MISSING, position=Position(horizon=H0)), at=HERE)
    probes: list[float] = []
    for _ in range(3):
        while not isinstance(walk.command, ProbeScope):
            release_step(walk)
            if not isinstance(walk.command, ProbeScope):
                walk.on(Waited(), after=1 / 4)
        probes.append(walk.now)
        walk.on(ScopeProbed(TOPIC, "missing"))
        walk.told()
    assert probes[2] - probes[1] > probes[1] - probes[0] > 0
    walk.on(ScopeProbed(TOPIC, None))
    assert isinstance(release_step(walk), FetchHeld)


def test_a_release_that_can_t_go_on_lets_others_have_their_turn() -> None:
    """Fails when one release keeps the second client for itself while its partition is away: all others would wait for hours."""
    other = Hold(fault=fault(4, key="other"), position=Position(horizon=H0))
    walk = Walk()
    walk.owning(replace(HELD, releasing=True), replace(other, releasing=True), at=HERE)
    leg = leg_of(walk)
    walk.on(HeldFetched(batch(3, start=leg.start, target=H1)))
    walk.on(HeldSent(1))
    assert isinstance(walk.on(HeldUnconfirmed(), after=POLICY.silence + 1), RenewReleaser)
    walk.on(ReleaserRenewed())
    command = release_step(walk)
    assert isinstance(command, FetchHeld)
    assert command.scope == other.scope
    walk.on(HeldFetched(batch(start=command.leg.start, target=H1)))
    while not isinstance(walk.command, RenewReleaser):
        walk.on(Confirmed())
    walk.on(ReleaserRenewed(), after=1)
    again = release_step(walk)
    assert isinstance(again, FetchHeld)
    assert again.scope == HELD.scope


def test_a_silent_release_stops_itself_and_not_the_relay() -> None:
    hold = Hold(fault=MISSING, position=Position(horizon=H0), releasing=True)
    walk = Walk()
    walk.owning(hold, at=HERE)
    leg = leg_of(walk)
    walk.on(HeldFetched(batch(1, start=leg.start, target=H1)))
    release_step(walk)
    walk.on(HeldSent(1))
    walk.on(HeldUnconfirmed(), after=POLICY.silence + 1)
    assert isinstance(walk.command, RenewReleaser)
    walk.on(ReleaserRenewed())
    walk.told()
    assert not walk.state.holds[0].releasing
    assert walk.state.holds[0].position == Position(horizon=H0)
    assert walk.state.trouble is None


def test_a_range_that_is_sent_again_ends_where_it_was_told_and_goes_on_from_the_order() -> None:
    """Fails when rows behind the range go again, or rows passed by since the order are lost."""
    since = Position(horizon=H0, target=H1, progress=9)
    hold = Hold(
        fault=replace(MISSING, code="republish", heals=False), position=Position(horizon="1:1:"), until=4, resume=since, releasing=True
    )  # fmt: skip
    walk = Walk()
    walk.owning(hold, at=HERE)
    leg = leg_of(walk)
    walk.on(HeldFetched(batch(3, 4, 5, start=leg.start, target=H1)))
    walk.on(HeldSent(1), HeldConfirmed())
    walk.told()
    assert release_step(walk) == SendHeld([row(4)])
    walk.on(HeldSent(1), HeldConfirmed())
    assert walk.state.holds[0].position == since
    walk.told()
    assert leg_of(walk).start == since


def test_while_they_meet_the_relay_stands_still_and_not_for_long() -> None:
    walk = ordered()
    leg = leg_of(walk)
    walk.on(HeldFetched(batch(3, start=leg.start, target=H1)))
    assert walk.state.release is not None
    assert walk.state.release.meeting
    walk.on(HeldSent(1))
    for _ in range(3):
        assert isinstance(walk.on(HeldUnconfirmed(), after=1 / 4), ConfirmHeld)
    walk.on(HeldUnconfirmed(), after=POLICY.meet_within)
    assert isinstance(walk.command, (Fetch, Save))


def test_the_relay_does_not_stand_still_while_most_of_a_release_lies_ahead() -> None:
    """Fails when the rest of the target that a hold was made in counts as its end: all rows would wait two seconds."""
    walk = ordered(replace(HELD, position=Position(horizon="1:2:", target="1:4:", progress=2)))
    leg = leg_of(walk)
    walk.on(HeldFetched(batch(start=leg.start, target="1:4:")))
    assert walk.state.release is not None
    assert not walk.state.release.meeting
    leg = leg_of(walk)
    walk.on(HeldFetched(batch(3, start=leg.start, target=H1)))
    assert walk.state.release is not None
    assert walk.state.release.meeting


def test_an_order_that_comes_while_a_fault_waits_loses_no_row() -> None:
    """Fails when the fault outlives the rows in hand: its hold would begin behind its row."""
    walk = Walk()
    walk.owning(at=Position(horizon=H0))
    walk.on(Fetched(batch(1, 2, start=Position(horizon=H0), target=H1)))
    assert isinstance(walk.on(Refused(fault(2), "too large", broken=False, sent=1)), Confirm)
    walk.on(Renewed(walk.now + 600, orders=1))
    assert walk.command == ReadOrders()
    again = Hold(fault=replace(MISSING, code="republish"), position=Position(horizon="1:1:"), releasing=True)
    walk.on(OrdersRead((again,), False, 1))
    walk.on(Confirmed())
    assert [hold.scope for hold in walk.state.holds] == [TOPIC]


@pytest.mark.parametrize(
    ("hold", "relay", "start", "end"),
    [
        (Position(horizon=H0), HERE, Position(horizon=H0, target=H1), HERE),
        (
            Position(horizon=H0, target=H1, progress=3),
            Position(horizon=H2),
            Position(horizon=H0, target=H1, progress=3),
            HERE,
        ),
        (
            Position(horizon=H0, target=H1, progress=3),
            Position(horizon=H0, target=H1, progress=7),
            Position(horizon=H0, target=H1, progress=3),
            Position(horizon=H0, target=H1, progress=7),
        ),
        (
            HERE,
            Position(horizon=H1, target=H2, progress=7),
            Position(horizon=H1, target=H2),
            Position(horizon=H1, target=H2, progress=7),
        ),
        (
            Position(horizon=H0, target=H1, progress=8),
            Position(horizon=H1, target=H1, progress=2),
            Position(horizon=H0, target=H1, progress=8),
            HERE,
        ),
    ],
)
def test_the_legs_of_a_release_are_the_relay_s_own_steps(
    hold: Position, relay: Position, start: Position, end: Position
) -> None:
    """Fails when a target of before is left unfinished, or one that only reads the same is taken for it."""
    leg = next_leg(hold, relay)
    assert leg is not None
    assert (leg.start, leg.end) == (start, end)


def test_they_have_met_where_the_positions_are_equal() -> None:
    assert next_leg(HERE, HERE) is None


def test_a_row_waits_in_the_narrowest_of_its_holds() -> None:
    screen = Screen([Hold(fault=MISSING, position=HERE), HELD])
    assert screen.holder(row(1)) == HELD.scope
    assert screen.holder(row(1, "other")) == TOPIC


def test_a_saved_hold_says_how_far_it_is() -> None:
    walk = ordered()
    leg = leg_of(walk)
    walk.on(HeldFetched(batch(3, 5, start=leg.start, target=H1)))
    release_step(walk)
    walk.on(HeldSent(1))
    command = walk.on(HeldConfirmed())
    assert isinstance(command, Save)
    (change,) = command.holds
    assert change.hold is not None
    assert change.hold.position.progress == 3
    assert command.rows == 1, "what a release sends is published, too"
    assert walk.on(Saved()) is not None


def test_a_hold_that_heals_does_not_end_before_a_row_of_it_was_tried_apart() -> None:
    """Fails when it ends where it began: the broker's word may be good and the row still refused, and all of the relay stops each time."""
    walk = Walk()
    walk.owning(Hold(fault=MISSING, position=HERE), at=HERE)
    walk.on(ScopeProbed(TOPIC, None))
    command = walk.told()
    (hold,) = walk.state.holds
    assert not hold.releasing
    begin = walk.now
    while not isinstance(command, ProbeScope):
        command = release_step(walk)
        if not isinstance(command, ProbeScope):
            command = walk.on(
                ReleaserRenewed() if isinstance(command, RenewReleaser) else Waited(), after=1 / 4
            )
    assert walk.now > begin
    assert walk.state.holds
