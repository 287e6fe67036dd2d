"""A stream whose server, network or rights go away: each is told by its cause, with the next step, and none hangs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
from psycopg import sql
from tests.support.databases import unique_name
from tests.support.relay import insert
from tests.support.stack import PrivateDatabase
from tests.support.streams import Streams, read_all, read_to_mark, start, streams
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.relay.cdc.stream import Cause, StreamUnavailable, lsn
from packhorse.relay.model import AGGREGATEID
from packhorse.relay.postgres.connection import Reach
from packhorse.relay.postgres.slots import Slots

Connection = psycopg.Connection[tuple[object, ...]]
QUICK = Reach(connect=1.0, answer=1.0)


@pytest.fixture
def made(private_database: PrivateDatabase) -> Iterator[Streams]:
    """Provide streams through the proxy."""
    with streams(private_database.url, direct=private_database.direct_url) as found:
        yield found
        private_database.heal()


@contextmanager
def opened(url: str) -> Iterator[Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def cause_of(call: Callable[[], object]) -> Cause | None:
    """Return why *call* has no stream; None: it has."""
    try:
        call()
    except StreamUnavailable as error:
        return error.cause
    return None


def lose(url: str, slot: str) -> None:
    """Let the server give the slot up, as it does with one that holds too much log."""
    with opened(url) as connection:
        connection.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        connection.execute("SELECT pg_reload_conf()")
        try:
            for _ in range(4):
                connection.execute("SELECT pg_logical_emit_message(false, 'x', 'x'), pg_switch_wal()")
                connection.execute("CHECKPOINT")

            def lost() -> bool:
                connection.execute("CHECKPOINT")
                row = connection.execute(
                    "SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s", (slot,)
                ).fetchone()
                return row == ("lost",)

            eventually(lost, what="the slot is lost")
        finally:
            connection.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
            connection.execute("SELECT pg_reload_conf()")


@pytest.mark.case("C-03")
def test_a_slot_over_the_servers_limit_is_told_and_made_anew(
    private_database: PrivateDatabase, made: Streams
) -> None:
    """Fails when a lost slot is taken for a usable one, or is an error at each start."""
    stream = made.started(reach=QUICK)
    slot = stream.held().name
    private_database.proxy.freeze()  # the reader is cut off: the server alone decides
    lose(private_database.direct_url, slot)
    private_database.proxy.resume()

    eventually(
        lambda: cause_of(lambda: stream.read(0.1, limit=10, confirmed=0, ask=False)),
        what="the stream is over",
    )
    state = stream.held()
    assert state.wal_status == "lost"
    assert state.lost is not None
    with pytest.raises(StreamUnavailable, match="max_slot_wal_keep_size") as caught:
        stream.start("1:1:", 1)
    assert caught.value.cause is Cause.SLOT_LOST
    start(stream, private_database.direct_url)
    with opened(private_database.direct_url) as connection:
        insert(connection, "k")
    assert [row[AGGREGATEID] for row in read_all(stream)] == ["k"]


def test_a_mark_at_the_end_of_a_page_of_the_log_is_reached_on_an_idle_server(
    private_database: PrivateDatabase, made: Streams
) -> None:
    """Fails when a mark is where the next record will begin: behind the next page's header, which nobody writes yet."""
    stream = made.started()
    with opened(private_database.direct_url) as connection:

        def end() -> int:
            row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
            assert row is not None
            return lsn(str(row[0]))

        def on_a_page() -> bool:
            """Fill a page to its last byte; somebody else may write in between."""
            room = 8192 - end() % 8192 - 56  # what a message takes beside its text
            connection.execute(
                "SELECT pg_logical_emit_message(false, 'x', repeat('x', %s))",
                (room if 0 < room < 7000 else 500,),
            )
            return end() % 8192 == 24

        eventually(on_a_page, what="the log ends with a page")
        read_to_mark(stream, timeout=3)  # by itself the server writes the next record within 15 s


@pytest.mark.parametrize("fault", ["black_hole", "cut"])
def test_a_network_that_goes_away_ends_the_stream_within_its_bounds(
    private_database: PrivateDatabase, made: Streams, fault: str
) -> None:
    """Fails when a read, a mark or a start waits for a peer that will not answer."""
    stream = made.started(reach=QUICK, silence=0.6)
    getattr(private_database.proxy, fault)()
    begun = SYSTEM_CLOCK.monotonic()

    def over() -> bool:
        at = SYSTEM_CLOCK.monotonic()
        cause = cause_of(lambda: stream.read(0.1, limit=10, confirmed=0, ask=True))
        assert SYSTEM_CLOCK.monotonic() - at < 3
        return cause is Cause.STREAM_FAILED

    eventually(over, what="the stream ends")
    assert SYSTEM_CLOCK.monotonic() - begun < 6
    for call in (stream.mark, lambda: stream.start("1:1:", 1)):
        at = SYSTEM_CLOCK.monotonic()
        assert cause_of(call) is Cause.STREAM_FAILED
        assert SYSTEM_CLOCK.monotonic() - at < 4
    private_database.proxy.resume()
    eventually(lambda: cause_of(lambda: start(stream, made.direct)) is None, what="it streams again")


