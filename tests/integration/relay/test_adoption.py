"""Rows and a position of another server, made by hand: what the relay says of them, and what an adoption makes of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from tests.support.cli import packhorse
from tests.support.relay import insert

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import NotReady, OwnershipLost
from packhorse.core.partitions import partition_of
from packhorse.core.person import Person
from packhorse.relay.deciding.commands import Save
from packhorse.relay.identity import postgres
from packhorse.relay.identity.adoption import Adoption
from packhorse.relay.identity.judge import Kind
from packhorse.relay.identity.postgres import adopt
from packhorse.relay.model import ID, Position
from packhorse.relay.postgres.outbox import PostgresOutbox

ELSEWHERE = "7000000000000000001/00000001"
FAR = (1 << 40) + 1_000
"""A transaction id that no server of a test reaches."""


@dataclass
class Loaded:
    """A database whose outbox and position came from another server."""

    url: str
    connection: psycopg.Connection[Any]
    ids: dict[str, str] = field(default_factory=dict)

    def row(
        self, name: str, *, xid: int, seq: int, key: str = "k", kind: str = "orders", age: str = "1 hour"
    ) -> None:
        """Insert a row as a dump would."""
        id_ = self.ids[name] = str(SYSTEM_CHANCE.token())
        self.connection.execute(
            "INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload, xid, seq, created_at)"
            " OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, 't.T', '1', 'x', %s::text::xid8, %s,"
            " (clock_timestamp() - %s::interval) AT TIME ZONE 'UTC')",
            (id_, kind, key, xid, seq, age),
        )

    def position(self, horizon: str, *, target: str | None = None, progress: int = 0, seq_high: int) -> None:
        """Set the saved position, of half an hour ago, and let the sequence go on behind *seq_high*."""
        self.connection.execute(
            "UPDATE packhorse.relay SET horizon = %s, target = %s, progress = %s, seq_high = %s, incarnation = %s,"
            " saved_at = clock_timestamp() - interval '30 minutes', epoch = 3, published = 100",
            (horizon, target, progress, seq_high, ELSEWHERE),
        )
        self.sequence(seq_high)

    def sequence(self, at: int) -> None:
        self.connection.execute("SELECT setval('packhorse.outbox_seq_seq', %s)", (at,))

    def hold(self, scope: str, *, horizon: str, kind: str = "orders", **columns: object) -> None:
        names = ["shard", "scope", "aggregatetype", "horizon", "code", "reason", "heals", *columns]
        values = [0, scope, kind, horizon, "refused", "a test", False, *columns.values()]
        self.connection.execute(
            f"INSERT INTO packhorse.relay_hold ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})",
            values,
        )

    @property
    def next_id(self) -> int:
        """The transaction id that the server gives out next."""
        row = self.connection.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        ).fetchone()
        assert row is not None
        return int(row[0])

    def adopted(self, *, dry_run: bool = False) -> Adoption:
        found = adopt(self.url, "packhorse", person=Person(user="test"), why="moved", dry_run=dry_run)
        assert found is not None
        return found

    def refusal(self) -> str:
        """Return why the relay does not start."""
        outbox = self.outbox()
        try:
            with pytest.raises(NotReady) as caught:
                outbox.own(SYSTEM_CHANCE.token(), "test", 60)
        finally:
            outbox.close()
        return str(caught.value)

    def outbox(self) -> PostgresOutbox:
        return PostgresOutbox(self.url, "packhorse", batch_rows=100)

    def waiting(self) -> list[str]:
        """Return the names of the rows that a relay finds, in its order; holds aside."""
        outbox = self.outbox()
        token = SYSTEM_CHANCE.token()
        try:
            owned = outbox.own(token, "test", 60)
            assert owned is not None
            batch = outbox.fetch(owned.position, 100)
            assert batch.complete
            names = {id_: name for name, id_ in self.ids.items()}
            return [names[row[ID]] for row in batch.rows]
        finally:
            outbox.release(token)
            outbox.close()


@pytest.fixture
def loaded(database: str) -> Iterator[Loaded]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield Loaded(database, connection)


@pytest.mark.case("R-08")
@pytest.mark.parametrize("step", [1, postgres.STEP])
def test_a_position_that_the_server_has_not_reached_is_refused_and_adopted(
    loaded: Loaded, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when published rows count as unpublished after the adoption, or the other way round."""
    monkeypatch.setattr(postgres, "STEP", step)
    loaded.row("published", xid=FAR, seq=10)
    loaded.row("published late", xid=FAR + 3, seq=13)
    loaded.row("running then", xid=FAR + 1, seq=11)
    loaded.row("after the horizon", xid=FAR + 7, seq=12)
    loaded.row("drawn after the save", xid=FAR + 9, seq=30)
    loaded.position(f"{FAR + 1}:{FAR + 5}:{FAR + 1}", seq_high=20)
    loaded.sequence(40)
    loaded.ids["written here"] = insert(loaded.connection, "k")
    said = loaded.refusal()
    assert f"{FAR + 1}:{FAR + 5}:{FAR + 1}" in said
    assert ELSEWHERE in said
    assert "packhorse relay adopt" in said
    preview = loaded.adopted(dry_run=True)
    assert loaded.refusal().startswith("the horizon"), "a preview changes nothing"
    done = loaded.adopted()
    assert (done.unpublished, done.lost, done.published_rewritten, done.renumbered) == (4, 1, 2, 0)
    assert (preview.unpublished, preview.lost, preview.published_rewritten) == (4, 1, 2)
    assert loaded.waiting() == ["running then", "after the horizon", "drawn after the save", "written here"]
    assert adopt(loaded.url, "packhorse", person=Person(user="test")) is None, (
        "a second time there is nothing to do"
    )
    act = loaded.connection.execute(
        "SELECT act, actor, why, detail ->> 'unpublished' FROM packhorse.audit"
    ).fetchall()
    assert act == [
        ("adopt-server", f"test (role {loaded.connection.info.user})", "moved", "4"),
    ]
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        loaded.connection.execute("UPDATE packhorse.outbox SET type = 'x'")


