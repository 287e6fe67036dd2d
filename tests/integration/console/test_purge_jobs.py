"""What jobs hold of a person goes, of nobody else: whatever state they are in, by key and by field."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb
from tests.support.cli import Ran, packhorse
from tests.support.console_rows import handled, one, rested
from tests.support.job_lives import GROUP, TOPIC, jobs, left
from tests.support.roles import Roles
from tests.support.subjects import ANN, BOB, ERROR, payload_of, traces

Connection = psycopg.Connection[Any]
STATES = (
    "accepted",
    "retrying",
    "succeeded",
    "quarantined",
    "uncertain",
    "discarded",
    "cancelled",
    "expired",
)


def job_of(connection: Connection, who: str, state: str, *, key: str | None = None) -> UUID:
    """Write a job of *who* that holds them wherever a job can, with the rows that its message has in that state."""
    (job,) = jobs(connection, state, ago=timedelta(hours=1), group=None if state == "accepted" else GROUP)
    about = Jsonb({"about": who})
    connection.execute("DELETE FROM packhorse.job_request WHERE job_id = %s", (job,))
    connection.execute(
        "UPDATE packhorse.job SET input = %s, result = %s, checkpoint = %s, progress_text = %s, error = %s, tenant = %s, request_key = %s,"
        " one_running = %s WHERE id = %s",
        (payload_of(connection, who), about, about, f"writing to {who}", ERROR + who, who, key, who, job),
    )
    connection.execute(
        "INSERT INTO packhorse.job_request (type, tenant, request_key, job_id, digest)"
        " SELECT type, tenant, request_key, id, 'd' FROM packhorse.job WHERE id = %s AND request_key IS NOT NULL",
        (job,),
    )
    connection.execute(
        "UPDATE packhorse.job_step SET result = %s, name = %s WHERE job_id = %s", (about, f"mail {who}", job)
    )
    connection.execute(
        "UPDATE packhorse.job_effect SET answer = %s, why = %s WHERE job_id = %s", (about, who, job)
    )
    if state in {"quarantined", "uncertain"}:
        rested(connection, job, group=GROUP, topic=TOPIC, error=ERROR + who, payload=payload_of(connection, "nobody"),
               reason="uncertain" if state == "uncertain" else "r")  # fmt: skip
    elif state == "retrying":
        handled(connection, job, group=GROUP, topic=TOPIC, outcome="retry", error=ERROR + who)
    return job


def purge(url: str, *arguments: str, given: str = "") -> Ran:
    return packhorse("purge", *arguments, given=given, PACKHORSE_DATABASE_URL=url)


def state_of(connection: Connection, job: UUID) -> str:
    return str(one(connection, "SELECT state FROM packhorse.job WHERE id = %s", job))


@pytest.mark.case("P8")
@pytest.mark.parametrize("by", ["key", "field"])
def test_all_that_jobs_hold_of_a_person_goes_and_their_history_stays(
    connection: Connection, database: str, by: str
) -> None:
    """Fails when a column or table of jobs is left out, when a job of somebody else is touched, or when one that waits is left waiting."""
    mine = {state: job_of(connection, ANN, state, key=f"{state} 1") for state in STATES}
    others = [job_of(connection, BOB, state) for state in STATES]
    before = traces(connection, BOB)
    untouched = connection.execute(
        "SELECT j::text FROM packhorse.job AS j WHERE id = ANY(%s) ORDER BY 1", (others,)
    ).fetchall()
    which, given = ("--subject", ANN) if by == "key" else ("--field", f"owner={ANN}")
    ran = purge(database, which, "-", "--why", "request 4711", "--yes", "--json", given=given)
    assert ran.code == 0, ran.out + ran.err
    counts = ran.json()["counts"]
    assert (counts["jobs erased"], counts["jobs taken back"], counts["quarantined emptied"]) == (
        len(STATES),
        2,
        2,
    )
    assert traces(connection, ANN) == []
    assert traces(connection, BOB) == before
    assert (
        untouched
        == connection.execute(
            "SELECT j::text FROM packhorse.job AS j WHERE id = ANY(%s) ORDER BY 1", (others,)
        ).fetchall()
    )
    ends = {
        "accepted": "cancelled",
        "retrying": "cancelled",
        "quarantined": "discarded",
        "uncertain": "discarded",
    }
    assert {state: state_of(connection, job) for state, job in mine.items()} == {
        state: ends.get(state, state) for state in STATES
    }
    rows = connection.execute(
        "SELECT num_nonnulls(input, result, checkpoint, progress_text, tenant, request_key, one_running), error, purged_at IS NOT NULL"
        " FROM packhorse.job WHERE id = ANY(%s)",
        (list(mine.values()),),
    ).fetchall()
    assert set(rows) == {(0, "ValueError at handlers.py:12", True)}
    assert left(connection, "job_transition") >= set(mine.values())
    assert left(connection, "job_effect") >= set(mine.values()), "that an effect happened stays"
    assert not left(connection, "job_request") & set(mine.values())
    again = purge(database, which, "-", "--why", "request 4711", "--yes", "--json", given=given).json()
    assert again["counts"] == {}
    acts = connection.execute("SELECT a::text FROM packhorse.audit AS a WHERE act = 'purge'").fetchall()
    assert acts
    assert not any(ANN in row[0] for row in acts)


def test_a_job_that_runs_is_asked_to_stop_named_and_left_until_it_has_ended(
    connection: Connection, database: str
) -> None:
    """Fails when a job is emptied under its worker, which would write its result afterwards."""
    job = job_of(connection, ANN, "running")
    dry = purge(database, "--subject", ANN, "--dry-run")
    assert dry.code == 1
    assert f"would be left: job {job} (airline.ReportRequest) is running" in dry.out
    assert one(connection, "SELECT cancel_asked_at FROM packhorse.job WHERE id = %s", job) is None
    ran = purge(database, "--subject", ANN, "--why", "request 4711", "--yes")
    assert ran.code == 1
    assert f"left: job {job}" in ran.out
    assert one(
        connection,
        "SELECT cancel_asked_at IS NOT NULL AND input IS NOT NULL FROM packhorse.job WHERE id = %s",
        job,
    )
    connection.execute(
        "UPDATE packhorse.job SET state = 'cancelled', changed_at = clock_timestamp(), changed_by = 'worker', finished_at = clock_timestamp(),"
        " worker = NULL, token = NULL, lease_until = NULL WHERE id = %s",
        (job,),
    )
    assert purge(database, "--subject", ANN, "--why", "request 4711", "--yes").code == 0
    assert traces(connection, ANN) == []


def test_by_key_a_request_key_or_a_name_is_enough_and_what_can_not_be_read_is_said(
    connection: Connection, database: str
) -> None:
    """Fails when jobs are found by their input alone: retention has emptied it, or it has no personal field."""
    (keyed,) = jobs(connection, "succeeded")
    (named,) = jobs(connection, "succeeded", hanging=False)
    connection.execute("UPDATE packhorse.job SET request_key = %s, input = NULL WHERE id = %s", (ANN, keyed))
    connection.execute("UPDATE packhorse.job SET one_running = %s WHERE id = %s", (ANN, named))
    (strange,) = jobs(connection, "succeeded")
    connection.execute("UPDATE packhorse.job SET input = '\\x000000aaaa01' WHERE id = %s", (strange,))
    ran = purge(database, "--subject", ANN, "--why", "request 4711", "--yes", "--json")
    assert ran.json()["counts"]["jobs erased"] == 2
    assert ran.code == 1
    assert ran.json()["not_looked_into"] == [{"table": "job", "schema_id": 0xAAAA, "messages": 1}]
    assert one(connection, "SELECT array_agg(id) FROM packhorse.job WHERE purged_at IS NOT NULL") is not None
    assert one(connection, "SELECT purged_at FROM packhorse.job WHERE id = %s", strange) is None


def test_many_are_found_in_portions_and_an_admin_may_do_it(
    connection: Connection, database: str, roles: Roles
) -> None:
    """Fails when a window ends before its last job, or the grants of an admin lack a table."""
    mine = job_of(connection, ANN, "succeeded")
    payload = payload_of(connection, BOB)
    many = jobs(connection, "accepted", ago=timedelta(hours=2), count=2_100, hanging=False)
    connection.execute("UPDATE packhorse.job SET input = %s WHERE id = ANY(%s)", (payload, many))
    last = job_of(connection, ANN, "retrying")
    admin = roles.url(roles.make("admin"))
    ran = purge(admin, "--subject", ANN, "--why", "request 4711", "--yes", "--json")
    assert ran.code == 0, ran.out + ran.err
    assert ran.json()["counts"]["jobs erased"] == 2
    assert (state_of(connection, mine), state_of(connection, last)) == ("succeeded", "cancelled")
