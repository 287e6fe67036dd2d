"""What the relay's statements read: never published history, never the rows of a transaction that stays open."""

from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest
from tests.support.pgbouncer import Pooler
from tests.support.relay import insert

from packhorse.relay.deciding.commands import Save
from packhorse.relay.model import Position
from packhorse.relay.postgres.outbox import PostgresOutbox

HISTORY = 60_000
TOKEN = UUID(int=7)
MANY = """
INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload, created_at)
SELECT gen_random_uuid(), 'orders', 'k' || n %% 50, 't.T', '1', decode(repeat('5a', 200), 'hex'),
    (clock_timestamp() AT TIME ZONE 'UTC') + (n %% 6) * interval '1 day'
  FROM generate_series(1, %s) AS n
"""


class Reads:
    """Blocks that the statements of one relay touched, as the server counts them."""

    def __init__(self, database: str, relay_url: str) -> None:
        self.outbox = PostgresOutbox(relay_url, "packhorse", batch_rows=500)
        self.connection = psycopg.connect(database, autocommit=True)
        owned = self.outbox.own(TOKEN, "plans", 600.0)
        assert owned is not None
        self.position = self.saved = owned.position

    def blocks(self) -> int:
        row = self.connection.execute(
            "SELECT sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)"
            " FROM pg_statio_user_tables WHERE schemaname = 'packhorse' AND relname LIKE 'outbox%'"
        ).fetchone()
        assert row is not None
        return int(row[0])

    def flushed(self) -> int:
        """Return the blocks once the relay's own connection, or both of the pooler's, have told their counters."""
        connection = self.outbox._held()
        for _ in range(2):
            connection.execute("SELECT pg_stat_force_next_flush()")
        return self.blocks()

    def of_cycle(self) -> tuple[int, int]:
        """Walk one cycle; return the rows it brought and the blocks it touched."""
        before, rows = self.flushed(), 0
        while True:
            batch = self.outbox.fetch(self.position, 500)
            rows += len(batch.rows)
            self.position = batch.end(len(batch.rows))
            if batch.complete:
                return rows, self.flushed() - before


@pytest.fixture(params=["direct", "pooled"])
def reads(request: pytest.FixtureRequest, database: str) -> Iterator[Reads]:
    """Publish a history over several partitions, then begin to count; through a pooler plans must be as good."""
    with psycopg.connect(database, autocommit=True) as connection:
        for _ in range(20):
            connection.execute(MANY, (HISTORY // 20,))
        connection.execute("UPDATE packhorse.relay SET horizon = pg_current_snapshot()")
        connection.execute("VACUUM ANALYZE packhorse.outbox")
    relay_url = database
    if request.param == "pooled":
        pooler: Pooler = request.getfixturevalue("pooler")
        pooler.lend_both(database)
        relay_url = pooler.url(database)
    reads = Reads(database, relay_url)
    for _ in range(9):
        reads.outbox.fetch(reads.position, 500)  # the statement is prepared at its sixth use
    yield reads
    reads.connection.close()
    reads.outbox.close()


def test_an_idle_poll_reads_a_block_or_two_of_each_index(reads: Reads) -> None:
    rows, blocks = reads.of_cycle()
    assert rows == 0
    assert blocks < 100


@pytest.mark.case("R-03")
def test_a_transaction_with_many_rows_is_not_read_again_at_each_poll(reads: Reads, database: str) -> None:
    """Fails when running transactions are probed, or when rows from the horizon's xmax on have no upper bound."""
    with psycopg.connect(database) as long, psycopg.connect(database) as short:
        long.execute(MANY, (20_000,))
        for _ in range(2):
            reads.of_cycle()  # a server that was idle may have to plan again, and looks at the ends of indexes then
        for _ in range(3):
            rows, blocks = reads.of_cycle()
            assert (rows, blocks < 150) == (0, True), (
                "nobody else has written since: its transaction id is the newest"
            )
        for _ in range(3):
            insert(short, "k")
            short.commit()
            assert reads.of_cycle()[0] == 1
            insert(short, "k")
            short.commit()
            rows, blocks = reads.of_cycle()
            assert rows == 1
            assert blocks < 150
        long.commit()
        rows, blocks = reads.of_cycle()
        assert rows == 20_000
        assert blocks < 3 * 20_000


@pytest.mark.case("R-03")
def test_an_early_transaction_that_commits_late_does_not_read_the_history_since(
    reads: Reads, database: str
) -> None:
    """Fails when a large cycle walks the index on seq from its lowest row: through everything published meanwhile."""
    with psycopg.connect(database) as early, psycopg.connect(database, autocommit=True) as short:
        insert(early, "k")
        short.execute(MANY, (30_000,))
        reads.of_cycle()
        early.execute(MANY, (2_000,))
        early.commit()
        rows, blocks = reads.of_cycle()
        assert rows == 2_001
        assert blocks < 10 * 2_001


def test_a_backlog_is_read_once(reads: Reads, database: str) -> None:
    """Fails when each batch sorts or passes over the whole backlog: blocks would grow with its square."""
    with psycopg.connect(database, autocommit=True) as connection:
        for _ in range(10):
            connection.execute(MANY, (2_000,))
    rows, blocks = reads.of_cycle()
    assert rows == 20_000
    assert blocks < 5 * 20_000


def test_a_large_cycle_begins_behind_the_history(reads: Reads, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(MANY, (1_000,))
    low = HISTORY
    rows, _ = reads.of_cycle()
    assert rows == 1_000
    assert reads.outbox._cycle is not None
    assert reads.outbox._cycle.low > low
    assert reads.position == Position(horizon=reads.position.horizon)


@pytest.mark.case("R-18")
def test_somebody_s_old_snapshot_slows_no_poll_and_no_row_is_dead(reads: Reads, database: str) -> None:
    """Fails when published rows are marked, moved or deleted: each leaves a dead row that the snapshot keeps."""
    table = "SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE relname LIKE 'outbox%'"
    with psycopg.connect(database) as old, psycopg.connect(database) as writer:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT pg_current_snapshot()")
        blocks: list[int] = []
        for _ in range(60):
            for _ in range(3):
                insert(writer, "k")
                writer.commit()
            rows, touched = reads.of_cycle()
            assert rows == 3
            assert reads.outbox.save(TOKEN, Save(reads.saved, reads.position, rows))
            reads.saved = reads.position
            blocks.append(touched)
        assert sorted(blocks[-20:])[10] <= sorted(blocks[:20])[10] + 20
        reads.connection.execute("SELECT pg_stat_force_next_flush()")
        assert reads.connection.execute(table).fetchone() == (0,)
        assert old.execute("SELECT count(*) FROM packhorse.outbox").fetchone() is not None
