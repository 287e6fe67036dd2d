"""What is kept of a person goes, of nobody else; each step is on the record, without a name."""

import signal
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from tests.support.cli import Ran, packhorse, packhorse_process
from tests.support.console_rows import horizon_past_all, recorded, rested
from tests.support.roles import Roles
from tests.support.subjects import ANN, BOB, GROUP, TOPIC, Life, traces

from packhorse.console.acting.person import Person, this_process
from packhorse.console.acting.postgres import Database, opened
from packhorse.console.purging.model import Erased, Found, Table, Wanted
from packhorse.console.purging.postgres import PurgeTables
from packhorse.console.purging.service import EraserFailed, Order, Purging
from packhorse.core.errors import Forbidden, UsageError
from packhorse.processor import Subject

WHY = "request 4711"
KEY = Wanted(subject=Subject(key=ANN))


@pytest.fixture
def ann(connection: psycopg.Connection[Any]) -> Life:
    return Life(connection, ANN)


@pytest.fixture
def bob(connection: psycopg.Connection[Any], ann: Life) -> Life:
    bob = Life(connection, BOB)
    horizon_past_all(connection)
    return bob


def purge(url: str, *arguments: object, given: str = "", **environ: str) -> Ran:
    return packhorse("purge", *arguments, given=given, PACKHORSE_DATABASE_URL=url, **environ)


def dump(connection: psycopg.Connection[Any]) -> list[Any]:
    """Return all that a purge may change."""
    tables = (
        "outbox",
        "inbox",
        "failed_attempt",
        "quarantined_message",
        "retry_message",
        "parked_message",
        "parked_key",
        "audit",
    )
    return [
        connection.execute(f"SELECT t::text FROM packhorse.{table} AS t ORDER BY 1".encode()).fetchall()
        for table in tables
    ]


def steps(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT detail ->> 'step', detail ->> 'table' FROM packhorse.audit WHERE act = 'purge' ORDER BY id"
    ).fetchall()


@pytest.mark.case("P8")
@pytest.mark.parametrize("by", ["key", "field"])
def test_all_that_is_kept_of_a_person_goes_and_nothing_of_anybody_else(
    connection: psycopg.Connection[Any], database: str, bob: Life, by: str
) -> None:
    """Fails when a table, a header, an error's text, a digest or a hash of the key is left out, or the record names the subject."""
    ann = Life(connection, ANN, key="a" if by == "field" else None)
    horizon_past_all(connection)
    before = traces(connection, BOB)
    which = ("--subject", "-") if by == "key" else ("--field", "-")
    given = ANN if by == "key" else f"owner={ANN}"
    ran = purge(database, *which, "--why", WHY, "--yes", "--json", given=given)
    assert ran.code == 0, ran.err
    counts = ran.json()["counts"]
    both = 2  # those of the fixture too: they have the key and the field
    assert (counts["outbox rows deleted"], counts["messages given up"], counts["quarantined emptied"]) == (
        both,
        3 * both,
        both,
    )
    assert (counts["followers deleted"], counts["retries deleted"]) == (both, both)
    assert ann.outcomes() == {
        "head": ("discarded", "purged"),
        "follower": ("discarded", "purged"),
        "retry": ("discarded", "purged"),
        "outbox": ("done", None),
    }
    left = traces(connection, ANN)
    assert left == ["parked_key"], "a key goes with the processor's next look"
    connection.execute("DELETE FROM packhorse.parked_key WHERE wake_at <= clock_timestamp()")
    assert traces(connection, ANN) == []
    assert traces(connection, BOB) == before
    assert bob.outcomes()["head"] == ("quarantine", "attempts-exhausted")
    assert ANN not in ran.out + ran.err
    row = connection.execute(
        "SELECT state, reason, error, payload, key, headers::text, purged_at IS NOT NULL FROM packhorse.quarantined_message"
        " WHERE message_id = %s",
        (ann.head,),
    ).fetchone()
    assert row == ("discarded", "attempts-exhausted", "ValueError at handlers.py:12", None, None, "[]", True)


