"""Redrives of sets on real tables: frozen, confirmed once, asked for once, in order, and halted; a group is played in SQL."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import pytest
from pydantic import SecretStr
from tests.support.console_rows import new_id, one, rested
from tests.support.console_services import service_over
from tests.support.played_group import Group, shell_of
from tests.support.proxy import Proxy
from tests.support.roles import Roles

from packhorse.console.acting.person import this_process
from packhorse.console.acting.postgres import Database, Rows, opened
from packhorse.console.redriving.editing import Edit
from packhorse.console.redriving.edits import EditTables
from packhorse.console.redriving.records import RunState
from packhorse.console.redriving.service import Redrives
from packhorse.console.redriving.shell import Point, RedriveShell
from packhorse.console.redriving.tallying import Member
from packhorse.console.redriving.wanted import How, Wanted
from packhorse.console.running.lease import Ending, Lease
from packhorse.console.running.loop import Step
from packhorse.console.running.postgres import Leases, lasting
from packhorse.console.running.sql import REDRIVES
from packhorse.console.running.working import work
from packhorse.console.settings import ConsoleSettings
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import DatabaseUnavailable, Forbidden, OwnershipLost, UnknownId, UsageError

WHY = "fixed in 1.4.2"
ALL = Wanted(group="figures")
QUICK = How(rate=100_000, stages=(1, 5, 20, 100))


class Killed(BaseException):
    """Ends a runner where it stands, as kill -9 does."""


@pytest.fixture
def tables(database: str) -> Iterator[Database]:
    with opened(database, schema="packhorse", timeout=10) as tables:
        yield tables


@pytest.fixture
def redrives(tables: Database) -> Redrives:
    return service_over(tables).redrives


def confirmed(redrives: Redrives, how: How = QUICK, wanted: Wanted = ALL) -> int:
    frozen = redrives.preview(wanted, how)
    redrives.confirm(frozen.redrive.id, why=WHY)
    return frozen.redrive.id


def driven(shell: RedriveShell, group: Group, *, most: int = 10_000) -> Step:
    """Step until the run is over, the group running beside it; time goes on a second a step."""
    now = 1_000.0
    for _ in range(most):
        now += 1.0
        if (step := shell.step(now)).over:
            return step
        group.run()
    raise AssertionError(f"not over after {most} steps: {shell.progress()}")


def audited(connection: psycopg.Connection[Any]) -> list[UUID]:
    rows = connection.execute("SELECT message_id FROM packhorse.audit WHERE act = 'redrive' ORDER BY id")
    return [row[0] for row in rows]


@pytest.mark.case("O-01")
def test_what_comes_after_the_preview_is_not_redriven(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the confirmation asks the filter again instead of the frozen members."""
    frozen = {rested(connection, key=b"%d" % n) for n in range(20)}
    preview = redrives.preview(ALL, QUICK)
    assert (preview.redrive.members, preview.waiting) == (20, 20)
    later = {rested(connection, key=b"later") for _ in range(5)}
    redrives.confirm(preview.redrive.id, why=WHY)
    driven(shell_of(tables, preview.redrive.id), Group(connection))
    assert set(audited(connection)) == frozen
    assert later == {
        row[0]
        for row in connection.execute(
            "SELECT message_id FROM packhorse.quarantined_message WHERE state = 'quarantined'"
        )
    }
    row, progress = redrives.find(preview.redrive.id)
    assert (row.state, progress.good, progress.total) == (RunState.ENDED, 20, 20)


