"""Errors to plant: each is one small change that a careless hand could make, and the checker must find every one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from unittest.mock import patch

from tests.simulation.relay import broker, people
from tests.simulation.relay.database import Database
from tests.simulation.relay.process import Process

from packhorse.relay.deciding import after, after_release, after_sending, holding
from packhorse.relay.deciding.commands import Save
from packhorse.relay.deciding.events import DatabaseFailed, Owned, Sent
from packhorse.relay.deciding.moment import Moment
from packhorse.relay.deciding.state import Release, State
from packhorse.relay.holds import Fault, Hold, Kind, Leg, Scope, next_leg
from packhorse.relay.model import AGGREGATETYPE, ID, Batch, Position, Row
from packhorse.relay.resharding import model as resharding
from packhorse.relay.resharding.model import Standing, Step, next_step

Plant = Callable[[Process], None]


def order_by_transaction_id(process: Process) -> None:
    process.outbox.order = lambda row: (row.xid, row.seq)


def no_frozen_target(process: Process) -> None:
    process.outbox.with_target = False


def forget_who_ran_then(process: Process) -> None:
    """Read only from the horizon's xmax on, and not those that still ran when it was taken."""
    fetch = process.outbox.fetch

    def narrow(position: Position, limit: int) -> Batch:
        batch = fetch(position, limit)
        by_name = {row.name: row.xid for row in process.world.database.rows}
        xmax = int(position.horizon.split(":")[1])
        kept = [row for row in batch.rows if by_name.get(row[5], xmax) >= xmax]
        return replace(batch, rows=kept, complete=batch.complete or not kept)

    process.outbox.fetch = narrow  # type: ignore[method-assign]


def horizon_moves_to_now(process: Process) -> None:
    save = process.outbox.save

    def saved(token: object, command: Save) -> bool:
        if command.new.target is None:
            command = replace(command, new=Position(horizon=process.world.database.snapshot()))
        return save(token, command)  # type: ignore[arg-type]

    process.outbox.save = saved  # type: ignore[method-assign, assignment]


def send_before_the_log_is_flushed(process: Process) -> None:
    process.outbox.wait_for_log = False


def client_overtakes(process: Process) -> None:
    process.broker.overtake = True


def stream_at_once(process: Process) -> None:
    """Stream without waiting until polling has what the slot does not bring."""
    process.stream.skip_the_fence = True


def read_as_many_shards_as_there_were(process: Process) -> None:
    """Put the statements together once, and not again when the number of shards has changed."""
    seen: list[int] = []

    def first() -> int:
        seen.append(process.outbox._shards)
        return seen[0]

    process.outbox.shards = first


def mark_the_log_too_early(process: Process) -> None:
    """Take a snapshot for the horizon that shows more than was read."""
    process.stream.mark_early = True


WORLD_PLANTS: tuple[Plant, ...] = (
    order_by_transaction_id,
    no_frozen_target,
    forget_who_ran_then,
    horizon_moves_to_now,
    send_before_the_log_is_flushed,
    client_overtakes,
    stream_at_once,
    mark_the_log_too_early,
    read_as_many_shards_as_there_were,
)


THEME_OF: dict[object, str] = {
    stream_at_once: "stream",
    mark_the_log_too_early: "stream",
    read_as_many_shards_as_there_were: "shards",
}
"""Where to look for an error that shows in few of all schedules."""


@contextmanager
def handling(event: type, handler: object) -> Iterator[None]:
    """Let *handler* take *event* in."""
    with patch.dict(after._HANDLERS, {event: handler}):
        yield


def save_before_confirmation() -> AbstractContextManager[None]:
    def early(state: State, event: Sent, at: Moment) -> State:
        state = after_sending._sent(state, event, at)
        return replace(state, confirmed=state.sent, unsaved=state.unsaved + event.count, waiting=0)

    return handling(Sent, early)


def keep_memory_over_a_reconnect() -> AbstractContextManager[None]:
    def kept(state: State, event: DatabaseFailed, at: Moment) -> State:
        del event
        return replace(state, failures=state.failures + 1, database_at=at.now + at.pause(state.failures + 1))

    return handling(DatabaseFailed, kept)


def progress_goes_on_in_a_new_target() -> AbstractContextManager[None]:
    """Read on behind the progress, but in a target taken anew."""

    def anew(state: State, event: Owned, at: Moment) -> State:
        position = event.position
        if position.target is not None:
            event = replace(event, position=Position(horizon=position.target))
        return after._owned(state, event, at)

    return handling(Owned, anew)


