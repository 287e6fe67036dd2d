"""What `packhorse relay status` reads."""

from collections.abc import Callable

from packhorse.core.errors import NotReady
from packhorse.relay import sql
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
        trouble=trouble,
        trouble_age=age,
    )
