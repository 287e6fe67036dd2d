"""The outbox's side of the comparison: the port `Ledger`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Self

import psycopg
from psycopg import errors as pg

from packhorse.core.errors import DatabaseUnavailable, NotReady
from packhorse.core.redaction import without_secrets
from packhorse.relay.verify import sql
from packhorse.relay.verify.model import Absent
from packhorse.relay.verify.ports import Seen, Start

_FETCH = 5_000


class PostgresLedger:
    """Be the port `Ledger`, over one connection and a temporary table that ends with it."""

    def __init__(self, url: str, schema: str) -> None:
        self._schema = schema
        self._horizons: tuple[str, ...] = ()
        with _translated():
            self._connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(
                url, connect_timeout=10, autocommit=True, application_name="packhorse-relay-verify"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def start(self) -> Start:
        """Return how the database stands; changes nothing."""
        incarnation, now, horizons, moved_at = self._row(sql.POSITIONS)
        if not horizons:
            raise NotReady(f"{self._schema}.relay has no row; run `packhorse migrate up`")
        return Start(incarnation=incarnation, now=now, horizons=tuple(horizons), moved_at=moved_at)

    def begin(self) -> Start:
        with _translated():
            self._row(sql.SESSION)
            self._connection.execute(sql.TABLE)
        start = self.start()
        self._horizons = start.horizons
        return start

    def subjects(self) -> list[str]:
        return [subject for (subject,) in self._rows(sql.SUBJECTS)]

    def kinds(self, since: datetime, until: datetime) -> list[str]:
        return [kind for (kind,) in self._rows(sql.KINDS, since=_naive(since), until=_naive(until))]

    def note(self, topics: Sequence[str], seen: Sequence[Seen]) -> None:
        numbers = {name: number for number, name in enumerate(topics)}
        with _translated(), self._connection.cursor().copy(sql.COPY) as copy:
            for one in seen:
                copy.write_row((one.id, numbers[one.topic], one.partition, one.offset, one.at))

    def messages(self) -> int:
        with _translated():
            self._connection.execute(sql.INDEXED)
            self._connection.execute(sql.ANALYZED)
        return int(self._row(sql.MESSAGES)[0])

    def outbox_since(self) -> datetime | None:
        found = self._row(sql.OUTBOX_SINCE)[0]
        return found if isinstance(found, datetime) else None

    def gone(self, topics: Sequence[str], since: datetime, until: datetime) -> Iterator[Seen]:
        for id_, topic, partition, offset, at in self._streamed(sql.GONE, since=since, until=until):
            yield Seen(topics[topic], partition, offset, at, id_)

    def counts(self, kinds: Sequence[str], since: datetime, until: datetime) -> tuple[int, int]:
        published, rows = self._row(sql.ROWS, **self._window(kinds, since, until))
        return published, rows

    def absent(self, kinds: Sequence[str], since: datetime, until: datetime) -> Iterator[Absent]:
        for *row, partitions in self._streamed(sql.ABSENT, **self._window(kinds, since, until)):
            pairs = tuple(
                (int(number), int(of)) for number, _, of in (text.partition("/") for text in partitions)
            )
            id_, seq, kind, key, created_at, held, discarded = row
            yield Absent(id_, seq, kind, key, created_at, held, discarded, pairs)

    def _window(self, kinds: Sequence[str], since: datetime, until: datetime) -> dict[str, object]:
        return {
            "kinds": list(kinds), "since": _naive(since), "until": _naive(until), "horizons": list(self._horizons),
        }  # fmt: skip

    def _text(self, text: str) -> str:
        return text.replace("{schema}", self._schema)

    def _rows(self, text: str, **values: object) -> list[tuple[Any, ...]]:
        with _translated():
            return self._connection.execute(self._text(text), values or None).fetchall()

    def _row(self, text: str, **values: object) -> tuple[Any, ...]:
        return self._rows(text, **values)[0]

    def _streamed(self, text: str, **values: object) -> Iterator[tuple[Any, ...]]:
        """Yield rows as they come, from one snapshot: there may be millions."""
        with (
            _translated(),
            self._connection.transaction(),
            self._connection.cursor("packhorse_verify") as cursor,
        ):
            cursor.itersize = _FETCH
            yield from cursor.execute(self._text(text), values)


def _naive(at: datetime) -> datetime:
    """Return *at* as created_at has it: UTC without zone."""
    offset = at.utcoffset()
    assert offset is not None
    return at.replace(tzinfo=None) - offset


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (pg.UndefinedTable, pg.UndefinedColumn, pg.InvalidSchemaName) as error:
        raise NotReady(f"{_first_line(error)}; run `packhorse migrate up`") from error
    except pg.InsufficientPrivilege as error:
        raise NotReady(
            f"{_first_line(error)}; the comparison needs SELECT on all tables and TEMPORARY on the database: "
            "`packhorse migrate sql --grants operator=ROLE`"
        ) from error
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"the comparison ended: {_first_line(error)}") from error


def _first_line(error: psycopg.Error) -> str:
    return without_secrets(str(error).strip().partition("\n")[0] or type(error).__name__)
