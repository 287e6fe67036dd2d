"""Retention of the inbox on a real database: what goes, what stays and why, who waits, and with which rights."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import NAMESPACE_OID, uuid5

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.support.cli import packhorse
from tests.support.databases import unique_name
from tests.support.inbox import Inbox
from tests.support.wait import eventually

from packhorse.console.doctor.postgres import DatabaseCheck
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import NotReady
from packhorse.processor.inbox.model import InboxRules
from packhorse.processor.inbox.postgres import InboxTables
from packhorse.processor.inbox.retention import InboxRetention
from packhorse.processor.keeping.keeper import Keeper, own_name
from packhorse.producer.grants import grants

DAY = timedelta(days=1)


@pytest.fixture
def inbox(database: str) -> Iterator[Inbox]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield Inbox(database, connection)


def test_days_are_made_ahead_and_ids_of_fast_clocks_move_in(inbox: Inbox) -> None:
    (today,) = inbox.fill(0)
    ahead = inbox.fill(-2, 3)
    turn = inbox.turn(ahead=3)
    days = [inbox.today() + n * DAY for n in (1, 2, 3)]
    assert turn.made == [
        f"inbox_{day:%Y%m%d}" for day in days
    ]  # today's row lies in the default one and stays there
    assert inbox.count(turn.made[1]) == len(ahead)
    assert inbox.one("SELECT message_id FROM packhorse.inbox_default") == today
    inbox.fill(-1, 2)
    assert inbox.count(turn.made[0]) == 2
    again = inbox.turn(ahead=3)
    assert again.made == []


def test_beside_a_large_default_partition_days_are_made_behind_a_proof(inbox: Inbox) -> None:
    inbox.fill(1, 17_000, error="x" * 1000, timed=False)
    inbox.fill(-3)
    turn = inbox.turn(ahead=4)
    # today and tomorrow can't be proven beforehand, on the third day lies a row
    assert turn.made == [f"inbox_{inbox.today() + n * DAY:%Y%m%d}" for n in (2, 4)]
    assert inbox.one("SELECT count(*) FROM pg_constraint WHERE conname = 'inbox_fence'") == 0


@pytest.mark.case("B-11")
def test_weeks_of_rows_go_by_the_day(inbox: Inbox) -> None:
    """Fails when the look at old days leaves out a condition, or a day that may go is kept."""
    names = {n: inbox.day(n) for n in (40, 30, 24, 23, 22, 2)}
    for n in names:
        inbox.fill(n, 50)
        inbox.fill(n, 5, group="other")
    inbox.watermark(1_000)
    inbox.watermark(1_000, group="other")
    turn = inbox.turn()
    assert turn.dropped == [names[n] for n in (40, 30, 24, 23)]
    assert set(inbox.parts()) == set(names.values()) - set(turn.dropped)
    assert all(n == 55 for n in inbox.parts().values())
    again = inbox.turn()
    assert (again.dropped, again.removed, again.overdue) == ([], 0, {})


@pytest.mark.case("B-11")
def test_one_process_works_at_a_time(inbox: Inbox) -> None:
    """Fails when a turn begins without the claim."""
    tables = InboxTables(inbox.url, "packhorse")
    assert tables.claim("one", 0)
    assert inbox.tried(by="two") is None
    assert inbox.tried(by="one") is not None
    assert inbox.tried(by="two") is not None
    inbox.connection.execute(
        "UPDATE packhorse.inbox_retention SET ran_by = 'dead', seen_at = clock_timestamp() - interval '3 minutes'"
    )
    assert inbox.tried(by="two") is not None
    assert not tables.claim("three", 60)  # the last turn was just now
    tables.close()


@pytest.mark.parametrize("outcome", ["retry", "parked", "quarantine", "uncertain"])
def test_a_day_with_an_open_row_is_emptied_by_rows_and_never_dropped(inbox: Inbox, outcome: str) -> None:
    name = inbox.day(40)
    inbox.fill(40, 2_500)
    (waits,) = inbox.fill(40, outcome=outcome, offset=5_000)
    inbox.watermark(10_000)
    turn = inbox.turn()
    assert (turn.dropped, turn.removed) == ([], 2_500)
    assert turn.overdue == {name: f"message {waits} of group g on t is {outcome}"}
    assert inbox.parts() == {name: 1}
    inbox.connection.execute("UPDATE packhorse.inbox SET outcome = 'done', changed_at = clock_timestamp()")
    closed = inbox.turn()
    assert closed.dropped == []  # its time begins when it was closed
    inbox.connection.execute("UPDATE packhorse.inbox SET changed_at = clock_timestamp() - interval '23 days'")
    inbox.turn()
    assert inbox.parts() == {}


@pytest.mark.case("P-16")
@pytest.mark.parametrize("timed", [True, False])
def test_rows_above_the_watermark_stay_however_old(inbox: Inbox, timed: bool) -> None:
    """Fails when the look at a row leaves out the watermark: an old offset that comes again would run again."""
    inbox.day(40)
    inbox.fill(40, 10, timed=timed)
    inbox.watermark(4)
    inbox.turn()
    left = inbox.connection.execute('SELECT "offset" FROM packhorse.inbox ORDER BY 1').fetchall()
    assert [row[0] for row in left] == [4, 5, 6, 7, 8, 9]
    inbox.watermark(10)
    inbox.turn()
    assert inbox.count() == 0


def test_without_a_watermark_nothing_goes(inbox: Inbox) -> None:
    inbox.fill(40, 10)
    inbox.watermark(100, topic="other")
    turn = inbox.turn()
    assert turn.removed == 0
    assert inbox.count() == 10


@pytest.mark.case("P-16")
def test_the_time_of_a_group_that_is_away_stands_still(inbox: Inbox) -> None:
    """Fails when rows are judged by the clock alone: what was published again meanwhile would run again."""
    inbox.fill(60, timed=False)
    inbox.fill(40, 10, timed=False, offset=10)
    inbox.fill(40, 10, timed=False, group="other")
    inbox.watermark(100, ago=30 * DAY)
    inbox.watermark(100, group="other")
    turn = inbox.turn()
    assert turn.removed == 11  # of g what was old when it went away
    assert inbox.one("SELECT count(*) FROM packhorse.inbox WHERE group_id = 'g'") == 10
    inbox.connection.execute(
        "UPDATE packhorse.inbox_retention SET seen_at = clock_timestamp() - interval '30 days' WHERE group_id = 'g'"
    )
    inbox.watermark(101)  # it is back, and still reads what came meanwhile
    inbox.turn()
    assert inbox.one("SELECT count(*) FROM packhorse.inbox WHERE group_id = 'g'") == 10
    moved = inbox.one(
        "SELECT clock_timestamp() - kept_from FROM packhorse.inbox_retention WHERE group_id = 'g'"
    )
    assert timedelta(days=49, hours=23) < moved < timedelta(days=50, hours=1)
    inbox.connection.execute(
        "INSERT INTO packhorse.pause (group_id, paused_by, paused_at) VALUES ('g', 'p', clock_timestamp() - interval '29 days')"
    )
    inbox.turn()
    paused = inbox.one(
        "SELECT clock_timestamp() - kept_from FROM packhorse.inbox_retention WHERE group_id = 'g'"
    )
    assert paused >= moved


def test_rows_of_a_topic_that_was_made_anew_go_by_its_time(inbox: Inbox) -> None:
    inbox.fill(40, 10, timed=False, offset=1_000)
    inbox.fill(30, 10, timed=False, offset=50)
    inbox.watermark(5_000)
    anew = uuid5(NAMESPACE_OID, "anew")
    inbox.watermark(55, topic_id=anew, first=35 * DAY)
    inbox.turn()
    left = inbox.connection.execute('SELECT "offset" FROM packhorse.inbox ORDER BY 1').fetchall()
    assert [row[0] for row in left] == [55, 56, 57, 58, 59]


def test_what_belongs_to_a_row_goes_with_it(inbox: Inbox) -> None:
    quarantined = """
        INSERT INTO packhorse.quarantined_message (group_id, topic, message_id, topic_id, partition, "offset", headers, reason,
            attempts, first_failed_at, quarantined_at, state)
        SELECT group_id, topic, message_id, gen_random_uuid(), 0, 0, '[]', 'r', 1, changed_at, changed_at, %s
        FROM packhorse.inbox WHERE message_id = ANY(%s)"""
    attempt = """
        INSERT INTO packhorse.failed_attempt (group_id, topic, message_id, attempt, failed_at, reason)
        SELECT group_id, topic, message_id, a, changed_at, 'r' FROM packhorse.inbox, generate_series(1, 3) a
        WHERE message_id = ANY(%s)"""
    redriven = inbox.fill(40, 3)
    waits = inbox.fill(40, 2, outcome="quarantine", offset=10)
    restorable = inbox.fill(40, 2, outcome="discarded", offset=20)
    forgotten = inbox.fill(100, 2, outcome="discarded", offset=30)
    for state, ids in {
        "redriven": redriven,
        "quarantined": waits,
        "discarded": restorable + forgotten,
    }.items():
        inbox.connection.execute(quarantined.encode(), (state, ids))
        inbox.connection.execute(attempt.encode(), (ids,))
    inbox.watermark(100)
    inbox.turn(step=2)
    left = {*waits, *restorable}
    for table in ("inbox", "quarantined_message", "failed_attempt"):
        found = inbox.connection.execute(
            f"SELECT DISTINCT message_id FROM packhorse.{table}".encode()
        ).fetchall()
        assert {row[0] for row in found} == left, table


def test_what_dead_processes_left_goes_once_the_watermark_has_passed_it(inbox: Inbox) -> None:
    inbox.watermark(100)
    inbox.connection.execute("""
        INSERT INTO packhorse.in_hand (group_id, lane, topic_id, partition, offsets, member, at)
        SELECT 'g', gen_random_uuid(), w.topic_id, 0, o, gen_random_uuid(), clock_timestamp() - interval '8 days'
        FROM packhorse.watermark w, (VALUES ('{98,99}'::bigint[]), ('{99,100}')) AS v (o);
        INSERT INTO packhorse.started (group_id, topic_id, partition, "offset", at)
        SELECT 'g', w.topic_id, 0, o, clock_timestamp() - interval '8 days' FROM packhorse.watermark w, generate_series(99, 100) o;
        INSERT INTO packhorse.processor_member (group_id, member, host, pid, seen_at)
        SELECT 'g', gen_random_uuid(), 'h', n, clock_timestamp() - n * interval '8 days' FROM generate_series(0, 1) n""")
    inbox.turn()
    assert inbox.one("SELECT offsets FROM packhorse.in_hand") == [99, 100]
    assert inbox.one('SELECT "offset" FROM packhorse.started') == 100
    assert inbox.one("SELECT pid FROM packhorse.processor_member") == 0


def test_dropping_gives_way_to_whoever_has_the_inbox(inbox: Inbox) -> None:
    name = inbox.day(40)
    inbox.fill(40, 10)
    inbox.watermark(100)
    with psycopg.connect(inbox.url) as other:
        other.execute("SELECT FROM packhorse.inbox LIMIT 1")
        turn = inbox.turn()
        assert turn.dropped == []
        assert inbox.parts() == {name: 10}
    turn = inbox.turn()
    assert turn.dropped == [name]


def test_a_row_that_comes_while_a_day_is_dropped_keeps_it(inbox: Inbox) -> None:
    name = inbox.day(40)
    inbox.fill(40, 10)
    inbox.watermark(100)
    late = """INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, partition, "offset")
        SELECT 'late', topic, message_id, 'done', 0, 0 FROM packhorse.inbox LIMIT 1"""
    with psycopg.connect(inbox.url) as other:
        other.execute(late)
        assert inbox.turn().dropped == []  # not committed: the lock is not to be had
    turn = inbox.turn()
    assert turn.dropped == []
    assert turn.overdue[name].endswith("of group late on t is done")
    assert inbox.parts() == {name: 1}


class Writers:
    """Lanes at work: insert and look up all the time. Their own lock_timeout is the judge."""

    LONGEST = "500ms"

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self.written = 0
        self.errors: list[psycopg.Error] = []
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"SET lock_timeout = '{self.LONGEST}'; SET synchronous_commit = off".encode())
            while not self._stop.wait(0.001):
                try:
                    connection.execute(
                        'INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, partition, "offset") '
                        "VALUES ('w', 't', overlay(gen_random_uuid()::text PLACING 'f' FROM 1)::uuid, 'done', 0, 0)"
                    )
                except psycopg.Error as error:
                    self.errors.append(error)
                    return
                self.written += 1

    @contextmanager
    def writing(self) -> Iterator[None]:
        self._thread.start()
        try:
            eventually(lambda: self.written > 0, what="a row is written")
            yield
            seen = self.written
            eventually(lambda: self.written > seen or bool(self.errors), what="rows are written to the end")
        finally:
            self._stop.set()
            self._thread.join(20)


@pytest.mark.case("B-11")
def test_a_hundred_thousand_rows_go_in_steps_that_writers_do_not_feel(inbox: Inbox) -> None:
    """Fails when rows go in one statement, or a step looks at more rows than it was told."""
    inbox.fill(40, 100_000, timed=False)
    names = [inbox.day(n) for n in (42, 41)]
    for n in (42, 41):
        inbox.fill(n, 1_000)
    inbox.watermark(1_000_000)
    tables = InboxTables(inbox.url, "packhorse")
    seen: list[int] = []
    clean = tables.clean

    def counted(*what: object) -> object:
        done = clean(*what)  # type: ignore[arg-type]
        seen.append(done.seen)
        return done

    tables.clean = counted  # type: ignore[method-assign,assignment]
    retention = InboxRetention(tables, InboxRules(keep_days=22, ahead=2), every=60, by="t", first=0)
    writers = Writers(inbox.url)
    with writers.writing():
        for now in range(200):
            if retention.step(float(now)) > 1:  # that was all
                break
    assert retention.turn is not None
    assert (retention.turn.removed, retention.turn.dropped) == (100_000, names)
    assert max(seen) == 1_000
    assert len(seen) >= 100
    assert writers.errors == []
    assert inbox.one("SELECT count(*) FROM packhorse.inbox WHERE group_id = 'g'") == 0
    assert inbox.one("SELECT count(*) FROM packhorse.inbox") == writers.written


def test_the_processors_role_owns_nothing_and_may_do_it_all(inbox: Inbox) -> None:
    role = unique_name("role")
    inbox.connection.execute(f"CREATE ROLE {role} LOGIN".encode())
    as_role = Inbox(make_conninfo(inbox.url, user=role), inbox.connection)
    try:
        with pytest.raises(NotReady, match="may not keep the inbox"):
            as_role.turn()
        for statement in grants("packhorse", [("processor", role)]):
            inbox.connection.execute(statement.encode())
        name = inbox.day(40)
        inbox.fill(40, 10)
        inbox.fill(40, 10, timed=False)
        inbox.watermark(100)
        turn = as_role.turn(ahead=1)
        assert (turn.dropped, turn.removed, len(turn.made)) == ([name], 10, 2)
    finally:
        inbox.connection.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}".encode())


def test_a_database_that_is_away_is_no_reason_to_end(inbox: Inbox) -> None:
    tables = InboxTables(make_conninfo(inbox.url, port=1), "packhorse")
    retention = InboxRetention(tables, InboxRules(keep_days=22), every=60, by="t", first=5)
    assert retention.step(100.0) == 5.0
    assert retention.step(105.0) == 60.0
    assert retention.step(106.0) == 59.0


def test_for_ever_means_for_ever(inbox: Inbox) -> None:
    inbox.fill(400, 10)
    inbox.watermark(100)
    turn = inbox.turn(None, ahead=1)
    assert (len(turn.made), turn.removed) == (2, 0)
    assert inbox.count() == 10


def test_commands_and_doctor_tell_of_it(inbox: Inbox) -> None:
    kept, gone = inbox.day(41), inbox.day(40)
    (waits,) = inbox.fill(41, outcome="parked")
    inbox.fill(40)
    inbox.watermark(100)
    environ = {"PACKHORSE_DATABASE_URL": inbox.url}

    def told() -> str:
        (found,) = [
            each
            for each in DatabaseCheck(inbox.url, schema="packhorse", timeout=20).findings()
            if each.check == "inbox"
        ]
        return found.found

    assert "not run yet" in told()
    never = packhorse("processor", "retention", "status", **environ)
    assert never.out.startswith("last turn   never")
    assert packhorse("processor", "retention", "run", **environ).code == 0
    assert told() == "7 days are made ahead; 1 old days stay for rows that wait"
    status = packhorse("processor", "retention", "status", "--json", **environ).json()
    assert status["overdue"] == {kept: f"message {waits} of group g on t is parked"}
    assert list(status["kept_from"]) == ["g"]
    assert gone not in inbox.parts()
    dry = packhorse("processor", "retention", "run", "--dry-run", "--json", **environ).json()
    assert (dry["dropped"], list(dry["overdue"])) == ([], [kept])
    assert f"stays       {kept}" in packhorse("processor", "retention", "status", **environ).out
    inbox.connection.execute("UPDATE packhorse.inbox_retention SET ran_by = 'else' WHERE group_id = ''")
    assert "another process" in packhorse("processor", "retention", "run", **environ).out


def test_a_thread_does_it_and_ends_when_told(inbox: Inbox) -> None:
    tables = InboxTables(inbox.url, "packhorse")
    retention = InboxRetention(tables, InboxRules(keep_days=22), every=60, by=own_name(), first=0)
    keeper = Keeper(retention, SYSTEM_CLOCK, what="inbox")
    keeper.start()
    eventually(lambda: retention.turn is not None, what="a turn is over")
    keeper.stop()
    eventually(
        lambda: "packhorse-inbox" not in {thread.name for thread in threading.enumerate()},
        what="the thread has ended",
    )
