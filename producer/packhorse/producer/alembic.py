"""Adapter to Alembic: run, print and inspect the migrations, over SQLAlchemy and psycopg."""

import contextlib
import io
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict

from packhorse.core.connecting import next_step
from packhorse.core.errors import DatabaseUnavailable, NotReady, SettingsError
from packhorse.core.redaction import secrets_of, without_secrets
from packhorse.producer.migrate import MigrationStatus
from packhorse.producer.partitions import Day, days_from

LOCK_CLASS = 1346454348
TRIES = 10

OLDEST_SERVER = 15
CONNECT_SECONDS = 10
DAY_NAME = re.compile(r"outbox_(\d{8})")

SERVER_VERSION = "SHOW server_version_num"
LOCK_SCHEMA = "SELECT pg_advisory_xact_lock(%s, hashtext(%s))"
SCHEMA_EXISTS = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)"
GIVE_WAY = "SET LOCAL lock_timeout = '1s'"
TODAY = "SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date"
ATTACHED = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = to_regclass(%s)"""
ANY_DEFAULT_ROW = 'SELECT EXISTS (SELECT FROM "{schema}".outbox_default)'


def run_migrations(url: str, schema: str) -> None:
    """
    Run what is pending, in one transaction, one caller at a time; make the database schema if it is missing.

    Gives way to whoever uses the tables after a second's wait for a lock, and tries again.
    """
    with _engine(url) as engine, _translated(schema, url):
        for tries_left in reversed(range(TRIES)):
            try:
                _run_once(engine, schema)
                return
            except sqlalchemy.exc.DBAPIError as error:
                if not tries_left or not isinstance(error.orig, pg.LockNotAvailable):
                    raise


def _run_once(engine: sqlalchemy.Engine, schema: str) -> None:
    with engine.begin() as connection:
        _check_server(int(connection.exec_driver_sql(SERVER_VERSION).scalar_one()))
        connection.exec_driver_sql(LOCK_SCHEMA, (LOCK_CLASS, schema))
        # asked first: CREATE SCHEMA IF NOT EXISTS wants the right to create one even where nothing is to do
        if not connection.exec_driver_sql(SCHEMA_EXISTS, (schema,)).scalar_one():
            connection.exec_driver_sql(f'CREATE SCHEMA "{schema}"')
        current = _current(connection, schema)
        connection.exec_driver_sql(GIVE_WAY)
        if current is None or current in _revisions(schema):
            command.upgrade(_config(schema, connection=connection), "head")


def _check_server(version: int) -> None:
    if (major := version // 10_000) < OLDEST_SERVER:
        raise NotReady(
            f"the server is Postgres {major}; {OLDEST_SERVER} or later is needed, nothing was changed"
        )


def make_partitions(url: str, schema: str, days_ahead: int) -> None:
    """Make the missing day partitions; a day whose rows already lie in the default partition is left there."""
    with _translated(schema, url), _connected(url) as connection:
        today: date = _one(connection, TODAY)
        made = _attached(connection, schema)
        missing = [day for day in days_from(today, days_ahead) if day.name not in made]
        connection.commit()
        # one by one where somebody may be writing, so that no lock is held for long
        pieces = [[day] for day in missing] if len(made) > 1 else [missing]
        for piece in pieces:
            _make_giving_way(connection, schema, piece)


def _make_giving_way(connection: psycopg.Connection[Any], schema: str, days: Sequence[Day]) -> None:
    for tries_left in reversed(range(TRIES)):
        try:
            with connection.transaction():
                _make(connection, schema, days)
            return
        except pg.CheckViolation:
            return
        except pg.LockNotAvailable:
            if not tries_left:
                raise


def _make(connection: psycopg.Connection[Any], schema: str, days: Sequence[Day]) -> None:
    connection.execute(LOCK_SCHEMA, (LOCK_CLASS, schema))
    connection.execute(GIVE_WAY)
    made = _attached(connection, schema)
    for day in days:
        if day.name not in made:
            for statement in day.statements(schema):
                connection.execute(statement.encode())


def _attached(connection: psycopg.Connection[Any], schema: str) -> set[str]:
    return {row[0] for row in connection.execute(ATTACHED, (f'"{schema}".outbox',))}


def read_status(url: str, schema: str) -> MigrationStatus:
    """Return how the tables stand; changes nothing."""
    revisions = _revisions(schema)
    with _engine(url) as engine, _translated(schema, url), engine.connect() as connection:
        current = _current(connection, schema)
        names = [row[0] for row in connection.exec_driver_sql(ATTACHED, (f'"{schema}".outbox',))]
        default_rows = "outbox_default" in names and bool(
            connection.exec_driver_sql(ANY_DEFAULT_ROW.format(schema=schema)).scalar_one()
        )
    newer = current is not None and current not in revisions
    known = revisions.index(current) + 1 if current is not None and not newer else 0
    days = sorted(match[1] for name in names if (match := DAY_NAME.fullmatch(name)))
    return MigrationStatus(
        schema=schema,
        current=current,
        head=revisions[-1],
        pending=() if newer else tuple(revisions[known:]),
        newer=newer,
        partitions_until=datetime.strptime(days[-1], "%Y%m%d").replace(tzinfo=UTC).date() if days else None,
        default_rows=default_rows,
    )


def _revisions(schema: str) -> list[str]:
    script = ScriptDirectory.from_config(_config(schema))
    return [revision.revision for revision in script.walk_revisions()][::-1]


def _current(connection: sqlalchemy.Connection, schema: str) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table_schema": schema})
    if len(heads := context.get_current_heads()) > 1:
        raise NotReady(
            f"{schema}.alembic_version names {', '.join(sorted(heads))}; one migration is the last: it was written by hand, "
            "or shared with another application; give Packhorse a database schema of its own"
        )
    return heads[0] if heads else None


def migrations_as_sql(schema: str) -> str:
    """Return the statements of all migrations, version table included; asks no database."""
    output = io.StringIO()
    command.upgrade(_config(schema, output=output), "head", sql=True)
    return output.getvalue()


def _config(schema: str, **attributes: object) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes.update(schema=schema, **attributes)
    return config


@contextlib.contextmanager
def _engine(url: str) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=lambda: _connected(url), poolclass=sqlalchemy.NullPool
    )
    try:
        yield engine
    finally:
        engine.dispose()


def _connected(url: str) -> psycopg.Connection[Any]:
    # nothing is prepared by name: a pooler that lends servers by the transaction would lose it
    given = conninfo_to_dict(url)
    return psycopg.connect(
        url, prepare_threshold=None, connect_timeout=given.get("connect_timeout", CONNECT_SECONDS)
    )


@contextlib.contextmanager
def _translated(schema: str, url: str) -> Iterator[None]:
    try:
        yield
    except (psycopg.Error, sqlalchemy.exc.DBAPIError) as error:
        cause = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
        said = without_secrets(str(cause).strip().splitlines()[0], secrets_of("PACKHORSE_DATABASE_URL", url))
        if isinstance(cause, pg.InsufficientPrivilege):
            raise NotReady(
                f"database schema {schema}: {said}; run `packhorse migrate up` as a role that may create there, or let "
                "`packhorse migrate sql` print the statements for somebody who may"
            ) from error
        if isinstance(cause, pg.LockNotAvailable):
            raise DatabaseUnavailable(
                f"database schema {schema}: others held the tables through {TRIES} tries of a second each; try again"
            ) from error
        if isinstance(cause, pg.DuplicateTable | pg.DuplicateFunction | pg.DuplicateObject):
            raise NotReady(
                f"database schema {schema}: {said}, and {schema}.alembic_version does not say by which migration: the schema "
                "was filled by hand or restored in part; restore that table too, or choose another database schema"
            ) from error
        # no cause below: without a connection the driver may quote a piece of the password
        if isinstance(cause, psycopg.OperationalError):
            raise DatabaseUnavailable(f"database: {said}; {next_step(str(cause))}") from None
        if isinstance(cause, psycopg.ProgrammingError) and cause.sqlstate is None:
            raise SettingsError(
                f"PACKHORSE_DATABASE_URL is no connection string: {said}; it looks like "
                "postgresql://user@host:5432/database, with special characters percent-encoded"
            ) from None
        if isinstance(cause, psycopg.Error) and cause.sqlstate is not None:
            raise NotReady(f"database schema {schema}: {said} (SQLSTATE {cause.sqlstate})") from error
        raise


def _one(connection: psycopg.Connection[Any], statement: str) -> Any:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]
