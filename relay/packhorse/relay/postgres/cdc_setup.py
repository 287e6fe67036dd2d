"""Make ready for streaming: look at the server, make publication and slots, find and drop old slots."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager

from packhorse.core.errors import NotReady, UsageError
from packhorse.core.person import Person
from packhorse.core.rights import Right
from packhorse.relay.cdc import sql as cdc_sql
from packhorse.relay.cdc.setup import Done, Listed, Report, Step, listed, size
from packhorse.relay.cdc.stream import SLOT_PREFIX, Cause, OtherSlot, StreamUnavailable
from packhorse.relay.postgres.acting import allowed
from packhorse.relay.postgres.connection import OWNER_RIGHTS, Reach, connect, translated
from packhorse.relay.postgres.slots import Server, Slots
from packhorse.relay.shards import no_row


class CdcSetup:
    """
    The set-up of one installation, through a connection of its own.

    Raises StreamUnavailable where no answer comes, and NotReady where a right is missing.
    """

    def __init__(self, url: str, schema: str, *, reach: Reach | None = None) -> None:
        self._url = url
        self._schema = schema
        self._reach = reach or Reach()

    def run(self, *, act: bool, unbounded: bool) -> Report:
        """
        Look at everything first; when nothing stands in the way, make the publication, then the slots that are missing.

        The publication comes first, since a slot reads the log as the catalog was then: what was written before there
        was a publication can't be streamed. Both are idempotent. Without *act* nothing is made. *unbounded* accepts a
        server that keeps log for a slot without limit.
        """
        with self._opened() as shards:
            first = shards[0]
            server = first.open()
            steps = [*self._server_steps(server, unbounded=unbounded), self._publication(first)]
            steps += [self._slot(slots, server) for slots in shards]
            steps += _left(shards)
            if not act or Report(steps=steps).refused:
                return Report(steps=steps)
            return Report(steps=[self._make(step, shards, server) for step in steps])

    def slots(self) -> list[Listed]:
        """Return our slots in this database, used or not, with the log that each holds."""
        with self._opened() as shards:
            states = [slots.state() for slots in shards]
            return listed(states, states[0].others)

    def drop(self, name: str, *, person: Person, why: str | None) -> Listed:
        """
        Drop slot *name*, on record.

        The record is written first: a crash between the two leaves a record of a drop that did not happen, and no drop
        without a record.

        Raises:
            Forbidden: *person* may not administer.
            UsageError: There is no such slot of ours, or somebody reads it.
        """
        found = {slot.name: slot for slot in self.slots()}.get(name)
        if found is None:
            raise UsageError(
                f"slot {name!r} is none of ours in this database; `packhorse relay cdc-setup --list` shows them "
                f"(their names begin with {SLOT_PREFIX})"
            )
        if found.active:
            raise UsageError(
                f"slot {name} is read by a relay now; stop that relay, or set its mode to polling, first"
            )
        with self._opened() as shards:
            slots = shards[0]
            detail = json.dumps({"slot": name, "held_bytes": found.held_bytes})
            self._record_drop(detail, person, why)
            slots.run(cdc_sql.DROP_SLOT, slot=name)
        return found

    def _record_drop(self, detail: str, person: Person, why: str | None) -> None:
        """Check the right and record, in a transaction of its own: no rollback brings a slot back."""
        with (
            closing(connect(self._url, self._reach)) as connection,
            translated(connection, rights=OWNER_RIGHTS),
            connection.transaction(),
        ):
            actor = allowed(
                connection, self._schema, person, Right.ADMINISTER, doing="drop a replication slot"
            )
            text = cdc_sql.RECORD_DROP.format(schema=self._schema)
            connection.execute(text.encode(), {"actor": actor, "detail": detail, "why": why})

    @contextmanager
    def _opened(self) -> Iterator[list[Slots]]:
        """Provide one Slots for each shard; they share nothing."""
        first = Slots(self._url, self._schema, shard=0, reach=self._reach)
        shards = [first]
        try:
            first.open()
            numbers = [number for (number,) in first.run(cdc_sql.SHARDS.format(schema=self._schema))]
            if 0 not in numbers:
                raise NotReady(no_row(self._schema, 0))
            for number in sorted(set(numbers) - {0}):
                shards.append(Slots(self._url, self._schema, shard=number, reach=self._reach))
                shards[-1].open()
            yield shards
        except StreamUnavailable as error:
            if error.cause is Cause.NOT_SET_UP:
                raise NotReady(str(error)) from error
            raise
        finally:
            for slots in shards:
                slots.close()

    def _server_steps(self, server: Server, *, unbounded: bool) -> list[Step]:
        steps = [
            _step("wal_level", server.wal_level == "logical", server.wal_level,
                  f"{server.wal_level}; set it to logical in postgresql.conf and restart the server"),
            _step("primary", not server.in_recovery, "yes", "this server is a standby; name the primary"),
            _step("REPLICATION", server.may_replicate, f"role {server.role} has it; the relay's own role needs it too",
                  f"role {server.role} has it not; run ALTER ROLE {server.role} REPLICATION as a superuser"),
        ]  # fmt: skip
        if server.keep_size >= 0:
            return [*steps, Step(what="max_slot_wal_keep_size", done=Done.FINE, text=size(server.keep_size))]
        text = (
            "-1: a slot that nobody reads keeps log until the disk is full, also when no relay runs to give it up; "
            "set it below the free space, for instance ALTER SYSTEM SET max_slot_wal_keep_size = '16GB'; "
            "SELECT pg_reload_conf()"
        )
        if unbounded:
            return [*steps, Step(what="max_slot_wal_keep_size", done=Done.WARNING, text=text)]
        return [
            *steps,
            Step(
                what="max_slot_wal_keep_size",
                done=Done.REFUSED,
                text=f"{text}; or accept it with --unbounded-wal",
            ),
        ]

    def _publication(self, slots: Slots) -> Step:
        what = f"publication {slots.publication}"
        fault = slots.publication_fault()
        if fault is None:
            return Step(what=what, done=Done.FINE, text=f"inserts of {self._schema}.outbox")
        if fault.endswith("is missing"):
            return self._planned(slots, what)
        return Step(
            what=what, done=Done.REFUSED,
            text=f"{fault}; DROP PUBLICATION {slots.publication} and run this again (a relay polls meanwhile)",
        )  # fmt: skip

    def _planned(self, slots: Slots, what: str) -> Step:
        """Return that the publication would be made, or which right this role lacks for that."""
        ((owner, owns, database, creates),) = slots.run(cdc_sql.MAY_PUBLISH.format(schema=self._schema))
        if not owns:
            text = f"{self._schema}.outbox belongs to {owner}; run this as that role"
            return Step(what=what, done=Done.REFUSED, text=text)
        if not creates:
            text = f"this role may not make one; GRANT CREATE ON DATABASE {database} to it, or run this as the database's owner"
            return Step(what=what, done=Done.REFUSED, text=text)
        return Step(what=what, done=Done.PLANNED, text=f"inserts of {self._schema}.outbox")

    def _slot(self, slots: Slots, server: Server) -> Step:
        what, state = f"slot {slots.name}", slots.state()
        if state.exists and state.lost is None:
            read = "a relay reads it" if state.active_pid else "nobody reads it"
            return Step(what=what, done=Done.FINE, text=f"holds {size(state.held_bytes)} of log; {read}")
        if not state.exists and server.slots_there >= server.slots_allowed:
            return Step(
                what=what, done=Done.REFUSED,
                text=f"all {server.slots_allowed} slots of the server are taken; raise max_replication_slots and restart it",
            )  # fmt: skip
        again = f"it was lost ({state.lost}); " if state.lost else ""
        return Step(
            what=what, done=Done.PLANNED,
            text=f"{again}it holds log from now on: run the relay with mode auto, or drop it again",
        )  # fmt: skip

    def _make(self, step: Step, shards: list[Slots], server: Server) -> Step:
        if step.done is not Done.PLANNED:
            return step
        kind, _, name = step.what.partition(" ")
        try:
            if kind == "publication":
                shards[0].make_publication()
            else:
                next(slots for slots in shards if slots.name == name).make(server)
        except StreamUnavailable as error:
            return Step(what=step.what, done=Done.REFUSED, text=str(error))
        return Step(what=step.what, done=Done.MADE, text=step.text)


def _left(shards: list[Slots]) -> list[Step]:
    """Warn of slots that nobody needs any more."""
    names = {slots.name for slots in shards}
    return [
        Step(
            what=f"slot {slot.name}", done=Done.WARNING,
            text=f"no shard streams from it, and it holds {size(slot.held_bytes)} of log; "
            f"`packhorse relay cdc-setup --drop-slot {slot.name}` gives it up",
        )
        for slot in shards[0].state().others
        if slot.name not in names and not slot.active
    ]  # fmt: skip


def _step(what: str, fine: bool, good: str, bad: str) -> Step:
    return Step(what=what, done=Done.FINE if fine else Done.REFUSED, text=good if fine else bad)


def left_slots(url: str, schema: str, *, reach: Reach, ours_too: bool) -> list[OtherSlot]:
    """
    Return slots of ours that no relay reads now; *ours_too*: also shard 0's, which a polling relay has no use for.

    Empty when the database can't be asked: whoever asks next will see.
    """
    slots = Slots(url, schema, shard=0, reach=reach)
    try:
        slots.open()
        state = slots.state()
    except StreamUnavailable:
        return []
    finally:
        slots.close()
    found = [slot for slot in state.others if not slot.active]
    if ours_too and state.exists and state.active_pid is None:
        found.append(OtherSlot(name=state.name, active=False, held_bytes=state.held_bytes or 0))
    return found