def test_what_stays_on_topics_is_said_with_the_places_that_are_known(
    connection: psycopg.Connection[Any], database: str, bob: Life
) -> None:
    del bob
    connection.execute(
        'INSERT INTO packhorse.watermark (group_id, topic_id, partition, topic, "offset", incarnation)'
        " VALUES (%s, gen_random_uuid(), 0, 'airline.other', 7, 'x')",
        (GROUP,),
    )
    first = purge(database, "--subject", ANN, "--why", WHY, "--yes", "--json").json()
    topics = {(one["topic"], one["kind"], one["partition"]): one["offsets"] for one in first["topics"]}
    assert topics[f"{TOPIC}.{GROUP}.quarantine", "quarantine", 1] == [7]
    assert topics[f"{TOPIC}.{GROUP}.retry.5s", "tier", 1] == [99]
    assert topics["airline.other", "source", None] == []
    assert len(topics[TOPIC, "source", 1]) == 2
    again = purge(database, "--subject", ANN, "--why", WHY, "--yes", "--json").json()
    assert (again["counts"], again["topics"]) == ({}, first["topics"]), "a later run knows what the first met"
    told = purge(database, "--subject", ANN, "--why", WHY, "--yes").out
    assert "nothing of the subject is in these tables" in told
    assert "quarantine topics keep copies for good" in told


def test_a_dry_run_counts_and_changes_nothing(
    connection: psycopg.Connection[Any], database: str, bob: Life
) -> None:
    del bob
    before = dump(connection)
    ran = purge(database, "--subject", ANN, "--dry-run", "--json")
    assert ran.json()["counts"] == {
        "parked_message": 1,
        "retry_message": 1,
        "quarantined_message": 1,
        "outbox": 1,
    }
    assert "nothing was changed" in purge(database, "--subject", ANN, "--dry-run").out
    no = purge(database, "--subject", ANN, "--why", WHY, given="n\n")
    assert no.code == 1
    assert dump(connection) == before


@pytest.mark.case("P8")
def test_what_could_not_be_looked_into_is_counted_named_and_no_success(
    connection: psycopg.Connection[Any], database: str, bob: Life
) -> None:
    """Fails when messages whose schema this database does not know are passed over in silence: they may be the subject's."""
    del bob
    for payload in (b"\0\0\0\x01\x02" + ANN.encode(), b"\0\0\0\x01\x02", b"{}", b"\0\0"):
        rested(connection, group=GROUP, topic=TOPIC, payload=payload)
    recorded(connection, payload=b"\0\xff\0\0\x07" + ANN.encode())
    rested(connection, group=GROUP, topic=TOPIC, payload=None)
    horizon_past_all(connection)
    before = traces(connection, ANN)
    field = ("--field", f"owner={ANN}")
    for order in (("--dry-run",), ("--why", WHY, "--yes")):
        ran = purge(database, *field, *order, "--json")
        assert ran.code == 1, ran.err
        assert ran.json()["not_looked_into"] == [
            {"table": "outbox", "schema_id": 0xFF000007, "messages": 1},
            {"table": "quarantined_message", "schema_id": None, "messages": 2},
            {"table": "quarantined_message", "schema_id": 258, "messages": 2},
        ]
    assert set(traces(connection, ANN)) == {"outbox", "parked_key", "quarantined_message"} < set(before)
    told = purge(database, *field, "--dry-run")
    said = "4 messages in quarantined_message could not be looked into: schema ids 258 are not registered in this database; some payloads"
    assert (told.code, said in told.out) == (1, True), told.out
    assert steps(connection)[-1] == ("ended", None)
    row = connection.execute(
        "SELECT detail -> 'unread' FROM packhorse.audit ORDER BY id DESC LIMIT 1"
    ).fetchone()
    assert row == (5,)
    assert purge(database, *field, "--group", "others", "--why", WHY, "--yes").code == 0
    assert purge(database, "--subject", ANN, "--why", WHY, "--yes").code == 0, "a key needs no schema"


