"""Adopt the outbox of another server: one transaction, as the owner of the tables."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import IsolationLevel
from psycopg import errors as pg

from packhorse.core.errors import DatabaseUnavailable, NotReady, OwnershipLost
from packhorse.core.partitions import partition_of
from packhorse.core.person import Person
from packhorse.core.redaction import without_secrets
from packhorse.core.rights import Right
from packhorse.relay.identity import adoption_sql as sql
from packhorse.relay.identity.adoption import Adoption
from packhorse.relay.identity.look import Judge
from packhorse.relay.postgres.acting import allowed

Connection = psycopg.Connection[tuple[Any, ...]]
_FIRST = "1:1:"
STEP = 20_000
"""Published rows that one transaction rewrites: a second or so that writers wait."""


def adopt(
    url: str, schema: str, *, person: Person, why: str | None = None, dry_run: bool = False
) -> Adoption | None:
    """
    Let the position mean on this server what it meant on the one it was saved on; None: it does already.

    Rows that are published stay so, all others are published when the relay starts. One transaction: a crash leaves all as it
    was, but for ids of published rows, which are rewritten in steps ahead of it and count as before. It blocks writers of the
    outbox while it counts and rewrites what is not published; *dry_run* counts the same rows, blocks nobody and is rolled back.

    Raises:
        Forbidden: *person* may not administer.
        OwnershipLost: A relay runs.
        NotReady: A table or right is missing, or the outbox is in use for longer than five seconds.
        DatabaseUnavailable: The database does not answer.
    """
    with _transaction(url, dry_run=dry_run) as connection:
        adopting = _Adopting(connection, schema, person)
        refusal = adopting.check()
        if refusal is None:
            return None
        rewritten = 0
        if not dry_run:
            rewritten = adopting.rewrite_published()
            adopting.lock()
        adopting.look()
        found = adopting.find(refusal, dry_run=dry_run)
        if not dry_run:
            adopting.rewrite(found)
            found = replace(found, published_rewritten=found.published_rewritten + rewritten)
            adopting.record(found, why=why)
            connection.commit()
        return found


@contextmanager
def _transaction(url: str, *, dry_run: bool) -> Iterator[Connection]:
    """Provide a connection in a transaction that the block commits, or nobody; the driver's errors in our words."""
    try:
        with psycopg.connect(url, connect_timeout=10, application_name="packhorse-relay-adopt") as connection:
            if dry_run:
                connection.isolation_level = IsolationLevel.REPEATABLE_READ
            try:
                yield connection
            finally:
                if not connection.closed:
                    connection.rollback()
    except pg.LockNotAvailable as error:
        raise NotReady(
            "a transaction has used the outbox for more than 5 s; the adoption was not done. Look for it in pg_stat_activity, and try again"
        ) from error
    except (pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedFunction, pg.InvalidSchemaName) as error:
        raise NotReady(f"{_first_line(error)}; run `packhorse migrate up`") from error
    except pg.InsufficientPrivilege as error:
        raise NotReady(f"{_first_line(error)}; run this as the owner of the tables") from error
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"the adoption was not done: {_first_line(error)}") from error


def _first_line(error: psycopg.Error) -> str:
    return without_secrets(str(error).strip().partition("\n")[0] or type(error).__name__)


