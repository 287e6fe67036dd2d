"""Slots and publications through an ordinary connection; what goes wrong there in the words of the stream's causes."""

from dataclasses import dataclass
from typing import Any

import psycopg

from packhorse.core.errors import PackhorseError
from packhorse.relay.cdc import sql as cdc_sql
from packhorse.relay.cdc.stream import (
    Cause,
    OtherSlot,
    Slot,
    SlotState,
    StreamUnavailable,
    lsn,
    lsn_text,
    publication_name,
    slot_name,
)
from packhorse.relay.model import Row, Snapshot
from packhorse.relay.postgres.connection import Reach, connect, translated
from packhorse.relay.postgres.slot_faults import (
    TIMED_OUT,
    end_of_last_record,
    failed,
    lost,
    not_set_up,
    state_of,
    unavailable,
)
from packhorse.relay.sql import FLUSH_LOG

SET_UP = 5.0
"""Seconds that making a slot may take: polling waits meanwhile."""
MOVING = 30.0
"""Seconds that moving a slot forward may take: the server reads the log in between, some hundred MiB a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What the server and this role allow, as cdc_sql.SERVER tells it."""

    wal_level: str
    in_recovery: bool
    role: str
    may_replicate: bool
    database: int
    slots_allowed: int
    slots_there: int
    keep_size: int
    block: int
    segment: int
    standbys: bool


