"""What `packhorse relay status` reads."""

from collections.abc import Callable
from typing import Any

import psycopg

from packhorse.core.errors import DatabaseUnavailable, NotReady
from packhorse.relay import sql
from packhorse.relay.identity.judge import standing
from packhorse.relay.identity.look import Judge
from packhorse.relay.postgres.connection import Reach, connect, translated
from packhorse.relay.shards import no_row
from packhorse.relay.status import COUNTED, RelayStatus


def read_status(url: str, schema: str) -> RelayStatus:
    """Return how shard 0 stands; as `read_all`."""
    return read_all(url, schema)[0]


def read_all(
    url: str, schema: str, *, pause: Callable[[float], object] | None = None, sample: float = 1.0
) -> list[RelayStatus]:
    """
    Return how each shard of *schema* stands; with *pause*, called between two looks *sample* seconds apart, its rate too.

    Raises:
        NotReady: The tables are missing.
        DatabaseUnavailable: No connection, or no answer.
    """
    with connect(url, Reach()) as connection, translated(connection):
        first = None if pause is None else standing_rows(connection, schema)
        if pause is not None:
            pause(sample)
        return statuses(connection, schema, before=first)


def standing_rows(connection: psycopg.Connection[Any], schema: str) -> dict[int, tuple[Any, ...]]:
    """Return each shard's row as STATUS reads it; raises the driver's errors."""
    return {row[0]: row for row in connection.execute(sql.STATUS.format(schema=schema).encode())}


def statuses(
    connection: psycopg.Connection[Any], schema: str, *, counted: int = COUNTED, before: dict[int, tuple[Any, ...]] | None = None
) -> list[RelayStatus]:  # fmt: skip
    """
    Return how each shard of *schema* stands, in whatever transaction is open on *connection*.

    Waiting rows are counted up to *counted*; *before* is an earlier look, for rates.

    Raises:
        NotReady: The first shard has no row.
        psycopg.Error: What the database says.
    """
    rows = standing_rows(connection, schema)
    if 0 not in rows:
        raise NotReady(no_row(schema, 0))
    return [
        _shard(connection, schema, row, None if before is None else before.get(shard), len(rows), counted)
        for shard, row in rows.items()
    ]


def _shard(
    connection: psycopg.Connection[Any], schema: str, row: tuple[Any, ...], before: tuple[Any, ...] | None, shards: int, counted: int
) -> RelayStatus:  # fmt: skip
    (
        shard, epoch, owner, owned, lease_left, horizon, target, progress, published, saved_age, trouble, age, at, mode, cause,
        mode_age, moves, holds, oldest, people, wanted,
    ) = row  # fmt: skip
    mine = sql.MINE.format(shards=shards, shard=shard) if shards > 1 else ""
    position = {"horizon": horizon, "target": target, "progress": progress}
    lag = connection.execute(
        sql.LAG.format(schema=schema, count=counted, mine=mine).encode(), position
    ).fetchone()
    server, refusal = _server(connection, schema, shard)
    assert lag is not None
    seconds = 0.0 if before is None else at - before[12]
    return RelayStatus(
        shard=shard, owner=owner if owned else None, epoch=epoch, lease_left=lease_left, horizon=horizon, target=target,
        progress=progress, published=published, rate=None if before is None or seconds <= 0 else (published - before[8]) / seconds,
        saved_age=saved_age, lag_rows=lag[0], lag_seconds=lag[1], trouble=refusal or trouble, trouble_age=age, server=server,
        mode=mode, mode_cause=cause, mode_age=mode_age, moves=moves, holds=holds, oldest_hold=oldest, people=tuple(people),
        shards_wanted=wanted,
    )  # fmt: skip


def _server(connection: psycopg.Connection[Any], schema: str, shard: int) -> tuple[str, str | None]:
    """Return which server this is, and why a relay would not go on here."""
    try:
        facts, verdict = Judge(schema, shard).look(
            lambda text, values: connection.execute(text.encode(), values).fetchall()
        )
    except DatabaseUnavailable as standby:
        return str(standby), None
    return standing(facts), verdict.refusal