def test_a_dry_run_names_the_rows_that_would_be_left(
    connection: psycopg.Connection[Any], database: str, bob: Life
) -> None:
    """Fails when what a dry run says would be left is not what a purge leaves."""
    del bob
    late, held = recorded(connection, key=ANN), recorded(connection, key=ANN, aggregatetype="held")
    connection.execute(
        "INSERT INTO packhorse.relay_hold (shard, scope, aggregatetype, code, reason, heals, horizon)"
        " VALUES (0, 'topic', 'held', 'x', 'x', true, '1:1:')"
    )
    for mode, more, fates in (
        ("cdc", ("--unpublished-too",), {late: "streamed", held: "held"}),
        ("polling", (), {late: "unpublished", held: "held"}),
        ("polling", ("--unpublished-too",), {held: "held"}),
    ):
        connection.execute("UPDATE packhorse.relay SET mode = %s", (mode,))
        wanted = ("--subject", ANN, *more, "--json")
        for order in (("--dry-run",), ("--why", WHY, "--yes")):
            ran = purge(database, *wanted, *order)
            assert ran.code == 1
            assert {one["id"]: one["why"] for one in ran.json()["left"]} == {
                str(at): why for at, why in fates.items()
            }
    assert (
        f"would be left: outbox row {held} (held) is kept by a hold"
        in purge(database, "--subject", ANN, "--dry-run").out
    )


@pytest.mark.case("P1")
def test_what_is_not_published_stays_and_is_named(
    connection: psycopg.Connection[Any], database: str, bob: Life
) -> None:
    """Fails when an erasure loses a message that nobody ordered to be lost."""
    del bob
    late = Life(connection, ANN)
    ran = purge(database, "--subject", ANN, "--why", WHY, "--yes")
    assert (ran.code, f"left: outbox row {late.outbox} (account) is not published yet" in ran.out) == (
        1,
        True,
    )
    forced = purge(database, "--subject", ANN, "--why", WHY, "--yes", "--unpublished-too")
    assert forced.code == 0, forced.out
    assert connection.execute("SELECT message_id, why FROM packhorse.relay_discard").fetchall() == [
        (late.outbox, WHY)
    ]
    acts = connection.execute("SELECT message_id FROM packhorse.audit WHERE act = 'discard'").fetchall()
    assert acts == [(late.outbox,)]
    told = packhorse("status", late.outbox, PACKHORSE_DATABASE_URL=database).out
    assert "by a purge: request 4711" in told
    assert ANN not in told
    told = packhorse("explain", late.follower, PACKHORSE_DATABASE_URL=database).out
    assert "by a purge, which erased what was kept of its subject" in told


def test_of_one_group_or_topic_alone(connection: psycopg.Connection[Any], database: str, bob: Life) -> None:
    del bob
    other = purge(database, "--subject", ANN, "--group", "others", "--why", WHY, "--yes", "--json").json()
    assert other["counts"] == {}
    topic = ("--topic", "airline.other", "--namespace", "airline")
    assert purge(database, "--subject", ANN, *topic, "--why", WHY, "--yes", "--json").json()["counts"] == {}
    mine = purge(database, "--subject", ANN, "--group", GROUP, "--why", WHY, "--yes", "--json").json()
    assert (mine["counts"]["messages given up"], "outbox rows deleted" in mine["counts"]) == (3, False)
    topic = ("--topic", TOPIC, "--namespace", "airline")
    rest = purge(database, "--subject", ANN, *topic, "--why", WHY, "--yes", "--json").json()
    assert rest["counts"]["outbox rows deleted"] == 1
    assert connection.execute("SELECT count(*) FROM packhorse.outbox").fetchone() == (1,)


class Crash(BaseException):
    """The process is gone."""


class Frail(PurgeTables):
    """Tables under a process that dies before its *last* transaction."""

    def __init__(self, database: Database, last: int) -> None:
        super().__init__(database)
        self.left = last

    def erase(self, person: Person, order: Order, mark: str, table: Table, found: Sequence[Found]) -> Erased:
        if self.left == 0:
            raise Crash
        self.left -= 1
        return super().erase(person, order, mark, table, found)


@pytest.mark.case("P7")
@pytest.mark.parametrize("last", range(4))
def test_broken_off_anywhere_it_is_run_again_to_the_same_end(
    connection: psycopg.Connection[Any], tables: Database, ann: Life, bob: Life, last: int
) -> None:
    """
    Fails when what one run has erased keeps the next from finding the rest, or a step is done without its record; or when heads go
    before what waits behind them, which would run then.
    """
    order = ("parked_message", "retry_message", "quarantined_message", "outbox")
    del bob
    with pytest.raises(Crash):
        Purging(Frail(tables, last), this_process()).purge(KEY, why=WHY)
    assert steps(connection) == [("begun", None), *(("erased", table) for table in order[:last])]
    report = Purging(PurgeTables(tables), this_process()).purge(KEY, why=WHY)
    assert len(steps(connection)) == 1 + last + 1 + (4 - last) + 1
    assert ann.outcomes()["head"] == ("discarded", "purged")
    assert traces(connection, ANN) == ["parked_key"]
    assert {stay.topic for stay in report.stays} >= {TOPIC, f"{TOPIC}.{GROUP}.quarantine"}