class Slots:
    """
    One shard's slot and the publication, through a connection of its own; one thread at a time.

    Every method raises StreamUnavailable. Only `open` connects; `generation` grows by one each time.
    """

    def __init__(self, url: str, schema: str, *, shard: int, reach: Reach) -> None:
        self._url = url
        self._schema = schema
        self._shard = shard
        self._reach = Reach(connect=min(reach.connect, SET_UP), answer=min(reach.answer, SET_UP))
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._published: str | None = None
        self._block = self._segment = 0
        self._standbys = False
        self.generation = 0
        self.name = ""
        self.publication = publication_name(schema)

    def open(self) -> Server:
        """Connect if need be; return what the server allows."""
        if self._connection is None or self._connection.closed:
            self._connection = self._connect(self._reach)
            self.generation += 1
        server = Server(**dict(zip(Server.__slots__, self.run(cdc_sql.SERVER)[0], strict=True)))
        self._block, self._segment, self._standbys = server.block, server.segment, server.standbys
        self.name = slot_name(self._schema, self._shard, database=server.database)
        return server

    def close(self) -> None:
        """Drop the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def identity(self) -> tuple[str, int, str]:
        """Return the server's system identifier, its timeline, and the database's name."""
        system, timeline, database = self.run(cdc_sql.IDENTITY)[0]
        return system, timeline, database

    def check(self, server: Server) -> None:
        """Refuse what streaming can't work with: a wrong server setting, a missing right, another publication."""
        if server.in_recovery:
            raise failed("this server is a standby; replication_url must lead to the primary")
        if server.wal_level != "logical":
            raise not_set_up(
                f"wal_level is {server.wal_level} and streaming needs logical; set it in postgresql.conf and restart the server"
            )
        if not server.may_replicate:
            raise not_set_up(
                f"role {server.role} has no REPLICATION; run ALTER ROLE {server.role} REPLICATION, as a superuser"
            )
        if (wrong := self.publication_fault()) is not None:
            raise not_set_up(f"{wrong}; run `packhorse relay cdc-setup`")

    def publication_fault(self) -> str | None:
        """Return what is wrong with the publication; None when it brings the outbox's inserts and nothing else."""
        found = self.run(cdc_sql.PUBLICATION.format(schema=self._schema), publication=self.publication)
        if not found:
            return f"publication {self.publication} is missing"
        inserts, more, via_root, everything, listed, filtered, cut, others, self._published = found[0]
        faults = {
            f"does not hold {self._schema}.outbox": not listed,
            "publishes no inserts": not inserts,
            "publishes updates, deletes or truncates too": more,
            "names partitions instead of the outbox (publish_via_partition_root is off)": not via_root,
            "holds all tables": everything,
            f"holds {others} other tables or schemas": others > 0,
            "has a row filter": filtered,
            "has a column list": cut,
        }
        wrong = [text for text, is_so in faults.items() if is_so]
        return f"publication {self.publication} {', and '.join(wrong)}" if wrong else None

    def make(self, server: Server) -> bool:
        """Make the slot if it is missing or lost; True when it was made. Waits for running transactions, up to a bound."""
        state = self._slot()
        if state is not None:
            if not state[0] or state[1] != server.database:
                raise not_set_up(
                    f"slot {self.name} is no slot of ours for this database; drop it or rename it, and try again"
                )
            if state[3] != "lost":
                return False
            self.drop()
        if server.slots_there - (state is not None) >= server.slots_allowed:
            raise not_set_up(
                f"all {server.slots_allowed} replication slots of the server are taken (max_replication_slots); "
                "`packhorse relay cdc-setup --list` shows ours; drop one, or raise the setting and restart the server"
            )
        self.run(cdc_sql.MAKE_SLOT, slot=self.name)
        return True

    def fence(self) -> Slot:
        """Read the log's position, then draw a transaction id."""
        at = self.run(cdc_sql.INSERT_POSITION)[0][0]
        fence = self.run(cdc_sql.FENCE)[0][0]
        return Slot(name=self.name, fence=fence, at=self._end(at))

    def advance(self, at: int) -> None:
        """Move the slot forward to *at*; refuse one that stands ahead of it, is gone, lost or read by another."""
        state = self._slot()
        if state is None:
            raise lost(f"slot {self.name} is gone; the relay polls, and makes a new one")
        _, _, pid, status, confirmed, _, lag, reason = state
        if status == "lost" or confirmed is None:
            raise lost(
                f"slot {self.name} is lost ({reason or 'its log was removed'}): it held more than max_slot_wal_keep_size; "
                "the relay polls, and makes a new one"
            )
        if pid is not None:
            raise StreamUnavailable(
                f"slot {self.name} is read by process {pid} of the server; is an old relay still running? "
                "pg_stat_replication tells from where",
                cause=Cause.SLOT_IN_USE,
            )
        if lsn(confirmed) > at:
            raise lost(
                f"slot {self.name} stands at {confirmed}, ahead of {lsn_text(at)}: somebody else has read from it; "
                "the relay polls first"
            )
        if (
            lsn(confirmed) < at and lag > 0
        ):  # nothing is to be read otherwise: a stream may begin anywhere behind
            self._move(at, lag)

    def _move(self, at: int, lag: int) -> None:
        connection = self._connect(Reach(connect=self._reach.connect, answer=MOVING))
        try:
            with translated(connection):
                connection.execute(cdc_sql.ADVANCE, {"slot": self.name, "at": lsn_text(at)})
        except PackhorseError as error:
            if state_of(error) in TIMED_OUT:
                raise StreamUnavailable(
                    f"slot {self.name} stands {lag} bytes behind, more than the server could read in {MOVING * 4 / 5:.0f} s; "
                    "it is given up when it holds more than wal_budget, "
                    "or at once by `packhorse relay cdc-setup --drop-slot`",
                    cause=Cause.LAGGING,
                ) from error
            raise self._told(error) from error
        finally:
            connection.close()

    def mark(self) -> tuple[Snapshot, int]:
        """Return the current snapshot and a position read after it; refuse when the publication has changed since `check`."""
        snapshot, position, published, self._standbys = self.run(
            cdc_sql.MARK.format(schema=self._schema), publication=self.publication
        )[0]
        if published != self._published:
            raise not_set_up(
                f"publication {self.publication} was changed while it was in use: rows may be missing from the stream; "
                "the relay polls them, and `packhorse relay cdc-setup --dry-run` says how the publication stands"
            )
        return snapshot, self._end(position)

    def secure(self) -> None:
        """
        Wait until every synchronous standby has what the stream brought; nothing where there are none.

        The server streams what is on its own disk. Without this a row would be on its topic and, when a standby takes
        over, in no database.
        """
        if self._standbys:
            self.run(FLUSH_LOG)

    def state(self) -> SlotState:
        """Return how the slot stands."""
        others = tuple(
            OtherSlot(name=name, active=active, held_bytes=held)
            for name, active, held in self.run(cdc_sql.OTHER_SLOTS, slot=self.name)
        )
        found = self._slot()
        if found is None:
            return SlotState(name=self.name, exists=False, others=others)
        _, _, pid, status, _, held, lag, reason = found
        return SlotState(
            name=self.name, exists=True, held_bytes=held, lag_bytes=lag, wal_status=status,
            lost=(reason or "its log was removed") if status == "lost" else None, active_pid=pid, others=others,
        )  # fmt: skip

    def drop(self) -> None:
        """Drop the slot; nothing when there is none."""
        self.run(cdc_sql.DROP_SLOT, slot=self.name)

    def end_reader(self, pid: int) -> None:
        """End the server process *pid* if it still reads the slot, and wait until it is gone."""
        self.run(cdc_sql.END_READER, slot=self.name, pid=pid)

    def make_publication(self) -> str:
        """Make the publication; return the statement."""
        statement = cdc_sql.MAKE_PUBLICATION.format(publication=self.publication, schema=self._schema)
        self.run(statement)
        return statement

    def _slot(self) -> Row | None:
        found = self.run(cdc_sql.SLOT, slot=self.name)
        return found[0] if found else None

    def _end(self, insert: str) -> int:
        return end_of_last_record(lsn(insert), block=self._block, segment=self._segment)

    def _connect(self, reach: Reach) -> psycopg.Connection[tuple[Any, ...]]:
        try:
            return connect(self._url, reach)
        except PackhorseError as error:
            raise failed(str(error)) from error

    def run(self, statement: str, **values: object) -> list[Row]:
        """Run a statement of cdc_sql and return its rows."""
        if self._connection is None or self._connection.closed:
            raise failed("the connection to the database is gone")
        try:
            with translated(self._connection):
                cursor = self._connection.execute(statement, values or None)
                return cursor.fetchall() if cursor.description else []
        except PackhorseError as error:
            raise self._told(error) from error

    def _told(self, error: PackhorseError) -> StreamUnavailable:
        if state_of(error) not in TIMED_OUT:
            return unavailable(error, slot=self.name)
        return not_set_up(
            f"slot {self.name} could not be made within {self._reach.answer / 2:g} s: it waits for transactions "
            f"that write, the oldest of {self._oldest_writer()}; it is tried again, or end that one"
        )

    def _oldest_writer(self) -> str:
        try:
            found = self.run(cdc_sql.OLDEST_WRITER)
        except StreamUnavailable:
            found = []
        return f"{found[0][0]}, {found[0][1]} s old" if found else "an unknown process"