class _Adopting:
    """The steps of one adoption, in the order of its methods."""

    def __init__(self, connection: Connection, schema: str, person: Person) -> None:
        self._connection = connection
        self._schema = schema
        self._person = person
        self._horizon = self._here = self._actor = ""
        self._fresh = False
        self._renumber: list[tuple[int, Any]] = []

    def check(self) -> str | None:
        """Return what the relay is refused for; None: it is not."""
        self._run(sql.LIMITS)
        owner = self._run(sql.OWNER).fetchone()
        if owner is None:
            raise NotReady(f"table {self._schema}.outbox is missing; run `packhorse migrate up`")
        if not owner[1]:
            raise NotReady(f"the tables belong to {owner[0]}; run this as that role")
        self._allowed(hold=False)
        self._check_leases()
        shards = [row[0] for row in self._run(sql.SHARDS)]
        verdicts = [
            Judge(self._schema, shard).look(
                lambda text, values: self._connection.execute(text, values).fetchall()
            )[1]
            for shard in shards
        ]
        return next((verdict.refusal for verdict in verdicts if verdict.refusal is not None), None)

    def _check_leases(self) -> None:
        running = self._run(sql.LEASES).fetchall()
        if running:
            shard, owner, seconds = running[0]
            raise OwnershipLost(
                f"{owner} owns shard {shard} for {seconds} s more: stop every relay, wait until its lease is over, and try again"
            )

    def rewrite_published(self) -> int:
        """
        Rewrite published rows whose ids this server has not reached, in transactions of their own; return how many.

        There may be millions. Writers wait for one step at a time, and a crash between two of them changes nothing that counts:
        the old position has the rows as published before and after.
        """
        counter, known = self._row(sql.COUNTER)
        last, total = {"xid": counter, "seq": 0}, 0
        while known:
            self._run(sql.LIMITS)
            self._allowed()
            self._run(sql.TRIGGER_OFF)
            count, xid, seq = self._row(sql.AHEAD_OF_ALL, **last)
            self._run(sql.TRIGGER_ON)
            self._connection.commit()
            total += count
            if count < STEP:
                break
            last = {"xid": xid, "seq": seq}
        self._run(sql.LIMITS)
        return total

    def lock(self) -> None:
        """Keep relays and writers away until the end; readers go on."""
        self._run(sql.LOCK_RELAY)
        self._check_leases()
        self._run(sql.LOCK_OUTBOX)

    def look(self) -> None:
        """Take the snapshot that becomes the horizon, before this transaction draws an id."""
        self._horizon, self._here, unnumbered = self._row(sql.SNAPSHOT)
        assert unnumbered, "a horizon that has our own id as past would swallow the rows that we rewrite"

    def find(self, refusal: str, *, dry_run: bool) -> Adoption:
        """Note every row that is not published, and return what is to be done."""
        self._fresh, seq_high, saved, saved_at, known = self._row(sql.POSITIONS)
        self._run(sql.UNPUBLISHED)
        self._run(sql.INDEXED)
        if self._fresh:
            self._run(sql.NEVER_PUBLISHED, horizon=self._horizon)
        else:
            self._find_unpublished({"seq_high": seq_high if known else None, "saved_at": saved_at})
        self._run(sql.ANALYZED)
        unpublished, lost, anew, anew_and_lost, holds, drawn, highest = self._row(sql.COUNTS)
        if anew and (anew_and_lost or drawn < highest):
            self._renumber = self._run(sql.TO_RENUMBER).fetchall()
        return Adoption(
            refusal=refusal, saved=saved, here=self._here, horizon=_FIRST if self._fresh else self._horizon,
            unpublished=unpublished, lost=lost, holds=0 if self._fresh else holds, renumbered=len(self._renumber),
            published_rewritten=0 if self._fresh else self._row(sql.STRANGE, horizon=self._horizon)[0],
            sequence=max(drawn, highest), dry_run=dry_run,
        )  # fmt: skip

    def _find_unpublished(self, bounds: dict[str, object]) -> None:
        self._run(sql.DRAWN_LATER, **bounds)
        self._run(sql.WRITTEN_LATER, **bounds)
        self._run(sql.NOT_REACHED)
        self._run(sql.HELD)
        self._find_held_partitions()

    def _find_held_partitions(self) -> None:
        """Note the rows of held partitions: the database can't compute a key's partition."""
        found = {
            (part, place, seq)
            for part, place, seq, key, partition, partitions in self._run(sql.HELD_PARTITIONS)
            if partition_of(key.encode(), partitions) == partition
        }
        with self._connection.cursor() as cursor:
            cursor.executemany(sql.ADD, sorted(found))

    def rewrite(self, found: Adoption) -> None:
        """
        Rewrite transaction ids and positions.

        The table refuses changes; it is told otherwise inside this transaction alone. The right is locked here and not before:
        the lock draws a transaction id, and the horizon must not have that as past.
        """
        self._actor = self._allowed()
        self._run(sql.SET_SEQUENCE, to=found.sequence)
        self._run(sql.TRIGGER_OFF)
        if found.published_rewritten:
            self._run(sql.REWRITE_PUBLISHED, horizon=self._horizon)
        self._run(sql.REWRITE_UNPUBLISHED)
        with self._connection.cursor() as cursor:
            cursor.executemany(self._text(sql.RENUMBER), self._renumber)
        self._run(sql.TRIGGER_ON)
        if not self._fresh:
            self._run(sql.SET_HOLDS, horizon=found.horizon)
        self._run(sql.SET_POSITIONS, horizon=found.horizon, here=self._here)

    def record(self, found: Adoption, *, why: str | None) -> None:
        """Write the audit's row."""
        self._run(sql.RECORD, actor=self._actor, detail=json.dumps(found.as_dict()), why=why)

    def _allowed(self, *, hold: bool = True) -> str:
        doing = "adopt the outbox of another server"
        return allowed(self._connection, self._schema, self._person, Right.ADMINISTER, doing=doing, hold=hold)

    def _row(self, text: str, **values: object) -> tuple[Any, ...]:
        row = self._run(text, **values).fetchone()
        assert row is not None
        return row

    def _text(self, text: str) -> str:
        return text.replace("{schema}", self._schema).replace("{chunk}", str(STEP))

    def _run(self, text: str, **values: object) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.execute(self._text(text), values or None)
