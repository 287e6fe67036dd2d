"""The doctor's look at the database: one short connection, every question bounded."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row, tuple_row
from psycopg.sql import SQL, Identifier

from packhorse.console.connecting.postgres import connected, translated
from packhorse.console.doctor import sql
from packhorse.console.doctor.findings import Finding, failed, ok
from packhorse.console.doctor.judge_database import (
    GroupState,
    Server,
    Tables,
    judge_groups,
    judge_server,
    judge_tables,
)
from packhorse.console.doctor.judge_identity import judge_identity
from packhorse.console.doctor.judge_inbox import InboxState, judge_inbox
from packhorse.console.doctor.judge_jobs import JobsState, judge_jobs
from packhorse.console.doctor.judge_processors import Standing, judge_processors
from packhorse.console.doctor.judge_relay import Relay, Slot, judge_relay, judge_slots
from packhorse.console.doctor.judge_retention import Retention, judge_retention
from packhorse.console.doctor.judge_runs import (
    SOON,
    Expiring,
    RunState,
    Upkeep,
    judge_expiring,
    judge_runs,
    judge_upkeep,
)
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.errors import PackhorseError
from packhorse.producer import migrate
from packhorse.producer.sql import TABLES
from packhorse.relay.cdc.stream import slot_name
from packhorse.relay.identity.look import Judge


class DatabaseCheck:
    """
    Look at one database.

    Args:
        url: libpq URL; may hold a password, which is never repeated.
        schema: Database schema of Packhorse's tables.
        timeout: Seconds for the connection and for each question.
    """

    def __init__(self, url: str, *, schema: str, timeout: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._url = url
        self._schema = schema
        self._timeout = timeout
        self._clock = clock

    def findings(self) -> Sequence[Finding]:
        """
        Return what there is to say about server, tables, relay and groups.

        Raises:
            SettingsError: The URL is no connection string.
            DatabaseUnavailable: The database does not answer.
        """
        with self._opened() as connection:
            where = f"{connection.info.host}:{connection.info.port}/{connection.info.dbname}"
            found = [ok("database", f"{where} answers, as role {connection.info.user}")]
            found += judge_server(self._server(connection))
            tables = self._tables(connection)
            found += judge_tables(tables)
            if tables.current is not None:
                looks = (
                    ("relay", self._relay),
                    ("slots", self._slots),
                    ("horizon", self._identity),
                    ("retention", self._retention),
                    ("inbox", self._inbox),
                    ("jobs", self._jobs),
                    ("groups", self._groups),
                    ("processors", self._processors),
                    ("runs", self._runs),
                    ("upkeep", self._upkeep),
                    ("operators", self._operators),
                )
                for name, look in looks:
                    found += self._guarded(name, look, connection)
        return found

    def topics(self) -> tuple[list[str], list[tuple[str, str, int]]]:
        """
        Return the topics of registered schemas, and the groups with the topics and partitions that they read.

        Raises:
            NotReady: A table or right is missing.
            DatabaseUnavailable: The database does not answer.
        """
        with self._opened() as connection:
            sources = [row["topic"] for row in self._all(connection, sql.SOURCES)]
            rows = self._all(connection, sql.WATERMARKS)
        return sources, [(row["group"], row["topic"], row["partitions"]) for row in rows]

    def schema_ids(self) -> dict[tuple[str, int], tuple[str, int]]:
        """
        Return fingerprint and id of each registered subject and version.

        Raises:
            NotReady: A table or right is missing.
            DatabaseUnavailable: The database does not answer.
        """
        with self._opened() as connection:
            rows = self._all(connection, sql.SCHEMA_IDS)
        return {(row["subject"], row["version"]): (row["fingerprint"], row["schema_id"]) for row in rows}

    @contextmanager
    def _opened(self) -> Iterator[psycopg.Connection[Any]]:
        with connected(self._url, timeout=self._timeout) as connection:
            where = f"{connection.info.host}:{connection.info.port}"
            with translated(where, self._schema):
                connection.execute(
                    "SELECT set_config('statement_timeout', %s, false)", [f"{int(self._timeout * 1000)}ms"]
                )
                yield connection

    def _guarded(self, name: str, look: Any, connection: psycopg.Connection[Any]) -> Sequence[Finding]:
        try:
            with translated(f"{connection.info.host}:{connection.info.port}", self._schema):
                return list(look(connection))
        except PackhorseError as error:
            return [failed(name, str(error), cause="see there", next_step="packhorse migrate status")]

    def _server(self, connection: psycopg.Connection[Any]) -> Server:
        row = self._all(connection, sql.SERVER)[0]
        before = self._clock.now()
        theirs = self._all(connection, sql.CLOCK)[0]["now"]
        after = self._clock.now()
        half = (after - before) / 2
        skew = (theirs - (before + half)).total_seconds()
        return Server(**row, skew=skew, uncertainty=half.total_seconds())

    def _tables(self, connection: psycopg.Connection[Any]) -> Tables:
        status = migrate.status(self._url, self._schema)
        known: dict[str, Any] = {
            "current": status.current,
            "head": status.head,
            "pending": status.pending,
            "partitions_until": status.partitions_until,
            "default_rows": status.default_rows,
        }
        if status.current is None:
            return Tables(**known, today=self._clock.now().date())
        values = {"outbox": f'"{self._schema}".outbox', "schema": self._schema, "tables": list(TABLES)}
        outbox = self._all(connection, sql.OUTBOX, values)[0]
        for name in ("without_trigger", "missing"):
            outbox[name] = tuple(outbox[name])
        return Tables(**known, **outbox)

    def _relay(self, connection: psycopg.Connection[Any]) -> Iterator[Finding]:
        rows = self._all(connection, sql.RELAY)
        if not rows:
            yield from judge_relay(None)
        for row in rows:
            yield from judge_relay(Relay(**row))

    def _slots(self, connection: psycopg.Connection[Any]) -> Iterator[Finding]:
        shards = [row["shard"] for row in self._all(connection, sql.SHARDS)]
        rows = self._all(connection, sql.SLOTS)
        names = {
            slot_name(self._schema, shard, database=row["database"]) for shard in shards for row in rows[:1]
        }
        for row in rows:
            del row["database"]
        return judge_slots([Slot(**row, ours=row["name"] in names) for row in rows])

    def _identity(self, connection: psycopg.Connection[Any]) -> Iterator[Finding]:
        with connection.cursor(row_factory=tuple_row) as cursor:
            judge = Judge(self._schema, 0)
            return judge_identity(*judge.look(lambda text, values: cursor.execute(text, values).fetchall()))

    def _retention(self, connection: psycopg.Connection[Any]) -> Iterator[Finding]:
        rows = self._all(connection, sql.RETENTION)
        if rows:
            rows[0]["overdue"] = tuple(rows[0]["overdue"])
        return judge_retention(Retention(**rows[0]) if rows else None)

    def _inbox(self, connection: psycopg.Connection[Any]) -> Iterator[Finding]:
        return judge_inbox(InboxState(**self._all(connection, sql.INBOX)[0]))

    def _jobs(self, connection: psycopg.Connection[Any]) -> Iterator[Finding]:
        row = self._all(connection, sql.JOBS)[0]
        return judge_jobs(JobsState(**{**row, "undeclared": tuple(row["undeclared"])}))

    def _groups(self, connection: psycopg.Connection[Any]) -> Iterator[Finding]:
        return judge_groups([GroupState(**row) for row in self._all(connection, sql.GROUPS)])

    def _processors(self, connection: psycopg.Connection[Any]) -> Iterator[Finding]:
        return judge_processors([Standing(**row) for row in self._all(connection, sql.PROCESSORS)])

    def _runs(self, connection: psycopg.Connection[Any]) -> Iterator[Finding]:
        return judge_runs([RunState(**row) for row in self._all(connection, sql.RUNS)])

    def _upkeep(self, connection: psycopg.Connection[Any]) -> Iterator[Finding]:
        return judge_upkeep(Upkeep(**self._all(connection, sql.UPKEEP)[0]))

    def _operators(self, connection: psycopg.Connection[Any]) -> Iterator[Finding]:
        return judge_expiring(
            [Expiring(**row) for row in self._all(connection, sql.EXPIRING, {"soon": SOON})]
        )

    def _all(
        self, connection: psycopg.Connection[Any], statement: str, values: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        query = SQL(statement).format(schema=Identifier(self._schema))
        with connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, values).fetchall()
