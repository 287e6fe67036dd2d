"""Waking by NOTIFY: rows leave between two polls, and within one of them when a wake-up is lost."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest
from tests.support.cli import packhorse
from tests.support.databases import unique_name
from tests.support.pgbouncer import Pooler
from tests.support.relay import RelayProcess, Relays, insert, relays
from tests.support.topics import wait_for
from tests.support.wait import eventually

from packhorse.core.errors import DatabaseUnavailable, NotReady
from packhorse.local.settings import Endpoints
from packhorse.relay.postgres import waking
from packhorse.relay.postgres.waking import PostgresWakes, switch

LISTENER = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'packhorse-relay-wake'"


@pytest.fixture
def owner(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def listener_of(owner: psycopg.Connection[Any], *, not_: int = 0) -> int:
    """Wait until a relay listens, with another session than *not_*; return its process."""

    def pid() -> int | None:
        row = owner.execute(LISTENER).fetchone()
        return None if row is None or row[0] == not_ else int(row[0])

    found = eventually(pid, what="a relay listens", timeout=20)
    assert found is not None
    return found


@pytest.mark.case("R-16")
def test_a_wake_up_sends_at_once_and_after_a_lost_connection_the_relay_listens_again(
    group: Relays, owner: psycopg.Connection[Any], database: str, stack: Endpoints, topic: str
) -> None:
    """
    Fails when nobody listens again, or the wake-up does not end the pause: polls are a minute apart here.

    What is committed while nobody listens leaves when listening begins again, not a minute later.
    """
    assert switch(database, "packhorse", on=True)
    process = group.start(listen="true", poll=60, idle_poll=60)
    pid = listener_of(owner)
    process.wait_for("this process owns the shard")
    ids = [insert(owner, "k")]
    assert [record.id for record in wait_for(stack.kafka_bootstrap, topic, 1)] == ids
    owner.execute("SELECT pg_terminate_backend(%s)", (pid,))
    ids.append(insert(owner, "k"))
    listener_of(owner, not_=pid)
    assert [record.id for record in wait_for(stack.kafka_bootstrap, topic, 2)] == ids
    assert process.said("wake-ups don't arrive")
    ids.append(insert(owner, "k"))
    assert [record.id for record in wait_for(stack.kafka_bootstrap, topic, 3)] == ids


@pytest.mark.case("R-16")
def test_a_row_whose_wake_up_is_lost_leaves_within_one_poll(
    group: Relays, owner: psycopg.Connection[Any], database: str, stack: Endpoints, topic: str
) -> None:
    """Fails when a relay that listens no longer polls."""
    process = group.start(listen="true", poll=0.5, idle_poll=0.5)
    process.wait_for("no commit wakes the relay")
    listener_of(owner)
    ids = [insert(owner, "k")]
    assert [record.id for record in wait_for(stack.kafka_bootstrap, topic, 1, timeout=10)] == ids


def test_writers_with_least_rights_wake_from_every_partition(
    owner: psycopg.Connection[Any], database: str
) -> None:
    """Fails when the trigger stands on partitions that exist alone, or fires once for each row."""
    assert packhorse("relay", "notify", "on", PACKHORSE_DATABASE_URL=database).code == 0
    assert "as before" in packhorse("relay", "notify", "on", PACKHORSE_DATABASE_URL=database).out
    wakes = PostgresWakes(database, "packhorse")
    assert wakes.check()
    owner.execute(
        "INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, created_at)"
        " SELECT gen_random_uuid(), 'orders', 'k', 't.T', '1', now() AT TIME ZONE 'UTC' + n * interval '1 day'"
        " FROM generate_series(0, 30) AS n"
    )
    assert wakes.wait(5.0)
    assert not wakes.wait(0.05), "one statement, one wake-up"
    assert packhorse("relay", "notify", "off", PACKHORSE_DATABASE_URL=database).code == 0
    insert(owner, "k")
    assert not wakes.wait(0.05)
    wakes.close()


QUEUED = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'object' AND query LIKE 'INSERT%'
"""
"""Commits that wait for the one lock under which the whole server's notifications are put in order."""


class Crowd:
    """Sixteen applications that commit outbox rows as fast as they can."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._end = threading.Event()
        self.commits = 0

    def _write(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._end.is_set():
                insert(connection, "k")
                self.commits += 1

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._write) for _ in range(16)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(30)


@pytest.mark.case("B-08")
def test_commits_queue_behind_each_other_only_where_somebody_switched_waking_on(
    owner: psycopg.Connection[Any], database: str
) -> None:
    """
    Fails when the migrations make the trigger: then commits are seen waiting for the lock of NOTIFY.

    The other half shows that the test would see them; `python -m bench.notify` measures what it costs.
    """

    def queued() -> int:
        row = owner.execute(QUEUED).fetchone()
        assert row is not None
        return int(row[0])

    with Crowd(database) as crowd:
        seen: list[int] = []

        def many() -> bool:
            seen.append(queued())
            return crowd.commits > 500

        eventually(many, what="many commits", timeout=30)
        assert not any(seen)
        switch(database, "packhorse", on=True)
        eventually(queued, what="commits queue")


def test_listening_through_a_pooler_is_refused_with_the_next_step(database: str, pooler: Pooler) -> None:
    with pytest.raises(NotReady, match="PACKHORSE_RELAY_REPLICATION_URL"):
        PostgresWakes(pooler.url(database), "packhorse").check()


def test_a_relay_behind_a_pooler_listens_around_it(
    tmp_path: Path, database: str, pooler: Pooler, stack: Endpoints, topic_prefix: str, topic: str
) -> None:
    """Fails when the listener connects where the polls go."""
    switch(database, "packhorse", on=True)
    with (
        relays(
            tmp_path, database=pooler.url(database), bootstrap=stack.kafka_bootstrap, namespace=topic_prefix
        ) as group,
        psycopg.connect(database, autocommit=True) as owner,
    ):
        process: RelayProcess = group.start(listen="true", replication_url=database, poll=60, idle_poll=60)
        process.wait_for("this process owns the shard")
        listener_of(owner)
        id_ = insert(owner, "k")
        assert wait_for(stack.kafka_bootstrap, topic, 1)[0].id == id_


def test_the_switch_gives_way_to_writers_and_says_who_may(
    owner: psycopg.Connection[Any], database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "TRIES", 1)
    with psycopg.connect(database) as writer:
        insert(writer, "k")
        with pytest.raises(DatabaseUnavailable, match=r"held packhorse\.outbox"):
            switch(database, "packhorse", on=True)
    role = unique_name("stranger")
    owner.execute(f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA packhorse TO {role}".encode())
    try:
        with pytest.raises(NotReady, match=r"owns packhorse\.outbox"):
            switch(database.replace("postgres@", f"{role}@"), "packhorse", on=True)
    finally:
        owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())
