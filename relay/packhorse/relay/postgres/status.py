"""What `packhorse relay status` reads."""

from collections.abc import Callable
from typing import Any

import psycopg

from packhorse.core.errors import DatabaseUnavailable, NotReady
from packhorse.relay import sql
from packhorse.relay.identity.judge import standing
from packhorse.relay.identity.look import Judge
from packhorse.relay.postgres.connection import Reach, connect, translated
from packhorse.relay.status import COUNTED, RelayStatus


def read_status(
    url: str, schema: str, *, pause: Callable[[float], object] | None = None, sample: float = 1.0
) -> RelayStatus:
    """
    Return how the relay of *schema* stands; with *pause*, called between two looks *sample* seconds apart, its rate too.

    Raises:
        NotReady: The tables are missing.
        DatabaseUnavailable: No connection, or no answer.
    """
    with connect(url, Reach()) as connection, translated(connection):
        status = sql.STATUS.format(schema=schema, shard=0)
        first = connection.execute(status).fetchone()
        if pause is not None:
            pause(sample)
        row = connection.execute(status).fetchone()
        if first is None or row is None:
            raise NotReady(f"{schema}.relay has no row for shard 0; run `packhorse migrate up`")
        epoch, owner, owned, lease_left, horizon, target, progress, published, saved_age, trouble, age, at = (
            row
        )
        position = {"horizon": horizon, "target": target, "progress": progress}
        lag = connection.execute(sql.LAG.format(schema=schema, count=COUNTED, mine=""), position).fetchone()
        server, refusal = _server(connection, schema)
    assert lag is not None
    seconds = at - first[-1]
    return RelayStatus(
        owner=owner if owned else None,
        epoch=epoch,
        lease_left=lease_left,
        horizon=horizon,
        target=target,
        progress=progress,
        published=published,
        rate=None if pause is None or seconds <= 0 else (published - first[7]) / seconds,
        saved_age=saved_age,
        lag_rows=lag[0],
        lag_seconds=lag[1],
        trouble=refusal or trouble,
        trouble_age=age,
        server=server,
    )


def _server(connection: psycopg.Connection[Any], schema: str) -> tuple[str, str | None]:
    """Return which server this is, and why a relay would not go on here."""
    try:
        facts, verdict = Judge(schema, 0).look(
            lambda text, values: connection.execute(text, values).fetchall()
        )
    except DatabaseUnavailable as standby:
        return str(standby), None
    return standing(facts), verdict.refusal
