"""Which shard a key belongs to; the SQL's MINE says the same."""

from hashlib import sha256

MOST_SHARDS = 64


def shard_of(key: str | None, shards: int) -> int:
    """
    Return the shard, of *shards*, that rows with *key* belong to; rows without key go with the empty one.

    >>> shard_of("N14228", 1), shard_of("N14228", 4), shard_of(None, 4) == shard_of("", 4)
    (0, 2, True)
    """
    if shards == 1:
        return 0
    return int.from_bytes(sha256((key or "").encode()).digest()[:2], "big") % shards


def no_row(schema: str, shard: int) -> str:
    """Return what to say when the row of *shard* is gone."""
    return (
        f"{schema}.relay has no row for shard {shard}, so nothing says how far the outbox is published; restore the row from a "
        "backup, or ask before inserting one: a new horizon publishes all rows again"
    )