def hold_the_row_alone() -> AbstractContextManager[object]:
    """Hold of a key only the row that can't go, and let those behind it pass."""

    def alone(row: Row) -> Scope:
        return Scope(kind=Kind.ROW, aggregatetype=row[AGGREGATETYPE], message_id=row[ID])

    return patch.object(broker, "scope_of", alone)


def hold_begins_behind_the_row() -> AbstractContextManager[object]:
    """Take a hold's beginning to be where the relay goes on."""

    def behind(state: State, fault: Fault) -> State:
        before = set(state.holds)
        state = holding.held(state, fault)
        for hold in [hold for hold in state.holds if hold not in before]:
            at = hold.position
            if at.target is not None and fault.seq is not None:
                state = holding.changed(state, replace(hold, position=replace(at, progress=fault.seq)))
        return state

    return patch.object(after_sending, "held", behind)


def hold_forgets_its_target() -> AbstractContextManager[object]:
    """Remember of a hold's position the horizon of the cycle's end instead of horizon, target and progress."""

    def forgetful(state: State, fault: Fault) -> State:
        before = set(state.holds)
        state = holding.held(state, fault)
        made = [hold for hold in state.holds if hold not in before]
        for hold in made:
            at = Position(horizon=hold.position.target or hold.position.horizon)
            state = holding.changed(state, replace(hold, position=at))
        return state

    return patch.object(after_sending, "held", forgetful)


def release_ends_before_it_meets() -> AbstractContextManager[object]:
    """Let a hold end at the end of its first leg."""
    legs: set[int] = set()

    def once(hold: Position, relay: Position) -> Leg | None:
        leg = next_leg(hold, relay)
        if leg is None or hash(hold) in legs:
            return None
        legs.add(hash(leg.end))
        return leg

    return patch.object(after_release, "next_leg", once)


def switch_from_horizons_that_differ() -> AbstractContextManager[object]:
    """Deal the rows to other shards as soon as everybody has stopped, from the first one's horizon."""

    def hasty(shards: Sequence[Standing], wanted: int) -> Step:
        step = next_step(shards, wanted)
        return Step.SWITCH if step is Step.LEVEL else step

    return patch.object(resharding, "next_step", hasty)


def switch_with_a_target_in_work() -> AbstractContextManager[object]:
    """Deal the rows to other shards while a died owner's target is half done: all go on behind its progress."""

    def hasty(shards: Sequence[Standing], wanted: int) -> Step:
        step = next_step(shards, wanted)
        ordered = all(shard.finish and shard.owner is None for shard in shards)
        return Step.SWITCH if step is Step.WAIT and ordered else step

    return patch.object(resharding, "next_step", hasty)


def switch_under_an_owner() -> AbstractContextManager[object]:
    """Deal the rows to other shards while owners still work: what they have in work is forgotten."""

    def hasty(shards: Sequence[Standing], wanted: int) -> Step:
        step = next_step(shards, wanted)
        return Step.SWITCH if step is Step.ORDER else step

    return patch.object(resharding, "next_step", hasty)


def held_keys_stay_in_their_shard() -> AbstractContextManager[object]:
    """Leave holds where they are while their rows go to other shards."""
    deal = people.switch

    def leave(database: Database, number: int) -> None:
        holds = {shard: row.holds for shard, row in database.relays.items()}
        deal(database, number)
        for shard, row in database.relays.items():
            row.holds = holds.get(shard, {})

    return patch.object(people, "switch", leave)


def a_range_goes_on_from_the_relay() -> AbstractContextManager[object]:
    """Let a hold end where a range ends, though the relay has passed rows by since the order."""

    def forget(state: State, hold: Hold, release: Release) -> State:
        assert state.confirmed is not None
        return _behind(
            state, replace(hold, resume=state.confirmed) if hold.until is not None else hold, release
        )

    _behind = after_release._behind
    return patch.object(after_release, "_behind", forget)


SHARD_PLANTS = (
    switch_from_horizons_that_differ,
    switch_with_a_target_in_work,
    switch_under_an_owner,
    held_keys_stay_in_their_shard,
)
ORDER_PLANTS = (a_range_goes_on_from_the_relay,)

CORE_PLANTS = (
    save_before_confirmation,
    keep_memory_over_a_reconnect,
    progress_goes_on_in_a_new_target,
    hold_the_row_alone,
    hold_begins_behind_the_row,
    hold_forgets_its_target,
    release_ends_before_it_meets,
)