def test_an_adoption_that_dies_between_its_steps_is_done_again(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a step that is committed ahead changes what counts as published, or lets a relay start."""
    for n in range(3):
        loaded.row(f"published {n}", xid=FAR + n, seq=10 + n)
    loaded.row("waits", xid=FAR + 9, seq=13)
    loaded.position(f"{FAR + 5}:{FAR + 5}:", seq_high=13)
    monkeypatch.setattr(postgres, "STEP", 2)

    def die(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(postgres._Adopting, "lock", die)
        with pytest.raises(KeyboardInterrupt):
            loaded.adopted()
    assert loaded.refusal().startswith("the horizon")
    done = loaded.adopted()
    assert (done.unpublished, done.published_rewritten) == (1, 0)
    assert loaded.waiting() == ["waits"]


@pytest.mark.case("R-08")
def test_rows_written_before_the_counter_overtook_the_horizon_are_named_and_not_lost(loaded: Loaded) -> None:
    """Fails without the search for rows drawn after the last save: the horizon has them as published for good."""
    loaded.row("published", xid=5, seq=10)
    loaded.position("600:600:", seq_high=10)
    first = loaded.ids["first"] = insert(loaded.connection, "k")
    loaded.ids["second"] = insert(loaded.connection, "k")
    ahead = loaded.next_id
    loaded.connection.execute("UPDATE packhorse.relay SET horizon = %s", (f"{ahead}:{ahead}:",))
    loaded.ids["third"] = insert(loaded.connection, "k")
    said = loaded.refusal()
    assert "2 rows" in said
    assert first in said
    assert "seq 11" in said
    assert loaded.adopted().lost == 2
    assert loaded.waiting() == ["first", "second", "third"]


@pytest.mark.case("R-08")
def test_rows_with_ids_of_the_future_are_named(loaded: Loaded) -> None:
    """Fails when rows that wait for the server's counter go unsaid: they would wait for days."""
    loaded.row("waits", xid=FAR, seq=12)
    loaded.position("600:600:", seq_high=11)
    loaded.sequence(12)
    said = loaded.refusal()
    assert "1 rows" in said
    assert loaded.ids["waits"] in said
    loaded.adopted()
    assert loaded.waiting() == ["waits"]


def test_rows_of_the_future_are_named_where_nothing_was_published_yet(loaded: Loaded) -> None:
    loaded.row("loaded", xid=FAR, seq=1)
    loaded.row("fine", xid=700, seq=2)
    loaded.sequence(2)
    assert loaded.ids["loaded"] in loaded.refusal()
    done = loaded.adopted()
    assert (done.unpublished, done.horizon) == (1, "1:1:")
    assert loaded.waiting() == ["loaded", "fine"]


@pytest.mark.case("R-08")
def test_an_open_transaction_that_the_horizon_has_as_past_is_awaited(loaded: Loaded) -> None:
    """Fails when only rows are looked at: this one's are not visible yet, and are passed over when they are."""
    loaded.row("published", xid=5, seq=10)
    loaded.position("600:600:", seq_high=10)
    with psycopg.connect(loaded.url) as writer:
        late = loaded.ids["late"] = insert(writer, "k")
        loaded.connection.execute("SELECT pg_current_xact_id()")
        ahead = loaded.next_id
        loaded.connection.execute("UPDATE packhorse.relay SET horizon = %s", (f"{ahead}:{ahead}:",))
        assert "1 open transactions" in loaded.refusal()
        writer.commit()
    assert late in loaded.refusal()
    loaded.adopted()
    assert loaded.waiting() == ["late"]


@pytest.mark.case("R-08")
def test_a_sequence_that_begins_anew_is_named_and_its_rows_go_behind_the_old_ones(loaded: Loaded) -> None:
    """Fails when rows are told apart by seq alone, or two rows keep one seq: a page that ends between them passes one over."""
    loaded.row("published", xid=FAR, seq=1)
    loaded.row("waited", xid=FAR + 9, seq=2)
    loaded.position(f"{FAR + 5}:{FAR + 5}:", seq_high=2)
    loaded.connection.execute("ALTER SEQUENCE packhorse.outbox_seq_seq RESTART")
    for name in ("new 1", "new 2", "new 3"):
        loaded.ids[name] = insert(loaded.connection, "k")
    loaded.connection.execute("UPDATE packhorse.relay SET horizon = '600:600:'")
    loaded.connection.execute("UPDATE packhorse.relay SET horizon = %s", (f"{FAR + 5}:{FAR + 5}:",))
    done = loaded.adopted()
    assert (done.unpublished, done.renumbered, done.lost) == (4, 2, 3)
    assert loaded.waiting() == ["waited", "new 3", "new 1", "new 2"]
    seqs = loaded.connection.execute("SELECT count(*), count(DISTINCT seq) FROM packhorse.outbox").fetchone()
    assert seqs == (5, 5)


def test_a_target_in_work_keeps_what_is_confirmed(loaded: Loaded) -> None:
    loaded.row("confirmed", xid=FAR + 3, seq=10)
    loaded.row("not yet", xid=FAR + 3, seq=11)
    loaded.position(f"{FAR}:{FAR}:", target=f"{FAR + 4}:{FAR + 4}:", progress=10, seq_high=11)
    assert loaded.adopted().unpublished == 1
    assert loaded.waiting() == ["not yet"]


def test_holds_keep_what_they_had_not_published(loaded: Loaded) -> None:
    """Fails when the rows of a hold count as published because the relay's own horizon is past them."""
    held = next(f"k{n}" for n in range(100) if partition_of(f"k{n}".encode(), 3) == 1)
    free = next(f"k{n}" for n in range(100) if partition_of(f"k{n}".encode(), 3) == 2)
    loaded.row("key, before", xid=FAR, seq=1, key="bad")
    loaded.row("key, held", xid=FAR + 2, seq=2, key="bad")
    loaded.row("other key", xid=FAR + 2, seq=3, key="good")
    loaded.row("partition, held", xid=FAR + 2, seq=4, key=held, kind="lines")
    loaded.row("partition, free", xid=FAR + 2, seq=5, key=free, kind="lines")
    loaded.row("topic, held", xid=FAR + 2, seq=6, kind="gone")
    loaded.position(f"{FAR + 5}:{FAR + 5}:", seq_high=6)
    early = f"{FAR + 1}:{FAR + 1}:"
    loaded.hold("key", horizon=early, aggregateid="bad")
    loaded.hold("partition", horizon=early, kind="lines", partition=1, partitions=3)
    loaded.hold("topic", horizon=early, kind="gone")
    done = loaded.adopted()
    assert (done.unpublished, done.holds, done.published_rewritten) == (3, 3, 3)
    rows = loaded.connection.execute(
        "SELECT DISTINCT h.horizon::text, h.target::text, h.progress FROM packhorse.relay_hold h"
    ).fetchall()
    assert rows == [(done.horizon, None, 0)]
    names = {id_: name for name, id_ in loaded.ids.items()}
    behind = loaded.connection.execute(
        "SELECT id::text FROM packhorse.outbox WHERE NOT pg_visible_in_snapshot(xid, %s::pg_snapshot) ORDER BY seq",
        (done.horizon,),
    ).fetchall()
    assert [names[id_] for (id_,) in behind] == ["key, held", "partition, held", "topic, held"]


def test_a_writer_that_runs_meanwhile_is_neither_lost_nor_waited_for_without_bound(loaded: Loaded) -> None:
    """Fails when the new horizon has a transaction as past that has an id and has not written yet."""
    loaded.row("published", xid=FAR, seq=10)
    loaded.position(f"{FAR + 5}:{FAR + 5}:", seq_high=10)
    with psycopg.connect(loaded.url) as writer:
        writer.execute("SELECT pg_current_xact_id()")
        loaded.adopted()
        loaded.ids["late"] = insert(writer, "k")
        writer.commit()
    assert loaded.waiting() == ["late"]


def test_an_adoption_is_refused_while_a_relay_runs_and_without_the_right(loaded: Loaded) -> None:
    loaded.position(f"{FAR + 5}:{FAR + 5}:", seq_high=10)
    loaded.connection.execute(
        "UPDATE packhorse.relay SET token = gen_random_uuid(), owner = 'host:7', lease_until = clock_timestamp() + interval '1 min'"
    )
    with pytest.raises(OwnershipLost, match="host:7 owns shard 0"):
        loaded.adopted()
    loaded.connection.execute("UPDATE packhorse.relay SET token = NULL")
    role = f"poor_{SYSTEM_CHANCE.token().hex[:12]}"
    loaded.connection.execute(f"CREATE ROLE {role} LOGIN")
    loaded.connection.execute(f"GRANT USAGE ON SCHEMA packhorse TO {role}")
    loaded.connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA packhorse TO {role}")
    try:
        with pytest.raises(NotReady, match="run this as that role"):
            adopt(loaded.url.replace("postgres@", f"{role}@"), "packhorse", person=Person(user="test"))
    finally:
        loaded.connection.execute(f"DROP OWNED BY {role}")
        loaded.connection.execute(f"DROP ROLE {role}")


def test_the_command_counts_asks_and_adopts(loaded: Loaded) -> None:
    loaded.row("published", xid=FAR, seq=10)
    loaded.position(f"{FAR + 5}:{FAR + 5}:", seq_high=10)
    loaded.ids["new"] = insert(loaded.connection, "k")
    environ = {"PACKHORSE_DATABASE_URL": loaded.url}
    counted = packhorse("relay", "adopt", "--dry-run", "--json", **environ)
    assert counted.json()["unpublished"] == 1
    assert packhorse("relay", "adopt", given="n\n", **environ).code == 1
    assert "horizon" in loaded.refusal()
    done = packhorse("relay", "adopt", "--why", "a move", given="y\n", **environ)
    assert done.code == 0, done.err
    assert "1 rows are not published" in done.out
    again = packhorse("relay", "adopt", "--yes", **environ)
    assert "nothing to adopt" in again.out
    assert loaded.waiting() == ["new"]


def test_another_timeline_and_a_database_that_went_back_are_said_and_change_nothing(loaded: Loaded) -> None:
    """Fails when a failover goes unsaid, or memory of a saved position outlives the position."""
    outbox = loaded.outbox()
    token = SYSTEM_CHANCE.token()
    try:
        first = outbox.own(token, "test", 60)
        assert first is not None
        assert first.verdict is not None
        assert first.verdict.kind is Kind.FIRST
        batch = outbox.fetch(first.position, 100)
        assert outbox.save(token, Save(first.position, Position(horizon=batch.target), 7))
        loaded.connection.execute("UPDATE packhorse.relay SET published = published - 7")
        again = outbox.own(token, "test", 60)
        assert again is not None
        assert again.verdict is not None
        assert again.verdict.kind is Kind.WENT_BACK
        assert "7 in epoch 1" in (again.verdict.text or "")
        loaded.connection.execute(
            "UPDATE packhorse.relay SET incarnation = split_part(incarnation, '/', 1) || '/000000FF'"
        )
        moved = outbox.own(token, "test", 60)
        assert moved is not None
        assert moved.verdict is not None
        assert moved.verdict.kind is Kind.TIMELINE
        assert moved.verdict.alarm
        same = outbox.own(token, "test", 60)
        assert same is not None
        assert same.verdict is not None
        assert same.verdict.kind is Kind.SAME
    finally:
        outbox.close()


def test_a_save_is_refused_on_another_server_than_the_one_that_was_judged(loaded: Loaded) -> None:
    """Fails when a pooler may lead a save to a promoted standby unseen."""
    outbox = loaded.outbox()
    token = SYSTEM_CHANCE.token()
    try:
        owned = outbox.own(token, "test", 60)
        assert owned is not None
        batch = outbox.fetch(owned.position, 100)
        loaded.connection.execute("UPDATE packhorse.relay SET incarnation = %s", (ELSEWHERE,))
        assert not outbox.save(token, Save(owned.position, Position(horizon=batch.target), 0))
    finally:
        outbox.close()