def test_a_database_that_restarts_ends_the_stream_and_the_slot_stays(
    private_database: PrivateDatabase, made: Streams
) -> None:
    stream = made.started(reach=QUICK)
    with opened(private_database.direct_url) as connection:
        insert(connection, "k")
    snapshot = read_all(stream)
    assert len(snapshot) == 1
    private_database.kill()
    with pytest.raises(StreamUnavailable) as caught:
        read_all(stream)
    assert caught.value.cause is Cause.STREAM_FAILED
    private_database.start()
    with opened(private_database.direct_url) as connection:
        insert(connection, "later")
    eventually(lambda: cause_of(lambda: start(stream, made.direct)) is None, what="it streams again")
    assert stream.held().exists


@pytest.mark.case("R-19")
def test_rows_wait_for_synchronous_standbys(private_database: PrivateDatabase, made: Streams) -> None:
    """Fails when what is on the primary's own disk is given: a standby that takes over would not have it."""
    with opened(private_database.direct_url) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        connection.execute("SELECT pg_reload_conf()")
        try:
            connection.execute("SET synchronous_commit = local")
            stream = made.started(reach=QUICK)
            insert(connection, "k")
            with pytest.raises(StreamUnavailable):
                read_all(stream)
        finally:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")
        eventually(lambda: cause_of(lambda: start(stream, made.direct)) is None, what="it streams again")
        insert(connection, "again")
    assert [row[AGGREGATEID] for row in read_all(stream)] == ["again"]


@pytest.fixture
def shared(database: str) -> Iterator[Streams]:
    with streams(database) as found:
        yield found


@pytest.fixture
def role(database: str) -> Iterator[str]:
    """Provide the URL of a role with the rights of a polling relay."""
    name = unique_name("role")
    with opened(database) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA packhorse TO {}").format(sql.Identifier(name)))
        yield database.replace("postgres@", f"{name}@")
        connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(name)))


def test_a_role_without_the_right_to_replicate_is_told_the_statement(
    shared: Streams, role: str, database: str
) -> None:
    shared.url = role
    stream = shared.new()
    with pytest.raises(StreamUnavailable, match=r"ALTER ROLE \S+ REPLICATION") as caught:
        stream.prepare()
    assert caught.value.cause is Cause.NOT_SET_UP
    with opened(database) as connection:
        name = role.partition("//")[2].partition("@")[0]
        connection.execute(sql.SQL("ALTER ROLE {} REPLICATION").format(sql.Identifier(name)))
        start(stream, database)
        insert(connection, "k")
    assert [row[AGGREGATEID] for row in read_all(stream)] == ["k"]
    stream.drop()


def test_what_the_server_does_not_allow_is_told_with_the_setting(shared: Streams, database: str) -> None:
    """Fails when a missing setting comes as the server's bare error, or after a slot was made."""
    slots = Slots(database, "packhorse", shard=7, reach=QUICK)
    try:
        server = slots.open()
        for changed, text in (
            (replace(server, wal_level="replica"), "wal_level is replica"),
            (replace(server, in_recovery=True), "standby"),
        ):
            with pytest.raises(StreamUnavailable, match=text):
                slots.check(changed)
        with pytest.raises(StreamUnavailable, match="max_replication_slots"):
            slots.make(replace(server, slots_there=server.slots_allowed))
        assert not slots.state().exists
    finally:
        slots.close()


def test_a_replication_url_that_leads_elsewhere_is_refused(
    shared: Streams, database: str, empty_database: str
) -> None:
    """Fails when a stream of one database is measured by the snapshots of another."""
    stream = shared.new(database_url=empty_database)
    with pytest.raises(StreamUnavailable, match="replication_url leads to") as caught:
        stream.prepare()
    assert caught.value.cause is Cause.NOT_SET_UP


def test_a_slot_of_somebody_elses_with_our_name_is_left_alone(shared: Streams, database: str) -> None:
    stream = shared.new()
    name = stream.held().name
    stream.drop()
    with opened(database) as connection:
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", (name,))
        with pytest.raises(StreamUnavailable, match="no slot of ours") as caught:
            stream.prepare()
        assert caught.value.cause is Cause.NOT_SET_UP
        assert stream.held().exists