@pytest.mark.case("P7")
def test_killed_in_an_application_it_is_run_again(
    connection: psycopg.Connection[Any], database: str, bob: Life
) -> None:
    """Fails when what an eraser did outlives a kill without its record, or a purge that was killed keeps the next one from its end."""
    del bob
    connection.execute("CREATE TABLE passenger (email text)")
    connection.execute("INSERT INTO passenger VALUES (%s), (%s)", (ANN, BOB))
    order = ("purge", "--subject", "-", "--app", "tests.support.passengers:app", "--why", WHY, "--yes")
    killed = packhorse_process(*order, given=ANN, PACKHORSE_DATABASE_URL=database, KILL_ERASER="1")
    assert killed.code == -signal.SIGKILL
    assert connection.execute("SELECT count(*) FROM passenger").fetchone() == (2,)
    assert steps(connection)[-1] == ("erased", "outbox")
    done = packhorse_process(*order, given=ANN, PACKHORSE_DATABASE_URL=database)
    assert done.code == 0, done.err
    assert "1  by tests.support.passengers:app passengers" in done.out
    assert connection.execute("SELECT email FROM passenger").fetchall() == [(BOB,)]
    assert steps(connection)[-1] == ("ended", None)


@pytest.mark.case("O-13")
def test_without_the_right_nothing_goes_and_a_right_that_is_withdrawn_ends_it(
    connection: psycopg.Connection[Any], roles: Roles, bob: Life
) -> None:
    """Fails when the right is looked up once for the whole purge."""
    del bob
    before = dump(connection)
    operator, admin = roles.make("operator"), roles.make("admin")
    for extra in ((), ("--dry-run",)):
        refused = purge(roles.url(operator), "--subject", ANN, "--why", WHY, "--yes", *extra)
        assert (refused.code, "may not purge" in refused.err) == (8, True)
    assert dump(connection) == before

    class Withdrawn(PurgeTables):
        def erase(
            self, person: Person, order: Order, mark: str, table: Table, found: Sequence[Found]
        ) -> Erased:
            done = super().erase(person, order, mark, table, found)
            connection.execute("UPDATE packhorse.operator SET role = 'viewer' WHERE name = %s", (admin,))
            return done

    with opened(roles.url(admin), schema="packhorse", timeout=5) as tables:
        with pytest.raises(Forbidden, match="may not purge"):
            Purging(Withdrawn(tables), this_process()).purge(KEY, why=WHY)
        assert steps(connection) == [("begun", None), ("erased", "parked_message")]
        connection.execute("UPDATE packhorse.operator SET role = 'admin' WHERE name = %s", (admin,))
        assert Purging(PurgeTables(tables), this_process()).purge(KEY, why=WHY).left == ()
    assert traces(connection, ANN) == ["parked_key"]


def test_an_application_erases_its_own_in_the_transaction_and_its_failure_quotes_nobody(
    connection: psycopg.Connection[Any], tables: Database, bob: Life
) -> None:
    """Fails when an eraser's writes and their record are two transactions, or its error's text is told."""
    del bob
    connection.execute("CREATE TABLE passenger (email text)")
    connection.execute("INSERT INTO passenger VALUES (%s), (%s)", (ANN, BOB))

    def passengers(connection: psycopg.Connection[Any], subject: Subject) -> int:
        return connection.execute("DELETE FROM passenger WHERE email = %s", (subject.key,)).rowcount

    def broken(connection: psycopg.Connection[Any], subject: Subject) -> None:
        passengers(connection, subject)
        connection.execute("SELECT %s::int", (subject.key,))

    def ends(connection: psycopg.Connection[Any], subject: Subject) -> None:
        passengers(connection, subject)
        connection.commit()

    purging = Purging(PurgeTables(tables), this_process())
    for eraser in (broken, ends):
        with pytest.raises(EraserFailed) as caught:
            purging.purge(KEY, why=WHY, erasers=[("figures", eraser)])
        assert ANN not in str(caught.value)
        assert caught.value.__cause__ is None
        assert connection.execute("SELECT count(*) FROM passenger").fetchone() == (2,)
    report = purging.purge(KEY, why=WHY, erasers=[("figures", passengers)])
    assert report.counts == {"by figures": 1}
    assert connection.execute("SELECT email FROM passenger").fetchall() == [(BOB,)]


