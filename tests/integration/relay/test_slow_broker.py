"""A network to the broker that is slow or silent must not keep anything open in the database."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.support.relay import Relays, insert, relays
from tests.support.stack import PrivateBroker
from tests.support.topics import first_arrivals, make_topic, wait_for
from tests.support.wait import eventually

from packhorse.relay.postgres.status import read_status

OPEN = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = 'packhorse-relay' AND backend_type = 'client backend'
   AND (state LIKE 'idle in transaction%' OR (backend_xmin IS NOT NULL AND state_change < clock_timestamp() - interval '200 ms'))
"""
LOCKS = """
SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
 WHERE a.datname = current_database() AND a.application_name = 'packhorse-relay' AND l.granted AND l.locktype IN ('relation', 'tuple')
   AND a.state = 'idle'
"""


@pytest.fixture
def group(tmp_path: Path, private_kafka: PrivateBroker, database: str, topic_prefix: str) -> Iterator[Relays]:
    """Provide relays that reach the broker through its proxy."""
    make_topic(private_kafka.direct_bootstrap, f"{topic_prefix}.orders")
    with relays(
        tmp_path, database=database, bootstrap=private_kafka.bootstrap, namespace=topic_prefix
    ) as made:
        yield made


@pytest.mark.case("R-17")
def test_while_rows_are_on_their_way_no_transaction_snapshot_or_lock_is_open(
    group: Relays, private_kafka: PrivateBroker, database: str, topic_prefix: str
) -> None:
    """Fails when rows are read or claimed in a transaction that ends only with the broker's answer."""
    bootstrap, topic = private_kafka.direct_bootstrap, f"{topic_prefix}.orders"
    relay = group.start()
    with psycopg.connect(database, autocommit=True) as connection:
        ids = [insert(connection, "k")]
        wait_for(bootstrap, topic, 1)
        private_kafka.proxy.freeze()
        ids += [insert(connection, "k") for _ in range(50)]
        eventually(
            lambda: "confirms nothing" in (read_status(database, "packhorse").trouble or ""),
            what="rows are on their way and nobody answers",
        )
        for _ in range(50):
            assert connection.execute(OPEN).fetchone() == (0,)
            assert connection.execute(LOCKS).fetchone() == (0,)
        private_kafka.proxy.resume()
        assert first_arrivals(wait_for(bootstrap, topic, 51)) == {b"k": ids}
        eventually(lambda: read_status(database, "packhorse").trouble is None, what="the trouble is over")
    assert relay.stop() == 0