@pytest.mark.case("O-02")
def test_of_two_who_confirm_at_once_one_does_and_the_other_is_told(
    database: str, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the confirmation does not compare and set the state."""
    rested(connection)
    preview = redrives.preview(ALL, QUICK)
    said: list[str] = []
    gate = threading.Barrier(2)

    def press(name: str) -> None:
        with opened(database, schema="packhorse", timeout=10) as mine:
            gate.wait(10)
            try:
                service_over(mine, this_process(claimed=name)).redrives.confirm(preview.redrive.id, why=WHY)
                said.append("confirmed")
            except OwnershipLost as error:
                said.append(str(error))

    both = [threading.Thread(target=press, args=(name,)) for name in ("ann", "bob")]
    for each in both:
        each.start()
    for each in both:
        each.join(30)
    assert sorted(text.split(":")[0] for text in said) == [
        "confirmed",
        f"redrive {preview.redrive.id} is running already",
    ]
    assert any("confirmed by ann (claimed" in text or "confirmed by bob (claimed" in text for text in said)
    assert one(connection, "SELECT count(*) FROM packhorse.audit WHERE act = 'redrive-set'") == 1


@pytest.mark.case("O-02")
def test_of_two_sets_that_overlap_each_message_goes_once_and_the_later_is_told_which(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a portion claims members without asking whether they are as they were frozen."""
    shared = {rested(connection, reason="refused", key=b"%d" % n) for n in range(3)}
    other = {rested(connection, reason="permanent", key=b"a%d" % n) for n in range(2)}
    first = confirmed(redrives, wanted=Wanted(reason="refused"))
    second = confirmed(redrives)
    driven(shell_of(tables, first), Group(connection))
    driven(shell_of(tables, second), Group(connection))
    assert len(audited(connection)) == 5
    assert set(audited(connection)) == shared | other
    moved = redrives.members(second, state=Member.MOVED)
    assert {member.id for member in moved} == shared
    assert all(member.said is not None and member.said.startswith("redrive by ") for member in moved)
    assert redrives.find(second)[1].good == 2


@pytest.mark.case("O-03")
def test_twenty_thousand_go_in_growing_stages_and_halt_when_failures_return(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the next stage does not wait for the proof of the one before, or failures are not looked at."""
    _many(connection, 20_000)
    run = confirmed(redrives, How(rate=5_000))
    shell, group, sizes = shell_of(tables, run), Group(connection), list[int]()
    now, before = 0.0, 0
    while len(sizes) < 6:
        now += 0.5
        shell.step(now)
        asked = int(
            one(connection, "SELECT count(*) FROM packhorse.redrive_member WHERE asked_at IS NOT NULL")
        )
        if asked != before:
            sizes.append(asked - before)
            before = asked
        group.run()
    assert sizes[:5] == [1, 5, 20, 100, 500]
    group.broken = True
    driven(shell, group)
    row, progress = redrives.find(run)
    assert row.state is RunState.HALTED
    assert row.said is not None
    assert "failed again" in row.said
    assert progress.waiting > 10_000
    quiet = one(connection, "SELECT count(*) FROM packhorse.quarantined_message WHERE redrives = 0")
    assert quiet == progress.waiting


@pytest.mark.case("O-03")
def test_the_first_failure_of_a_canary_halts_and_a_resume_begins_small_again(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a canary's failure is borne, or a resumed run goes on with large stages."""
    _many(connection, 200)
    run = confirmed(redrives)
    group = Group(connection, broken=True)
    driven(shell_of(tables, run), group)
    assert redrives.find(run)[0].state is RunState.HALTED
    assert len(audited(connection)) == 1
    group.broken = False
    redrives.resume(run, why="now it is fixed")
    shell = shell_of(tables, run)
    shell.step(1.0)
    assert len(audited(connection)) == 2
    driven(shell, group)
    row, progress = redrives.find(run)
    assert (row.state, progress.good, progress.bad) == (RunState.ENDED, 199, 1)


@pytest.mark.case("O-04")
@pytest.mark.parametrize("point", Point)
def test_a_runner_that_dies_at_any_point_leaves_none_twice_and_none_out(
    tables: Database, database: str, redrives: Redrives, connection: psycopg.Connection[Any], point: Point
) -> None:
    """Fails when the members are marked in another transaction than the one that asks for them."""
    ids = {rested(connection, key=b"%d" % n) for n in range(60)}
    run, group = confirmed(redrives), Group(connection)
    for death in range(40):
        met: list[Point] = []

        def dies(at: Point, met: list[Point] = met, death: int = death) -> None:
            met.append(at)
            if at is point and len(met) > death % 3:
                raise Killed

        connection.execute("UPDATE packhorse.redrive SET lease_until = NULL")
        with opened(database, schema="packhorse", timeout=10) as mine:
            try:
                driven(shell_of(mine, run, signal=dies), group)
            except Killed:
                group.run()
                continue
        break
    assert sorted(audited(connection)) == sorted(ids)
    assert sorted(group.ran) == sorted(ids)
    assert redrives.find(run)[1].good == 60


@pytest.mark.case("O-04")
def test_a_runner_that_lost_its_lease_writes_nothing(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a portion does not ask for the token."""
    rested(connection)
    run = confirmed(redrives)
    shell = shell_of(tables, run)
    connection.execute("UPDATE packhorse.redrive SET token = token + 1")
    with pytest.raises(OwnershipLost):
        shell.step(1.0)
    assert audited(connection) == []


@pytest.mark.case("O-06")
def test_several_of_a_key_go_in_their_first_order_and_then_what_waits_behind(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a later member of a key goes behind what is parked, or the head is not the first of them."""
    hashed = "ab" * 16
    third, first, second = (rested(connection, key=b"k", offset=at) for at in (30, 10, 20))
    connection.execute("UPDATE packhorse.quarantined_message SET key_hash = %s", (hashed,))
    connection.execute(
        "INSERT INTO packhorse.parked_key (group_id, topic, key_hash, partition, head_id)"
        " SELECT group_id, topic, key_hash, partition, message_id FROM packhorse.quarantined_message WHERE message_id = %s",
        (second,),
    )
    behind = [_parked(connection, hashed, at) for at in (40, 50)]
    run, group = confirmed(redrives), Group(connection)
    shell = shell_of(tables, run)
    shell.step(1.0)
    assert one(connection, "SELECT head_id FROM packhorse.parked_key") == first
    outcomes = dict(connection.execute("SELECT message_id, outcome FROM packhorse.inbox").fetchall())
    assert (outcomes[first], outcomes[second], outcomes[third]) == ("retry", "parked", "parked")
    driven(shell, group)
    assert group.ran == [first, second, third, *behind]
    assert redrives.find(run)[1].good == 3


@pytest.mark.case("O-06")
def test_what_waits_behind_a_head_that_failed_again_is_left_and_named(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a later member of a key runs although the one before it failed, or keeps the run from its end."""
    first, second = (rested(connection, key=b"k", offset=at) for at in (10, 20))
    connection.execute("UPDATE packhorse.quarantined_message SET key_hash = %s", ("ab" * 16,))
    run = confirmed(redrives, How(rate=100_000, most_failures=5))
    group = Group(connection, broken=True)
    driven(shell_of(tables, run), group)
    row, progress = redrives.find(run)
    assert (row.state, progress.bad, progress.left) == (RunState.ENDED, 1, 1)
    (left,) = redrives.members(run, state=Member.LEFT)
    assert left.id == second
    assert (
        left.said == f"waits behind {first} of its key, which is quarantine: it runs once that is dealt with"
    )
    assert group.ran == [first]


def test_a_key_that_waits_for_a_message_outside_the_set_is_left(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    head = rested(connection, key=b"k", offset=1, reason="permanent")
    member = rested(connection, key=b"k", offset=2)
    connection.execute("UPDATE packhorse.quarantined_message SET key_hash = %s", ("ab" * 16,))
    connection.execute(
        "INSERT INTO packhorse.parked_key (group_id, topic, key_hash, partition, head_id)"
        " SELECT group_id, topic, key_hash, partition, message_id FROM packhorse.quarantined_message WHERE message_id = %s",
        (head,),
    )
    preview = redrives.preview(Wanted(reason="attempts-exhausted"), QUICK)
    assert "order: 1" in " ".join(f"{check.code}: {check.count}" for check in preview.redrive.checks)
    redrives.confirm(preview.redrive.id, why=WHY)
    driven(shell_of(tables, preview.redrive.id), Group(connection))
    (left,) = redrives.members(preview.redrive.id, state=Member.LEFT)
    assert (left.id, left.said) == (
        member,
        f"its key waits behind {head}, which is quarantine and not in the set",
    )
    assert audited(connection) == []


@pytest.mark.case("O-08")
def test_what_fails_again_is_one_message_with_its_history_and_a_cap_leaves_it_out(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a redrive forgets how often it was redriven, or the cap is not asked."""
    message = rested(connection)
    group = Group(connection, broken=True)
    for _ in range(10):
        run = confirmed(redrives)
        driven(shell_of(tables, run), group)
        redrives.abort(run, why="it failed again")
    assert audited(connection) == [message] * 10
    assert one(connection, "SELECT redrives FROM packhorse.quarantined_message") == 10
    preview = redrives.preview(ALL, QUICK)
    assert (preview.waiting, preview.samples[0].said) == (0, "redriven 10 times already, the cap is 10")
    assert [check.code for check in preview.redrive.checks if "--beyond-cap" in check.said] == ["capped"]
    assert redrives.preview(ALL, How(cap=None)).waiting == 1


def test_a_preview_that_expired_is_not_confirmed(
    redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    rested(connection)
    preview = redrives.preview(ALL, QUICK)
    connection.execute("UPDATE packhorse.redrive SET expires_at = clock_timestamp() - interval '2 days'")
    with pytest.raises(OwnershipLost, match="expired at"):
        redrives.confirm(preview.redrive.id, why=WHY)
    redrives.preview(ALL, QUICK)
    with pytest.raises(UnknownId, match="there is no redrive"):
        redrives.find(preview.redrive.id)


def test_filters_that_match_nothing_everything_or_too_much_are_refused(
    redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    for n in range(3):
        rested(connection, key=b"%d" % n)
    with pytest.raises(UnknownId, match="nothing in quarantine fits"):
        redrives.preview(Wanted(group="nobody"), QUICK)
    with pytest.raises(UsageError, match="or say --all"):
        redrives.preview(Wanted(), QUICK)
    assert redrives.preview(Wanted(), QUICK, everything=True).waiting == 3
    with pytest.raises(UsageError, match="more than 2 messages fit"):
        redrives.preview(ALL, How(limit=2))
    with pytest.raises(UnknownId, match="1 of the 2 ids"):
        redrives.preview(Wanted(ids=(new_id(), audited_one(connection))), QUICK)
    assert one(connection, "SELECT count(*) FROM packhorse.redrive") == 1
    with pytest.raises(UnknownId, match="there is no redrive 99"):
        redrives.confirm(99, why=WHY)


def audited_one(connection: psycopg.Connection[Any]) -> UUID:
    found: UUID = one(connection, "SELECT message_id FROM packhorse.quarantined_message LIMIT 1")
    return found


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (Wanted(topic="x.y"), 1),
        (Wanted(type="T"), 1),
        (Wanted(tenant="acme"), 1),
        (Wanted(key="K-7"), 1),
        (Wanted(text="100%_SURE"), 1),
        (Wanted(since=SYSTEM_CLOCK.now() - timedelta(days=1)), 4),
        (Wanted(until=SYSTEM_CLOCK.now() - timedelta(days=1)), 1),
    ],
)
def test_filters(redrives: Redrives, connection: psycopg.Connection[Any], wanted: Wanted, count: int) -> None:
    """Fails when a filter is left out of the statement, or takes letters of LIKE for more than they are."""
    rested(connection, topic="x.y", error="100% sure")
    rested(connection, type="T")
    rested(connection, tenant="acme", error="E: 100%_sure at x")
    rested(connection, key=b"K-7")
    rested(connection, quarantined_at=SYSTEM_CLOCK.now() - timedelta(days=3))
    assert redrives.preview(wanted, QUICK).redrive.members == count


def test_a_failure_is_named_by_the_first_digits_of_its_print(
    redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    rested(connection)
    rested(connection, reason="permanent")
    whole = one(
        connection,
        "SELECT packhorse.failure_print(group_id, topic, type, reason, error) FROM packhorse.quarantined_message"
        " WHERE reason = 'permanent'",
    )
    for given in (whole, whole[:8]):
        preview = redrives.preview(Wanted(failure=given), QUICK)
        assert [sample.reason for sample in preview.samples] == ["permanent"]


def test_a_pause_holds_at_once_and_an_abort_for_good(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a runner asks on after the pause is on record."""
    _many(connection, 50)
    run, group = confirmed(redrives), Group(connection)
    shell = shell_of(tables, run)
    shell.step(1.0)
    redrives.pause(run, why="busy")
    with pytest.raises(OwnershipLost):
        shell.step(2.0)
    assert len(audited(connection)) == 1
    with pytest.raises(OwnershipLost, match="is paused and can't be changed so: pause takes running"):
        redrives.pause(run, why="busy")
    redrives.resume(run, why="quiet now")
    shell.step(3.0)
    group.run()
    redrives.abort(run, why="enough")
    with pytest.raises(OwnershipLost):
        redrives.resume(run, why="no")
    row, progress = redrives.find(run)
    assert (row.state, progress.good, progress.waiting, progress.left) == (RunState.ABORTED, 1, 0, 49)


def test_the_checks_say_what_speaks_against_it(
    redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a check counts what it should not, or is left out."""
    long_ago = SYSTEM_CLOCK.now() - timedelta(days=30)
    rested(connection, key=None, reason="timeout")
    rested(connection, key=None, quarantined_at=long_ago)
    rested(connection, key=None, reason="uncertain")
    rested(connection, key=None, reason="undecodable")
    rested(connection, key=None, headers=[["expires-at", "MjAyNi0wMS0wMVQwMDowMDowMFo="]])
    rested(connection, key=None, headers=[["expires-at", "anVuaw=="]])
    rested(connection, key=b"k")
    connection.execute(
        "INSERT INTO packhorse.processor_member (group_id, member, host, pid, started_at)"
        " VALUES ('figures', gen_random_uuid(), 'h', 1, clock_timestamp() - interval '1 hour')"
    )
    found = [(check.code, check.count) for check in redrives.preview(ALL, QUICK).redrive.checks]
    assert found == [
        ("cause", 6),
        ("same-bytes", 1),
        ("in-doubt", 1),
        ("side-effects", 1),
        ("order", 1),
        ("stale", 1),
        ("expired", 1),
    ]
    connection.execute("DELETE FROM packhorse.processor_member")
    (cause, *_) = redrives.preview(ALL, QUICK).redrive.checks
    assert cause.said.startswith("no process of group figures is alive")


def _many(connection: psycopg.Connection[Any], count: int) -> None:
    connection.execute(
        'INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, attempt, partition, "offset")'
        " SELECT 'figures', 'airline.aircraft', gen_random_uuid(), 'quarantine', 5, 0, n FROM generate_series(1, %s) n",
        (count,),
    )
    connection.execute(
        'INSERT INTO packhorse.quarantined_message (group_id, topic, message_id, topic_id, partition, "offset", key, payload,'
        " headers, reason, error, attempts, first_failed_at, key_hash)"
        " SELECT group_id, topic, message_id, gen_random_uuid(), partition, \"offset\", message_id::text::bytea, '\\x00', '[]',"
        " 'attempts-exhausted', 'ValueError at h.py:1', 5, clock_timestamp(), md5(message_id::text) FROM packhorse.inbox"
    )


def _parked(connection: psycopg.Connection[Any], hashed: str, offset: int) -> UUID:
    found = new_id()
    connection.execute(
        'INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, attempt, partition, "offset")'
        " VALUES ('figures', 'airline.aircraft', %s, 'parked', 1, 2, %s)",
        (found, offset),
    )
    connection.execute(
        "INSERT INTO packhorse.parked_message (group_id, topic, message_id, key_hash, topic_age, topic_id, partition,"
        ' "offset", timestamp_ms, headers)'
        " VALUES ('figures', 'airline.aircraft', %s, %s, 0, gen_random_uuid(), 2, %s, 0, '[]')",
        (found, hashed, offset),
    )
    return found


@pytest.mark.case("O-01")
def test_a_right_that_is_withdrawn_between_preview_and_confirmation_is_missing(
    roles: Roles, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the confirmation trusts the preview's check of the right."""
    role = roles.make("operator")
    rested(connection)
    with opened(roles.url(role), schema="packhorse", timeout=10) as mine:
        theirs = service_over(mine).redrives
        preview = theirs.preview(ALL, QUICK)
        connection.execute("UPDATE packhorse.operator SET role = 'viewer' WHERE name = %s", (role,))
        with pytest.raises(Forbidden, match="may not redrive messages"):
            theirs.confirm(preview.redrive.id, why=WHY)
        with pytest.raises(Forbidden, match="may not redrive messages"):
            theirs.preview(ALL, QUICK)
        assert theirs.find(preview.redrive.id)[0].state is RunState.PREVIEWED
    assert audited(connection) == []


@pytest.mark.case("O-04")
def test_a_connection_that_is_cut_in_the_middle_is_waited_out(
    database: str, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a lost connection ends the run, or what was committed under it is asked for again."""
    ids = {rested(connection, key=b"%d" % n) for n in range(30)}
    run, group = confirmed(redrives), Group(connection)
    host = urlsplit(database)
    with Proxy((host.hostname or "", host.port or 0)) as proxy:
        url = database.replace(f"{host.hostname}:{host.port}", f"{proxy.host}:{proxy.port}")
        settings = ConsoleSettings(database_url=SecretStr(url), timeout=2)
        cuts, stop = [Point.AFTER_COMMIT, Point.BEFORE_COMMIT], threading.Event()

        def cut(at: Point) -> None:
            group.run()
            if cuts and at is cuts[0]:
                cuts.pop(0)
                proxy.cut()
                proxy.resume()

        with lasting(settings) as work_over, lasting(settings) as beside:
            leases = Leases(work_over, REDRIVES)

            def tell(text: str) -> None:
                group.run()

            ending = work(
                run,
                what="redrive",
                leases=leases,
                renewing=Leases(beside, REDRIVES),
                begin=lambda lease: RedriveShell(work_over, leases, lease, signal=cut),
                tell=tell,
                stop=stop,
            )
    assert ending is Ending.OVER
    assert not cuts
    assert sorted(audited(connection)) == sorted(ids)
    assert redrives.find(run)[1].good == 30


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("DELETE FROM packhorse.inbox WHERE outcome = 'retry'", "its outcome is not known"),
        (
            "UPDATE packhorse.inbox SET outcome = 'discarded', reason = 'purged' WHERE outcome = 'retry'",
            "discarded: purged",
        ),
    ],
)
def test_a_member_that_was_forgotten_or_purged_tells_nothing_of_the_cause(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any], statement: str, left: str
) -> None:
    """Fails when the run waits for ever for an inbox row that is gone, or halts since somebody erased a person's data."""
    for n in range(3):
        rested(connection, key=b"%d" % n)
    run, group = confirmed(redrives), Group(connection)
    shell = shell_of(tables, run)
    shell.step(1.0)
    connection.execute(statement.encode())
    driven(shell, group)
    row, progress = redrives.find(run)
    assert (row.state, progress.good, progress.left, progress.bad) == (RunState.ENDED, 2, 1, 0)
    said = one(connection, "SELECT said FROM packhorse.redrive_member WHERE state = 'left'")
    assert said.startswith(left)


def test_a_member_of_a_paused_key_is_left_and_named(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a canary whose key a person has paused keeps all others waiting, without a word."""
    for n in range(3):
        rested(connection, key=b"%d" % n)
    connection.execute("UPDATE packhorse.quarantined_message SET key_hash = md5(key)")
    run, group = confirmed(redrives), Group(connection)
    shell = shell_of(tables, run)
    shell.step(1.0)
    # as a processor leaves it that meets the copy of a paused key's message
    connection.execute("UPDATE packhorse.inbox SET outcome = 'parked' WHERE outcome = 'retry'")
    connection.execute("UPDATE packhorse.parked_key SET paused = true, paused_by = 'ann', head_id = NULL")
    driven(shell, group, most=200)
    row, progress = redrives.find(run)
    assert (row.state, progress.good, progress.left, progress.bad) == (RunState.ENDED, 2, 1, 0)
    said = one(connection, "SELECT said FROM packhorse.redrive_member WHERE state = 'left'")
    assert said == "its key is paused by ann: it runs once that is resumed"


def test_old_previews_go_in_portions(redrives: Redrives, connection: psycopg.Connection[Any]) -> None:
    """Fails when a preview first deletes all members of many large old ones, and times out over it, as the next one does."""
    rested(connection)
    connection.execute(
        "INSERT INTO packhorse.redrive (wanted, rate, stages, members, previewed_by, expires_at)"
        " SELECT '{}', 1, '{1}', n, 'ann', clock_timestamp() - interval '2 days' FROM unnest(%s::bigint[]) n",
        ([1_000_000, 90_000, 90_000, 90_000],),
    )
    kept = []
    for _ in range(3):
        redrives.preview(ALL, QUICK)
        kept.append(one(connection, "SELECT count(*) FROM packhorse.redrive WHERE previewed_by = 'ann'"))
    assert kept == [3, 1, 0]


class Unanswered(Leases):
    """Loses the answer of one commit, as a connection does that is cut in it."""

    lose = False

    @contextmanager
    def writing(self, lease: Lease, *, timeout: float | None = None) -> Iterator[Rows]:
        """Write, and commit."""
        with super().writing(lease, timeout=timeout) as rows:
            yield rows
        if self.lose:
            self.lose = False
            raise DatabaseUnavailable("the answer of a commit was lost")


def unanswered_of(database: Database, redrive_id: int) -> tuple[RedriveShell, Unanswered]:
    leases = Unanswered(database, REDRIVES)
    lease = leases.take(redrive_id, "a runner")
    assert lease is not None
    return RedriveShell(database, leases, lease), leases


@pytest.mark.case("O-04")
def test_a_portion_whose_commit_was_not_answered_is_counted(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the counts of before go on: a second canary is asked for, and in the end members that are not there."""
    for n in range(8):
        rested(connection, key=b"%d" % n)
    run, group = confirmed(redrives), Group(connection)
    shell, leases = unanswered_of(tables, run)
    leases.lose = True
    with pytest.raises(DatabaseUnavailable):
        shell.step(1.0)
    for now in range(2, 6):
        shell.step(float(now))
    assert len(audited(connection)) == 1  # the one canary
    driven(shell, group)
    assert (redrives.find(run)[0].state, redrives.find(run)[1].good) == (RunState.ENDED, 8)


@pytest.mark.case("O-03", "O-04")
def test_a_failure_whose_record_was_not_answered_halts(
    tables: Database, redrives: Redrives, connection: psycopg.Connection[Any]
) -> None:
    """Fails when outcomes that were put on record by an unanswered commit are forgotten: the run waits for them for ever."""
    for n in range(8):
        rested(connection, key=b"%d" % n)
    run, group = confirmed(redrives), Group(connection, broken=True)
    shell, leases = unanswered_of(tables, run)
    shell.step(1.0)
    group.run()
    leases.lose = True
    with pytest.raises(DatabaseUnavailable):
        shell.step(2.0)
    assert shell.step(3.0).over
    assert redrives.find(run)[0].state is RunState.HALTED
    assert len(audited(connection)) == 1


def test_an_edited_copy_needs_a_right_of_its_own(roles: Roles, connection: psycopg.Connection[Any]) -> None:
    """Fails when the right to act is enough to change what a message says."""
    message = rested(connection)
    role = roles.make("operator")
    with opened(roles.url(role), schema="packhorse", timeout=10) as mine:
        edits = EditTables(mine)
        with pytest.raises(Forbidden, match="may not send an edited copy"):
            edits.parent(this_process(), message, group=None, topic=None)
        connection.execute("UPDATE packhorse.operator SET edit = true WHERE name = %s", (role,))
        parent = edits.parent(this_process(), message, group=None, topic=None)
        edit = Edit(
            parent=parent,
            id=new_id(),
            payload=b"x",
            headers=(),
            digest="0",
            changed=("n",),
            hash="ab" * 16,
            own_key=b"own",
        )
        connection.execute("UPDATE packhorse.operator SET edit = false WHERE name = %s", (role,))
        with pytest.raises(Forbidden, match="may not send an edited copy"):
            edits.send(this_process(), edit, why=WHY)
        connection.execute("UPDATE packhorse.operator SET edit = true WHERE name = %s", (role,))
        edits.send(this_process(), edit, why=WHY)
        with pytest.raises(OwnershipLost, match="has moved since"):
            edits.send(this_process(), edit, why=WHY)
    rows = connection.execute("SELECT message_id, outcome FROM packhorse.inbox").fetchall()
    assert sorted(rows) == sorted([(message, "discarded"), (edit.id, "parked")])
