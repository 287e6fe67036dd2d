"""What does not add up about jobs is found by name, said, and put right where that is safe: on a real database."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb
from tests.support.cli import Ran, packhorse
from tests.support.console_rows import handled, horizon_past_all, new_id, one, recorded, rested
from tests.support.job_lives import GROUP, TOPIC, TYPE, jobs, left
from tests.support.roles import Roles
from tests.support.whole_schema import content

from packhorse.console.acting.person import this_process
from packhorse.console.acting.postgres import opened
from packhorse.console.reconciling import sql
from packhorse.console.reconciling.postgres import ReconcilingTables
from packhorse.console.reconciling.service import Reconciling

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)
OFF, ON = "SET session_replication_role = replica", "SET session_replication_role = DEFAULT"


def reconcile(url: str, *arguments: str, code: int | None = None) -> dict[str, tuple[int, set[str]]]:
    """Run the command; return the findings by name: how many, and which."""
    ran = command(url, *arguments, "--json")
    assert ran.out, ran.err
    assert code is None or ran.code == code, ran.err
    return {each["name"]: (each["left"], set(each["ids"])) for each in ran.json()["findings"]}


def command(url: str, *arguments: str) -> Ran:
    return packhorse("reconcile", *arguments, PACKHORSE_DATABASE_URL=url)


def well(connection: Connection) -> list[UUID]:
    """Write jobs of all kinds that add up."""
    made: list[UUID] = []
    for state, outcome in (
        ("succeeded", "done"),
        ("cancelled", "skipped"),
        ("expired", "skipped"),
        ("retrying", "retry"),
    ):
        for job in jobs(connection, state, ago=HOUR):
            handled(connection, job, group=GROUP, topic=TOPIC, outcome=outcome)
            made.append(job)
    for state in ("quarantined", "uncertain", "discarded"):
        (job,) = jobs(connection, state, ago=HOUR)
        rested(connection, job, group=GROUP, topic=TOPIC, reason="uncertain" if state == "uncertain" else "r")
        if state == "discarded":
            connection.execute(OFF)
            connection.execute(
                "UPDATE packhorse.quarantined_message SET state = 'discarded' WHERE message_id = %s", (job,)
            )
            connection.execute(ON)
        made.append(job)
    made += jobs(connection, "running")
    (published,) = jobs(connection, "accepted", ago=HOUR, group=None)
    recorded(connection, id=published, key=None, aggregatetype="reports")
    horizon_past_all(connection)
    made += [published, *jobs(connection, "accepted", group=None)]
    (waits,) = jobs(connection, "accepted", ago=HOUR, group=None)
    due(connection, waits, HOUR)
    return [*made, waits]


def due(connection: Connection, job: UUID, within: timedelta) -> None:
    connection.execute(
        "INSERT INTO packhorse.job_due (job_id, due_at, aggregatetype, type, schema_version)"
        " VALUES (%s, clock_timestamp() + %s, 'reports', %s, '1')",
        (job, within, TYPE),
    )


def name(connection: Connection, table: str, job: UUID) -> None:
    token = ", token" if table == "job_running" else ""
    value = ", gen_random_uuid()" if token else ""
    connection.execute(
        f"INSERT INTO packhorse.{table} (type, name, job_id{token}) VALUES (%s, %s, %s{value})".encode(),
        (TYPE, f"name {job}", job),
    )


def test_what_adds_up_is_not_named_and_nothing_is_changed(connection: Connection, database: str) -> None:
    """Fails when a job on its way, or one at rest, is taken for one that does not add up."""
    well(connection)
    before = content(connection)
    ran = command(database)
    assert (ran.code, ran.err) == (0, ""), ran.out
    assert ran.out.startswith("all adds up: ")
    assert command(database, "--repair", "--why", "to see").code == 0
    assert content(connection) == before
    assert "--why is missing" in command(database, "--repair").err


def broken(connection: Connection) -> dict[str, set[UUID]]:
    """Write one or more of all that can be wrong; return the ids by the name of the finding."""
    found: dict[str, set[UUID]] = {
        "succeeded-without-fact": set(jobs(connection, "succeeded", ago=HOUR, count=2))
    }
    (retried,) = jobs(connection, "succeeded", ago=HOUR)
    handled(connection, retried, group=GROUP, topic=TOPIC, outcome="retry")
    found["succeeded-without-fact"].add(retried)

    (over,) = jobs(connection, "retrying", ago=HOUR)
    handled(connection, over, group=GROUP, topic=TOPIC, outcome="done")
    found["message-over-job-not"] = {over}

    (frozen,) = jobs(connection, "running", ago=HOUR)
    connection.execute(
        "UPDATE packhorse.job SET lease_until = clock_timestamp() - interval '2 minutes' WHERE id = %s",
        (frozen,),
    )
    found["running-without-lease"] = {frozen}

    found["effect-without-answer"] = set()
    for state in ("intended", "uncertain"):
        (asked,) = jobs(connection, "retrying", ago=HOUR)
        handled(connection, asked, group=GROUP, topic=TOPIC, outcome="retry")
        connection.execute(
            "UPDATE packhorse.job_effect SET state = %s, answer = NULL, timeout = 5, changed_at = clock_timestamp() - interval '11 s'"
            " WHERE job_id = %s",
            (state, asked),
        )
        found["effect-without-answer"].add(asked)

    (unread,) = jobs(connection, "accepted", ago=HOUR, group=None)
    connection.execute(
        "INSERT INTO packhorse.outbox (id, aggregatetype, type, schema_version, created_at) SELECT id, 'reports', type, '1',"
        " (clock_timestamp() - interval '1 hour') AT TIME ZONE 'UTC' FROM packhorse.job WHERE id = %s",
        (unread,),
    )
    found["not-published"] = {unread}

    (late,) = jobs(connection, "accepted", ago=HOUR, group=None)
    due(connection, late, -timedelta(minutes=2))
    found["due-not-sent"] = {late}
    found["message-lost"] = set(jobs(connection, "accepted", ago=HOUR, group=None))
    (given_up,) = jobs(connection, "accepted", ago=HOUR, group=None)
    recorded(connection, id=given_up, key=None, aggregatetype="reports")
    connection.execute(
        "INSERT INTO packhorse.relay_discard (message_id, hold_id, aggregatetype, seq, actor, why) VALUES (%s, 0, 'reports', 1, 'ann', 'x')",
        (given_up,),
    )
    found["message-lost"].add(given_up)

    (rests,) = jobs(connection, "retrying", ago=HOUR)
    (redriven,) = jobs(connection, "quarantined", ago=HOUR)
    (dropped,) = jobs(connection, "uncertain", ago=HOUR)
    (restored,) = jobs(connection, "discarded", ago=HOUR)
    connection.execute(OFF)
    states = {rests: "quarantined", redriven: "redriven", dropped: "discarded", restored: "quarantined"}
    for job, state in states.items():
        rested(connection, job, group=GROUP, topic=TOPIC, reason="uncertain" if job == restored else "r")
        connection.execute(
            "UPDATE packhorse.quarantined_message SET state = %s WHERE message_id = %s", (state, job)
        )
    connection.execute(ON)
    found["behind-its-message"] = set(states)
    found["waits-without-message"] = set(jobs(connection, "quarantined", ago=HOUR))

    orphans = [jobs(connection, "succeeded", ago=HOUR)[0] for _ in range(3)]
    connection.execute("DELETE FROM packhorse.job WHERE id = ANY(%s)", (orphans,))
    due(connection, gone := new_id(), HOUR)
    found["without-a-job"] = {*orphans, gone}

    (ended,) = jobs(connection, "succeeded", ago=HOUR)
    handled(connection, ended, group=GROUP, topic=TOPIC)
    due(connection, ended, HOUR)
    (other,) = jobs(connection, "running")
    name(connection, "job_waiting", other)
    (third,) = jobs(connection, "running")
    name(connection, "job_running", third)
    found["stale-name"] = {ended, other, third}
    return found


def test_each_thing_that_does_not_add_up_is_found_by_name(connection: Connection, database: str) -> None:
    """Fails when a look is left out, or asks the wrong table."""
    well(connection)
    wrong = broken(connection)
    before = content(connection)
    found = reconcile(database, code=1)
    assert {name: ids for name, (_, ids) in found.items()} == {
        name: {str(each) for each in ids} for name, ids in wrong.items()
    }
    assert content(connection) == before, "looking changes nothing"
    told = command(database)
    assert told.code == 1
    assert "no process of group reports lives" in told.out
    assert "2 of jobs that are retrying" in told.out
    assert "repair  none that is safe: a person decides" in told.out
    assert "repair  --repair deletes them" in told.out
    later = reconcile(database, "--unpublished-after", "7200")
    assert "not-published" not in later


def test_what_is_safe_is_put_right_on_the_record_and_the_rest_is_left(
    connection: Connection, database: str
) -> None:
    """Fails when a repair touches more than what it names, or what only a person may decide."""
    fine = well(connection)
    wrong = broken(connection)
    states = dict(connection.execute("SELECT id, state FROM packhorse.job").fetchall())
    found = reconcile(database, "--repair", "--why", "restored on Monday", code=1)
    mended = {"behind-its-message", "without-a-job", "stale-name"}
    assert {name for name, (count, _) in found.items() if not count} == mended
    again = reconcile(database, code=1)
    assert set(again) == set(wrong) - mended
    moved = {
        job: state
        for job, state in connection.execute("SELECT id, state FROM packhorse.job").fetchall()
        if states[job] != state
    }
    assert set(moved) == wrong["behind-its-message"]
    assert sorted(moved.values()) == ["discarded", "quarantined", "retrying", "uncertain"]
    for table in ("job_transition", "job_step", "job_effect", "job_request", "job_due"):
        assert not left(connection, table) & wrong["without-a-job"], table
    assert left(connection, "job_step") >= set(fine)
    for table in ("job_waiting", "job_running", "job_due"):
        assert not left(connection, table) & wrong["stale-name"], table
    acts = connection.execute(
        "SELECT detail ->> 'finding', (detail ->> 'count')::int, why FROM packhorse.audit WHERE act = 'reconcile' ORDER BY 1"
    ).fetchall()
    assert acts == [
        ("behind-its-message", 4, "restored on Monday"),
        ("stale-name", 3, "restored on Monday"),
        ("without-a-job", 4, "restored on Monday"),
    ]
    by = one(
        connection,
        "SELECT count(*) FROM packhorse.job_transition WHERE job_id = ANY(%s) AND actor LIKE '%%(role postgres)'",
        list(wrong["behind-its-message"]),
    )
    assert by == 4


def test_a_message_that_the_relay_holds_back_is_not_published(connection: Connection, database: str) -> None:
    """Fails when the horizon alone is asked, which passes what a hold leaves out."""
    (held,) = jobs(connection, "accepted", ago=HOUR, group=None)
    connection.execute(
        "INSERT INTO packhorse.relay_hold (shard, scope, aggregatetype, message_id, code, reason, heals, horizon)"
        " SELECT 0, 'row', 'reports', %s, 'bad-row', 'x', false, pg_current_snapshot()",
        (held,),
    )
    recorded(connection, id=held, key=None, aggregatetype="reports")
    horizon_past_all(connection)
    assert reconcile(database, "--unpublished-after", "0", code=1) == {"not-published": (1, {str(held)})}


def test_a_name_that_a_claim_has_just_taken_is_not_freed(connection: Connection, database: str) -> None:
    """Fails when a name is freed by what was seen before: two jobs of that name would run."""
    (dead,) = jobs(connection, "succeeded", ago=HOUR)
    name(connection, "job_running", dead)
    with opened(database, schema="packhorse", timeout=20) as acting:
        reconciling = Reconciling(ReconcilingTables(acting), this_process())
        report = reconciling.look()
        (alive,) = jobs(connection, "running")
        connection.execute(
            "UPDATE packhorse.job_running AS r SET job_id = j.id, token = j.token FROM packhorse.job AS j WHERE j.id = %s",
            (alive,),
        )
        reconciling.repair(report, why="stale")
    assert left(connection, "job_running") == {alive}
    assert one(connection, "SELECT count(*) FROM packhorse.audit WHERE act = 'reconcile'") == 0


def test_it_is_said_who_lives_where_a_lease_is_over(connection: Connection, database: str) -> None:
    (frozen,) = jobs(connection, "running", ago=HOUR)
    connection.execute(
        "UPDATE packhorse.job SET lease_until = clock_timestamp() - interval '2 minutes' WHERE id = %s",
        (frozen,),
    )
    for partitions in ([], [{"topic": TOPIC, "partition": 0}]):
        connection.execute(
            "INSERT INTO packhorse.processor_member (group_id, member, host, pid, status) VALUES (%s, gen_random_uuid(), 'h', 7, %s)",
            (GROUP, Jsonb({"partitions": partitions})),
        )
    assert f"2 processes of group {GROUP} live, and 1 have partitions of {TOPIC}" in command(database).out


@pytest.mark.parametrize("step", [1, 3])
def test_portions_miss_nothing(connection: Connection, database: str, step: int) -> None:
    """Fails when a portion begins one row too late."""
    wrong = broken(connection)
    with opened(database, schema="packhorse", timeout=20) as acting:
        report = Reconciling(ReconcilingTables(acting, step=step), this_process()).look()
    assert {finding.name.value: set(finding.ids) for finding in report.found()} == wrong


def test_the_outbox_is_asked_by_id_however_many_jobs_wait(connection: Connection) -> None:
    """Fails when the planner is lured into walking the outbox in its order for each job: minutes for ten thousand."""
    connection.execute("SET enable_bitmapscan = off; SET enable_seqscan = off")
    values = {"state": "accepted", "type": "", "id": UUID(int=0), "patience": 60.0, "step": 10_000}
    asked = "EXPLAIN " + sql.OPEN.replace("{schema}", "packhorse")
    plan = "\n".join(row[0] for row in connection.execute(asked.encode(), values))
    assert "_id_idx on outbox" in plan
    assert "_seq_idx" not in plan


def test_who_may_only_look_repairs_nothing(connection: Connection, database: str, roles: Roles) -> None:
    wrong = broken(connection)
    viewer = roles.url(roles.make("viewer"))
    found = reconcile(viewer, code=1)
    assert set(found) == set(wrong)
    refused = command(viewer, "--repair", "--why", "x")
    assert refused.code != 0
    assert "administer" in refused.err
    admin = roles.url(roles.make("admin"))
    assert {name for name, (count, _) in reconcile(admin, "--repair", "--why", "x").items() if not count} == {
        "behind-its-message", "without-a-job", "stale-name",
    }  # fmt: skip