def test_a_subject_is_given_in_one_way_and_a_field_is_one_that_is_marked(database: str, bob: Life) -> None:
    del bob
    for arguments, said in [
        ((), "give one of --subject and --field"),
        (("--subject", ANN, "--field", "a=b"), "give one of --subject and --field"),
        (("--subject", ""), "the subject is empty"),
        (("--field", "owner"), "--field is NAME=VALUE"),
        (
            ("--field", f"account={ANN}"),
            "no registered schema marks a field account personal; marked are owner",
        ),
        (("--subject", ANN, "--topic", "x.y"), "--topic needs PACKHORSE_NAMESPACE"),
    ]:
        ran = purge(database, *arguments, "--why", WHY, "--yes")
        assert (ran.code, said in ran.err) == (2, True), ran.err
        assert ANN not in ran.err
    with pytest.raises(UsageError, match=r"U\+0000"):
        Subject(key="a\0")
    assert ANN not in repr(KEY)


@pytest.mark.case("P8")
def test_a_key_that_is_no_text_is_purged_by_its_bytes(
    connection: psycopg.Connection[Any], database: str, bob: Life
) -> None:
    """Fails when such a key can't be named, or naming it makes another condition vanish: then all of the outbox would go."""
    del bob
    odd = b"\xff\x00" + ANN.encode()
    rested(connection, group=GROUP, topic=TOPIC, key=odd)
    before = connection.execute("SELECT count(*) FROM packhorse.outbox").fetchone()
    counted = purge(database, "--subject-hex", odd.hex(), "--dry-run", "--json").json()["counts"]
    assert counted == {"quarantined_message": 1}
    ran = purge(database, "--subject-hex", "-", "--why", WHY, "--yes", "--json", given=f"{odd.hex()}\n")
    assert (ran.code, ran.json()["counts"]["quarantined emptied"]) == (0, 1)
    assert connection.execute("SELECT count(*) FROM packhorse.outbox").fetchone() == before
    as_text = purge(database, "--subject-hex", ANN.encode().hex(), "--why", WHY, "--yes", "--json").json()
    assert as_text["counts"]["outbox rows deleted"] == 1
    marks = connection.execute(
        "SELECT DISTINCT detail ->> 'subject' = packhorse.purge_mark(%s) FROM packhorse.audit"
        " WHERE detail ->> 'run' = %s",
        (f"key={ANN}", as_text["run"]),
    ).fetchall()
    assert marks == [(True,)], "one subject has one mark, however it is named"
    for arguments, said in [
        (("--subject-hex", "xyz"), "--subject-hex is no hexadecimal"),
        (("--subject-hex", ""), "the subject is empty"),
        (("--subject", "a", "--subject-hex", "61"), "give one of"),
    ]:
        ran = purge(database, *arguments, "--why", WHY, "--yes")
        assert (ran.code, said in ran.err) == (2, True), ran.err


def test_commands_name_a_key_by_its_bytes(connection: psycopg.Connection[Any], database: str) -> None:
    odd, env = b"\xff\x00odd", {"PACKHORSE_DATABASE_URL": database}
    message_id = rested(connection, group=GROUP, topic=TOPIC, key=odd)
    found = packhorse("quarantine", "list", "--key-hex", odd.hex(), "--json", **env).json()
    assert [one["id"] for one in found["messages"]] == [str(message_id)]
    place = ("--group", GROUP, "--topic", TOPIC)
    assert packhorse("explain", *place, "--key-hex", odd.hex(), "--no-search", **env).code in {0, 6}
    for order in (("quarantine", "list"), ("explain", *place), ("processor", "pause", *place, "--why", WHY)):
        refused = packhorse(*order, "--key-hex", "xyz", **env)
        assert (refused.code, "--key-hex is no hexadecimal" in refused.err) == (2, True), refused.err
        both = packhorse(*order, "--key", "a", "--key-hex", "61", **env)
        assert (both.code, "give one of them" in both.err) == (2, True), both.err
