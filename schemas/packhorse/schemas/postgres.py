"""The table of schema ids in the application's database, as the command reads and fills it."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import errors, sql

from packhorse.core.connecting import next_step
from packhorse.core.errors import DatabaseUnavailable, NotReady, SchemaError, SettingsError
from packhorse.core.redaction import without_secrets
from packhorse.schemas.register import Row
from packhorse.schemas.sql import LIMIT_STATEMENT, READ_VERSIONS, WRITE_VERSION
from packhorse.schemas.systems import DatabaseSettings

_CONNECT_SECONDS = 10
_STATEMENT_MILLISECONDS = 30_000


class SchemaTable:
    """
    Read and fill the table `schema_version`; each write is a transaction of its own.

    Raises:
        DatabaseUnavailable: The database does not answer.
    """

    def __init__(self, settings: DatabaseSettings) -> None:
        self._schema = settings.database_schema
        with _translated(self._schema), _address():
            self._connection = psycopg.connect(
                settings.database_url.get_secret_value(),
                autocommit=True,
                prepare_threshold=None,  # a pooler that lends servers by the transaction would lose what is prepared
                connect_timeout=_CONNECT_SECONDS,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def rows(self) -> dict[tuple[str, int], Row]:
        """
        Return what the table holds, by subject and version.

        Raises:
            NotReady: The table is missing, or may not be read.
            DatabaseUnavailable: The database does not answer.
        """
        with _translated(self._schema):
            found = self._bounded(READ_VERSIONS).fetchall()
        return {
            (subject, version): Row(fingerprint=fingerprint, schema_id=schema_id)
            for subject, version, fingerprint, schema_id in found
        }

    def write(self, subject: str, version: int, row: Row, text: str) -> None:
        """
        Add the version, or change the id of one that is there; it is committed when this returns.

        Raises:
            SchemaError: The version is there with another fingerprint.
            NotReady: The table is missing, or may not be written.
            DatabaseUnavailable: The database does not answer; the row may be there, and the call may be repeated.
        """
        values = {
            "subject": subject,
            "version": version,
            "fingerprint": row.fingerprint,
            "schema_id": row.schema_id,
            "schema": text,
        }
        with _translated(self._schema):
            written = self._bounded(WRITE_VERSION, values).fetchone()
        if written is None:
            raise SchemaError(f"{subject} v{version} was registered with another text; make a new version")

    def _bounded(self, text: str, values: dict[str, Any] | None = None) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run one statement; its time-out stands in the same transaction, since a pooler refuses it at the start of a session."""
        with self._connection.transaction():
            self._connection.execute(LIMIT_STATEMENT, {"milliseconds": str(_STATEMENT_MILLISECONDS)})
            return self._connection.execute(self._query(text), values)

    def _query(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(schema=sql.Identifier(self._schema))


@contextmanager
def _translated(schema: str) -> Iterator[None]:
    try:
        yield
    except (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn) as error:
        raise NotReady(
            f"table {schema}.schema_version is missing or too old in this database; run `packhorse migrate up`"
        ) from error
    except errors.InsufficientPrivilege as error:
        raise NotReady(
            f"no right on {schema}.schema_version: {_told(error)}; grant SELECT, INSERT and UPDATE"
        ) from error
    except psycopg.Error as error:
        raise DatabaseUnavailable(
            f"the database did not answer: {_told(error)}; {next_step(str(error))}"
        ) from error


@contextmanager
def _address() -> Iterator[None]:
    try:
        yield
    except psycopg.ProgrammingError as error:
        raise SettingsError(f"PACKHORSE_DATABASE_URL is no address of a database: {_told(error)}") from error


def _told(error: psycopg.Error) -> str:
    return without_secrets(str(error).strip().partition("\n")[0])
