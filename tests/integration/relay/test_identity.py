"""
The database is dumped and loaded elsewhere, upgraded, promoted, put back: real servers, real relays, a real topic.

The servers are made by the programs of the `dev` extra: pg_dump, pg_upgrade and pg_basebackup are the real ones.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.support.cli import Ran, packhorse, packhorse_process
from tests.support.clusters import Cluster, NewCluster, clusters
from tests.support.databases import make_tables
from tests.support.proxy import Proxy
from tests.support.relay import RelayProcess, Relays, insert, relays
from tests.support.topics import records, wait_for
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import DatabaseUnavailable
from packhorse.local.postgres import packaged_binaries
from packhorse.local.settings import Endpoints
from packhorse.relay.postgres.connection import Reach
from packhorse.relay.postgres.outbox import PostgresOutbox


@pytest.fixture(scope="module")
def grown() -> Iterator[Cluster]:
    """A stopped server with the tables, whose transaction ids stand well above those of a new one."""
    with clusters() as new:
        cluster = new()
        make_tables(cluster.url())
        burn(cluster, 3_000)
        cluster.stop()
        yield cluster


@pytest.fixture
def servers() -> Iterator[NewCluster]:
    with clusters() as new:
        yield new


@pytest.fixture
def primary(servers: NewCluster, grown: Cluster) -> Cluster:
    """A server that has published nothing yet."""
    return servers(clone_of=grown)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture
def group(tmp_path: Path, proxy: Proxy, stack: Endpoints, topic_prefix: str, topic: str) -> Iterator[Relays]:
    """Relays that reach whichever server the proxy leads to."""
    assert topic.startswith(topic_prefix)
    url = f"postgresql://postgres@{proxy.address}/postgres"
    with relays(tmp_path, database=url, bootstrap=stack.kafka_bootstrap, namespace=topic_prefix) as made:
        yield made


def lead_to(proxy: Proxy, cluster: Cluster) -> None:
    proxy.target = (proxy.host, cluster.port)


def burn(cluster: Cluster, ids: int) -> None:
    """Let the server give out so many transaction ids."""
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute(
            "DO $$ BEGIN FOR n IN 1.."
            + str(ids)
            + " LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"
        )


def write(cluster: Cluster, count: int) -> list[str]:
    """Commit so many rows, each alone, of one key."""
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        return [insert(connection, "k") for _ in range(count)]


def published(cluster: Cluster) -> None:
    """Wait until the table says that nothing waits."""

    def all_saved() -> bool:
        with psycopg.connect(cluster.url()) as connection:
            row = connection.execute(
                "SELECT bool_and(pg_visible_in_snapshot(o.xid, r.horizon)) FROM packhorse.outbox o, packhorse.relay r"
            ).fetchone()
        return row is not None and bool(row[0])

    eventually(all_saved, what="the saved horizon has every row")


def refused(group: Relays) -> str:
    """Start a relay that is not ready, and return what it said."""
    done = packhorse_process("relay", "run", given="", timeout=60, **group.environment)
    assert done.code == 3, done.err
    return done.err


def command(group: Relays, *arguments: str) -> Ran:
    return packhorse("relay", *arguments, **group.environment)


def arrivals(stack: Endpoints, topic: str) -> list[str]:
    """Return the ids of the key's records in the topic's order, repeats and all."""
    return [record.id for record in records(stack.kafka_bootstrap, topic)]


def told(process: RelayProcess, kind: str) -> bool:
    return any(event.get("kind") == kind for event in process.events())


@pytest.mark.case("R-08")
def test_a_dump_that_is_loaded_where_ids_start_lower_is_named_and_adopted_without_loss_or_repeat(
    servers: NewCluster, primary: Cluster, proxy: Proxy, group: Relays, stack: Endpoints, topic: str
) -> None:
    """
    Fails when the relay starts on the new server: what is written there counts as published.

    First the horizon is out of reach and that alone shows it; then the new server's ids have overtaken it, and only the rows
    show it: fails then without the search for rows drawn after the last save (`judge` without `swallowed`).
    """
    lead_to(proxy, primary)
    before = write(primary, 5)
    process = group.start()
    wait_for(stack.kafka_bootstrap, topic, 5)
    published(primary)
    assert process.stop() == 0
    waited = write(primary, 2)
    primary.run("pg_dump", "-Fc", "-f", primary.folder / "dump", "-d", primary.url())
    other = servers()
    other.run("pg_restore", "-d", other.url(), primary.folder / "dump")
    lead_to(proxy, other)
    assert "is ahead of this database" in refused(group)
    after = write(other, 3)
    assert not command(group, "status", "--sample", "0", "--json").json()["healthy"]
    burn(other, 6_000)
    said = refused(group)
    assert "3 rows" in said
    assert after[0] in said
    assert "packhorse relay adopt" in said
    counted = command(group, "adopt", "--dry-run", "--json").json()
    assert (counted["unpublished"], counted["lost"], counted["published_rewritten"]) == (5, 3, 0)
    assert command(group, "adopt", "--yes", "--why", "moved").code == 0
    group.start()
    wait_for(stack.kafka_bootstrap, topic, 10)
    published(other)
    assert arrivals(stack, topic) == before + waited + after
    assert command(group, "verify", "--since", "2020-01-01").code == 0


@pytest.mark.case("R-08")
def test_an_upgrade_of_the_server_raises_no_alarm(
    servers: NewCluster, primary: Cluster, proxy: Proxy, group: Relays, stack: Endpoints, topic: str
) -> None:
    """Fails when another system identifier alone counts as another database."""
    lead_to(proxy, primary)
    before = write(primary, 5)
    process = group.start()
    wait_for(stack.kafka_bootstrap, topic, 5)
    published(primary)
    assert process.stop() == 0
    waited = write(primary, 2)
    primary.stop()
    upgraded = servers(start=False)
    programs = packaged_binaries()
    upgraded.run(
        "pg_upgrade", "--no-sync", "-b", programs, "-B", programs, "-d", primary.data, "-D", upgraded.data,
        "-U", "postgres", "-p", primary.port, "-P", upgraded.port,
    )  # fmt: skip
    upgraded.start()
    lead_to(proxy, upgraded)
    after = write(upgraded, 2)
    process = group.start()
    wait_for(stack.kafka_bootstrap, topic, 9)
    published(upgraded)
    assert arrivals(stack, topic) == before + waited + after
    assert told(process, "server")
    assert not any(event["level"] in {"WARNING", "ERROR"} for event in process.events())


@pytest.mark.case("R-08")
def test_a_standby_that_takes_over_without_the_last_rows_is_noticed_and_what_is_gone_is_listed(
    servers: NewCluster, primary: Cluster, proxy: Proxy, group: Relays, stack: Endpoints, topic: str
) -> None:
    """
    Fails when memory of the old server survives (rows whose ids were given out again are passed over), or when a new
    timeline goes unsaid.

    The standby is asynchronous and no longer receives when the last rows are written: they are on the topic, and gone. That is
    the one way a committed and published row can be taken back; P1 holds for what the database has.
    """
    standby = servers(standby_of=primary)
    lead_to(proxy, primary)
    process = group.start()
    kept = write(primary, 4)
    wait_for(stack.kafka_bootstrap, topic, 4)
    published(primary)
    cut_off(primary, standby)
    lost = write(primary, 3)
    wait_for(stack.kafka_bootstrap, topic, 7)
    published(primary)
    primary.stop("immediate")
    standby.promote()
    after = write(standby, 3)
    lead_to(proxy, standby)
    wait_for(stack.kafka_bootstrap, topic, 10)
    published(standby)
    eventually(lambda: told(process, "timeline"), what="the relay says that the timeline is another")
    assert list(dict.fromkeys(arrivals(stack, topic))) == kept + lost + after
    found = command(group, "verify", "--json")
    assert found.code == 1, found.err
    report = found.json()
    assert sorted(row["id"] for row in report["gone_list"]) == sorted(lost)
    assert (report["gone"], report["missing"], report["retired"]) == (3, 0, 0)
    status = command(group, "status", "--sample", "0").out
    assert "timeline 2" in status


@pytest.mark.case("R-19")
def test_a_row_that_a_synchronous_standby_has_not_is_not_sent(servers: NewCluster, primary: Cluster) -> None:
    """
    Fails when the primary's own disk is enough (`_FLUSHED` without a look at synchronous_standby_names): the writer waits for
    nobody, the row would be on its topic, and the standby that takes over has never had it.
    """
    standby = servers(standby_of=primary)
    with psycopg.connect(primary.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")
    outbox = PostgresOutbox(primary.url(), "packhorse", batch_rows=10, reach=Reach(answer=1.0))
    try:
        owned = outbox.own(SYSTEM_CHANCE.token(), "test", 60)
        assert owned is not None
        outbox.flush_log()
        cut_off(primary, standby)
        with psycopg.connect(primary.url()) as writer:
            writer.execute("SET LOCAL synchronous_commit = off")
            insert(writer, "k")
            writer.commit()
        batch = outbox.fetch(owned.position, 10)
        assert len(batch.rows) == 1
        until = batch.unflushed
        assert until is not None
        with psycopg.connect(primary.url(), autocommit=True) as connection:
            eventually(
                lambda: (
                    connection.execute("SELECT pg_current_wal_flush_lsn() >= %s::pg_lsn", (until,)).fetchone()
                    == (True,)
                ),
                what="the primary's own disk has the row",
            )
        assert not outbox.log_reached(until)
        with pytest.raises(DatabaseUnavailable):
            outbox.flush_log()
    finally:
        outbox.close()
    standby.promote()
    with psycopg.connect(standby.url()) as connection:
        assert connection.execute("SELECT count(*) FROM packhorse.outbox").fetchone() == (0,)


def cut_off(primary: Cluster, standby: Cluster) -> None:
    """Let the standby catch up, then receive nothing more."""
    with (
        psycopg.connect(primary.url(), autocommit=True) as there,
        psycopg.connect(standby.url(), autocommit=True) as here,
    ):
        row = there.execute("SELECT pg_current_wal_lsn()").fetchone()
        eventually(
            lambda: here.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", row).fetchone() == (True,),
            what="the standby has all",
        )
        here.execute("ALTER SYSTEM SET primary_conninfo = ''")
        here.execute("SELECT pg_reload_conf()")
        eventually(
            lambda: here.execute("SELECT count(*) FROM pg_stat_wal_receiver").fetchone() == (0,),
            what="the standby receives nothing",
        )


@pytest.mark.case("R-08")
def test_files_that_are_put_back_under_a_running_relay_are_noticed(
    servers: NewCluster, primary: Cluster, proxy: Proxy, group: Relays, stack: Endpoints, topic: str
) -> None:
    """Fails when only system and timeline are compared: a copy of stopped files has both as they were."""
    lead_to(proxy, primary)
    process = group.start()
    kept = write(primary, 3)
    wait_for(stack.kafka_bootstrap, topic, 3)
    published(primary)
    since = saved_at(primary)
    primary.stop()
    copy = servers(clone_of=primary, start=False)
    primary.start()
    lost = write(primary, 2)
    wait_for(stack.kafka_bootstrap, topic, 5)
    published(primary)
    primary.stop()
    copy.start()
    after = write(copy, 2)
    lead_to(proxy, copy)
    wait_for(stack.kafka_bootstrap, topic, 7)
    published(copy)
    eventually(lambda: told(process, "went_back"), what="the relay says that the database went back")
    assert list(dict.fromkeys(arrivals(stack, topic))) == kept + lost + after
    report = command(group, "verify", "--since", since, "--json").json()
    assert sorted(row["id"] for row in report["gone_list"]) == sorted(lost)


def saved_at(cluster: Cluster) -> str:
    with psycopg.connect(cluster.url()) as connection:
        row = connection.execute("SELECT saved_at FROM packhorse.relay").fetchone()
    assert row is not None
    return str(row[0].isoformat())


def test_the_comparison_names_what_counts_as_published_and_is_missing_and_counts_the_rest_apart(
    servers: NewCluster, primary: Cluster, proxy: Proxy, group: Relays, stack: Endpoints, topic: str
) -> None:
    """Fails when a row behind the horizon is taken for published without a look at the topic."""
    lead_to(proxy, primary)
    process = group.start()
    write(primary, 3)
    wait_for(stack.kafka_bootstrap, topic, 3)
    published(primary)
    assert process.stop() == 0
    skipped = write(primary, 2)
    with psycopg.connect(primary.url(), autocommit=True) as connection:
        discarded = insert(connection, "d")
        held = insert(connection, "h")
        connection.execute(
            "INSERT INTO packhorse.relay_discard (message_id, hold_id, aggregatetype, seq, actor) VALUES (%s, 1, 'orders', 6, 't')",
            (discarded,),
        )
        connection.execute(
            "INSERT INTO packhorse.relay_hold (shard, scope, aggregatetype, aggregateid, code, reason, heals, horizon)"
            " SELECT 0, 'key', 'orders', 'h', 'refused', 'a test', false, horizon FROM packhorse.relay"
        )
        connection.execute("UPDATE packhorse.relay SET horizon = pg_current_snapshot()")
        waiting = insert(connection, "k")
    found = command(group, "verify", "--since", "2020-01-01", "--json")
    assert found.code == 1, found.err
    report = found.json()
    assert [row["id"] for row in report["missing_list"]] == skipped
    assert report["rows"] == {
        "rows": 8, "published and there": 3, "waiting": 1, "missing": 2, "discarded": 1, "held": 1,
    }  # fmt: skip
    text = command(group, "verify", "--since", "2020-01-01").out
    assert skipped[0] in text
    assert "packhorse relay republish --topic" in text
    assert report["missing_ranges"][topic][1] - report["missing_ranges"][topic][0] == 1
    assert waiting not in text
    assert held not in text
