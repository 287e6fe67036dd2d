"""Jobs on real tables: what is shown of one, lists and counts, cancelling, resolving, redriving, and who may."""

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.support.console_rows import handled, horizon_past_all, new_id, one, recorded
from tests.support.console_services import service_over
from tests.support.job_rows import (
    GROUP,
    TOPIC,
    TYPE,
    accepted,
    begin,
    effect,
    end,
    register_reference,
    running,
    stopped,
    uncertain,
)
from tests.support.roles import Roles
from tests.support.wait import eventually

from packhorse.console.acting.person import this_process
from packhorse.console.acting.postgres import opened
from packhorse.console.jobs.deciding import Verdict
from packhorse.console.jobs.model import Filter, Page, Position
from packhorse.console.service import Service
from packhorse.console.truth.moments import utc
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import Forbidden, OwnershipLost, PackhorseError, UnknownId, UsageError
from packhorse.core.jobs import JobState
from packhorse.local.settings import Endpoints
from packhorse.producer.jobs.messages import JobReference
from packhorse.producer.rows import time_text
from packhorse.schemas.codec import encode_message

EVIL = "<script>\x1b[2J\x1b]0;x\x07[red]at[/red] \u202e"
Db = psycopg.Connection[Any]


def state(connection: Db, job_id: UUID) -> str:
    return str(one(connection, "SELECT state FROM packhorse.job WHERE id = %s", job_id))


def changes(connection: Db, job_id: UUID) -> list[tuple[str, str]]:
    query = "SELECT after, actor FROM packhorse.job_transition WHERE job_id = %s ORDER BY id"
    return connection.execute(query, (job_id,)).fetchall()


def acts(connection: Db, job_id: UUID) -> list[str]:
    query = "SELECT act FROM packhorse.audit WHERE message_id = %s ORDER BY id"
    return [row[0] for row in connection.execute(query, (job_id,)).fetchall()]


@pytest.mark.case("X-01")
def test_a_job_that_never_existed_is_unknown(service: Service, run: Any) -> None:
    """Fails when an id without a row is shown as accepted or waiting, by any command."""
    unknown = new_id()
    with pytest.raises(UnknownId, match="there is no job"):
        service.jobs.show(unknown, local=utc)
    assert not service.truth.status(unknown, search=False).known
    for command in (
        ("show", unknown),
        ("cancel", unknown, "--why", "x", "--yes"),
        ("redrive", unknown, "--why", "x", "--yes"),
        ("resolve", unknown, "--happened", "--why", "x", "--yes"),
    ):
        found = run("job", *command, "--json")
        assert (found.code, found.out) == (6, ""), found.err
        assert "there is no job" in found.err


@pytest.mark.case("X-02")
def test_a_job_is_followed_from_its_transaction_to_its_end(
    service: Service, connection: Db, database: str
) -> None:
    """Fails when status says of a stage more, or less, than the tables: an open transaction, "accepted" as done, no history."""

    def standing() -> str:
        return service.truth.status(job_id, search=False).standing

    connection.execute("UPDATE packhorse.relay SET epoch = 1")
    with psycopg.connect(database) as writer:
        job_id = accepted(writer, recorded(writer, key=None, type=TYPE))
        assert not service.truth.status(job_id, search=False).known
        writer.commit()
    assert standing() == "job accepted; recorded, not yet published"
    horizon_past_all(connection)
    assert standing() == "job accepted; published, no delivery known in this database"
    begin(connection, job_id)
    assert standing().startswith("job running; ")
    assert [each.after for each in service.jobs.show(job_id, local=utc).facts.transitions] == [
        "accepted",
        "running",
    ]
    end(connection, job_id, "succeeded", result={"report": 17})
    assert standing().startswith("job succeeded; ")
    shown = service.jobs.show(job_id, local=utc)
    assert shown.facts.job.result_bytes is not None
    assert [(each.before, each.after, each.actor) for each in shown.facts.transitions] == [
        (None, "accepted", "app"),
        ("accepted", "running", "worker"),
        ("running", "succeeded", "worker"),
    ]


@pytest.mark.case("X-02")
def test_what_a_job_waits_for_is_said(service: Service, connection: Db) -> None:
    """Fails when a person has to find out by hand why a job does not run: its time, another of its name, a lease that is over."""

    def waits(job_id: UUID) -> str:
        return " ".join(service.jobs.show(job_id, local=utc).words.waits)

    later = SYSTEM_CLOCK.now() + timedelta(hours=1)
    due = accepted(connection, not_before=later)
    connection.execute(
        "INSERT INTO packhorse.job_due (job_id, due_at, aggregatetype, type, schema_version)"
        " VALUES (%s, %s, 'reports', %s, '1')",
        (due, later, TYPE),
    )
    assert "it is not to begin before" in waits(due)
    assert service.truth.status(due, search=False).published == "not yet"
    holder = running(connection, one_running="nightly")
    connection.execute(
        "INSERT INTO packhorse.job_running SELECT type, one_running, id, token FROM packhorse.job WHERE id = %s",
        (holder,),
    )
    behind = accepted(connection, recorded(connection, key=None), one_running="nightly")
    horizon_past_all(connection)
    assert str(holder) in waits(behind)
    assert waits(holder) == ""
    assert "its lease is over" in waits(running(connection, lease=-1))
    again = end(connection, running(connection), "retrying", reason="failed")
    handled(
        connection, again, group=GROUP, topic=TOPIC, outcome="retry", attempt=2, due_at=later, reason="failed"
    )
    assert "attempt 2 is due" in waits(again)
    connection.execute(
        "INSERT INTO packhorse.pause (group_id, topic, partition, paused_by, why) VALUES (%s, '', -1, 'ann', 'import')",
        (GROUP,),
    )
    paused = accepted(connection, recorded(connection, key=None))
    horizon_past_all(connection)
    assert "is paused by ann" in waits(paused)
    assert "is paused by ann" in waits(again)
    assert "for a person" in waits(uncertain(connection))


def test_a_page_reaches_each_job_once_and_filters_narrow_it(service: Service, connection: Db) -> None:
    """Fails when a page skips or repeats a job at its edge, or a filter lets through what it should not."""
    ids = [accepted(connection) for _ in range(5)]
    ids.append(end(connection, running(connection), "succeeded"))
    ids.append(stopped(connection, tenant="acme", type="reports.Other"))
    ids.append(running(connection, topic="reports.slow"))

    def found(**wanted: Any) -> list[UUID]:
        seen: list[UUID] = []
        after: Position | None = None
        while True:
            page = service.jobs.page(Filter(**wanted), after=after, limit=2)
            seen += [each.id for each in page.jobs]
            if (after := page.next) is None:
                return seen

    assert found() == sorted(ids, reverse=True)
    every = frozenset(JobState) - {JobState.SUCCEEDED}
    assert found(states=every) == sorted((each for each in ids if each != ids[5]), reverse=True)
    assert found(states=frozenset({JobState.SUCCEEDED})) == [ids[5]]
    assert found(states=frozenset({JobState.ACCEPTED}), type=TYPE) == sorted(ids[:5], reverse=True)
    assert found(type="reports.Other") == found(tenant="acme") == [ids[6]]
    assert found(topic="reports.slow") == [ids[7]]
    assert found(since=SYSTEM_CLOCK.now() + timedelta(hours=1)) == []
    assert len(found(until=SYSTEM_CLOCK.now() + timedelta(hours=1))) == len(ids)
    connection.execute(
        "UPDATE packhorse.job SET error = 'ValueError at Reports.py:12' WHERE id = %s", (ids[6],)
    )
    assert found(text="reports.py") == [ids[6]]


def test_the_look_is_bounded_and_says_how_far_it_was(service: Service, connection: Db) -> None:
    """Fails when one question goes through all jobs for a filter that no index serves, or ends as if it had seen all."""
    old = accepted(connection, tenant="acme")
    for _ in range(4):
        accepted(connection)
    parts: list[Page] = list(service.jobs.search(Filter(tenant="acme"), after=None, limit=5, most_looked=3))
    assert [part.jobs for part in parts] == [()]
    assert parts[-1].next is not None
    (rest,) = service.jobs.search(Filter(tenant="acme"), after=parts[-1].next, limit=5)
    assert [each.id for each in rest.jobs] == [old]


def test_what_is_stuck_is_found(service: Service, connection: Db) -> None:
    """Fails when a lease that is over, an uncertain job or one that waits for long is not found; or one that waits for its time is."""
    now = SYSTEM_CLOCK.now()
    hour = timedelta(hours=1)
    stuck = {
        accepted(connection, accepted_at=now - hour),
        running(connection, lease=-1),
        uncertain(connection),
    }
    accepted(connection)
    accepted(connection, accepted_at=now - hour, not_before=now + hour)
    running(connection)
    stopped(connection)
    page = service.jobs.page(Filter(stuck=timedelta(minutes=5)), after=None, limit=50)
    assert {each.id for each in page.jobs} == stuck


def test_jobs_are_counted_by_state_and_type(service: Service, connection: Db, run: Any) -> None:
    for _ in range(3):
        accepted(connection)
    accepted(connection, type="reports.Other")
    end(connection, running(connection), "succeeded")
    stopped(connection)
    counts = service.jobs.counts()
    assert [(each.state, each.type, each.jobs, each.exact) for each in counts.counts] == [
        ("accepted", "reports.Other", 1, True),
        ("accepted", TYPE, 3, True),
        ("succeeded", None, 1, True),
        ("quarantined", TYPE, 1, True),
    ]
    told = run("job", "list", "--counts", "--json").json()
    assert [each["jobs"] for each in told["counts"]] == [1, 3, 1, 1]
    assert run("job", "list", "--counts", "--type", TYPE).code == 2


def test_a_job_that_is_to_be_tried_again_is_cancelled_at_once(service: Service, connection: Db) -> None:
    job_id = end(connection, running(connection), "retrying", reason="failed")
    assert service.jobs.cancel(job_id, why="not needed").state is JobState.CANCELLED
    assert changes(connection, job_id)[-1] == ("cancelled", service.people.actor())


def test_a_job_that_waits_is_cancelled_at_once(service: Service, connection: Db) -> None:
    """Fails when the act, its record and the change are not one, a person is not named, or its name stays taken."""
    later = SYSTEM_CLOCK.now() + timedelta(hours=1)
    job_id = accepted(connection, one_waiting="nightly", not_before=later)
    connection.execute("INSERT INTO packhorse.job_waiting VALUES (%s, 'nightly', %s)", (TYPE, job_id))
    connection.execute(
        "INSERT INTO packhorse.job_due (job_id, due_at, aggregatetype, type, schema_version)"
        " VALUES (%s, now(), 'reports', %s, '1')",
        (job_id, TYPE),
    )
    done = service.jobs.cancel(job_id, why="not needed")
    actor = service.people.actor()
    assert (done.state, done.by, done.is_new) == (JobState.CANCELLED, actor, True)
    assert changes(connection, job_id)[-1] == ("cancelled", actor)
    assert acts(connection, job_id) == ["job-cancel"]
    for table in ("job_waiting", "job_due"):
        assert one(connection, f"SELECT count(*) FROM packhorse.{table}") == 0
    row = connection.execute(
        "SELECT finished_at IS NOT NULL, cancel_why FROM packhorse.job WHERE id = %s", (job_id,)
    ).fetchone()
    assert row == (True, "not needed")
    with pytest.raises(OwnershipLost, match="is cancelled already"):
        service.jobs.cancel(job_id, why="again")


def test_a_running_job_is_asked_to_stop_and_once(service: Service, connection: Db) -> None:
    """Fails when a running job is taken from its worker, or the second who asks overwrites the first."""
    job_id = running(connection)
    done = service.jobs.cancel(job_id, why="not needed")
    assert (done.state, done.is_new) == (JobState.RUNNING, True)
    again = service.jobs.cancel(job_id, why="really")
    assert (again.is_new, again.at, again.by) == (False, done.at, done.by)
    assert acts(connection, job_id) == ["job-cancel"]
    row = connection.execute(
        "SELECT state, token IS NOT NULL, cancel_why FROM packhorse.job WHERE id = %s", (job_id,)
    ).fetchone()
    assert row == ("running", True, "not needed")
    assert "asked to stop" in service.truth.status(job_id, search=False).standing


@pytest.mark.case("O-02")
def test_a_cancelling_that_became_another_thing_since_it_was_looked_at_does_nothing(
    service: Service, connection: Db
) -> None:
    """Fails when a worker is asked where the person was told of a cancelling at once, or the act leaves a trace."""
    job_id = accepted(connection)
    begin(connection, job_id)
    with pytest.raises(OwnershipLost, match="was accepted when you looked, and is running"):
        service.jobs.cancel(job_id, why="x", seen=JobState.ACCEPTED)
    assert one(connection, "SELECT cancel_asked_at FROM packhorse.job WHERE id = %s", job_id) is None
    assert acts(connection, job_id) == []
    assert service.jobs.cancel(job_id, why="x", seen=JobState.RUNNING).is_new


def test_what_rests_or_has_ended_is_not_cancelled_and_says_what_to_do(
    service: Service, connection: Db
) -> None:
    for job_id in (stopped(connection), uncertain(connection)):
        with pytest.raises(UsageError, match=f"packhorse quarantine discard {job_id}"):
            service.jobs.cancel(job_id, why="x")
    with pytest.raises(OwnershipLost, match="is succeeded already"):
        service.jobs.cancel(end(connection, running(connection), "succeeded"), why="x")
    assert one(connection, "SELECT count(*) FROM packhorse.audit") == 0


def test_of_two_who_cancel_one_does_and_the_other_is_told(database: str, connection: Db) -> None:
    """Fails when the job's row is not locked before its state is judged: both would cancel, or one end with an error of the database."""
    job_id = accepted(connection)
    told = raced(database, lambda service: str(service.jobs.cancel(job_id, why="x").state))
    assert sum(each == "cancelled" for each in told) == 1
    assert sum("is cancelled already" in each for each in told) == 1
    assert acts(connection, job_id) == ["job-cancel"]
    assert [state for state, _ in changes(connection, job_id)] == ["accepted", "cancelled"]


def raced(database: str, act: Any, **settings: Any) -> list[str]:
    """Let two people do *act* at the same time; return what each was told."""
    told: list[str] = []
    gate = threading.Barrier(2)

    def one_of(name: str) -> None:
        with opened(database, schema="packhorse", timeout=10) as tables:
            mine = service_over(tables, this_process(claimed=name), **settings)
            gate.wait(10)
            try:
                told.append(act(mine))
            except PackhorseError as error:
                told.append(f"{name}: {error}")

    threads = [threading.Thread(target=one_of, args=(name,)) for name in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(told) == 2
    return told


@pytest.mark.case("J-08")
@pytest.mark.parametrize("verdict", Verdict)
def test_an_effect_in_doubt_is_decided_and_the_job_goes_on_by_itself(
    service: Service, connection: Db, verdict: Verdict
) -> None:
    """Fails when decision, redrive and their records are not one commit, or the job waits on after its last doubt is gone."""
    job_id = uncertain(connection)
    answer = {"charge": "ch_17"} if verdict is Verdict.HAPPENED else None
    done = service.jobs.resolve(job_id, verdict, answer=answer, why="seen there")
    actor = service.people.actor()
    assert (done.redriven, done.left, done.state) == (True, (), JobState.RETRYING)
    row = connection.execute(
        "SELECT e.state, e.answer, e.changed_by, e.why, e.idempotency_key FROM packhorse.job_effect AS e"
    ).fetchone()
    assert row == (verdict.value, answer, actor, "seen there", f"{job_id}:charge")
    assert changes(connection, job_id)[-1] == ("retrying", actor)
    assert acts(connection, job_id) == ["job-resolve", "redrive"]
    (group,) = service.truth.status(job_id, search=False).groups
    assert (group.redrive, group.inbox and group.inbox.attempt) == ("asked", 2)
    assert "ch_17" not in str(connection.execute("SELECT detail, why FROM packhorse.audit").fetchall())


def test_of_several_effects_each_is_decided_and_the_last_lets_the_job_go_on(
    service: Service, connection: Db
) -> None:
    """Fails when the job goes on while one is in doubt, or one is guessed."""
    job_id = uncertain(connection, "charge", "mail")
    with pytest.raises(UsageError, match="--effect: charge, mail"):
        service.jobs.resolve(job_id, Verdict.HAPPENED, why="x")
    first = service.jobs.resolve(job_id, Verdict.HAPPENED, effect="charge", why="x")
    assert (first.left, first.redriven, first.state) == (("mail",), False, JobState.UNCERTAIN)
    with pytest.raises(OwnershipLost, match="is not in doubt: it is happened by"):
        service.jobs.resolve(job_id, Verdict.DID_NOT_HAPPEN, effect="charge", why="x")
    with pytest.raises(UnknownId, match="has no effect fax"):
        service.jobs.resolve(job_id, Verdict.HAPPENED, effect="fax", why="x")
    assert service.jobs.resolve(job_id, Verdict.DID_NOT_HAPPEN, why="x").redriven


def test_what_was_called_again_since_the_person_looked_is_not_decided(
    service: Service, connection: Db
) -> None:
    """Fails when a "no" of before counts for a call of after."""
    job_id = uncertain(connection)
    connection.execute("UPDATE packhorse.job_effect SET calls = 2")
    with pytest.raises(OwnershipLost, match="called 2 times by now, and 1 when you looked"):
        service.jobs.resolve(job_id, Verdict.DID_NOT_HAPPEN, calls=1, why="x")
    assert acts(connection, job_id) == []


def test_a_job_that_failed_for_another_reason_is_not_sent_back_by_a_decision(
    service: Service, connection: Db
) -> None:
    """Fails when a decision about an effect redrives what a person has not looked into."""
    job_id = stopped(connection)
    effect(connection, job_id, state="intended")
    done = service.jobs.resolve(job_id, Verdict.HAPPENED, why="x")
    assert (done.redriven, done.state) == (False, JobState.QUARANTINED)


def test_what_a_worker_has_in_hand_is_not_decided(service: Service, connection: Db) -> None:
    job_id = running(connection)
    effect(connection, job_id, state="intended")
    with pytest.raises(UsageError, match="its worker deals with effect charge itself"):
        service.jobs.resolve(job_id, Verdict.HAPPENED, why="x")


def test_of_two_who_decide_one_does_and_the_other_is_told(database: str, connection: Db) -> None:
    """Fails when both decisions count, or the job is sent back twice."""
    job_id = uncertain(connection)
    verdicts = iter((Verdict.HAPPENED, Verdict.DID_NOT_HAPPEN))
    told = raced(
        database,
        lambda service: str(service.jobs.resolve(job_id, next(verdicts), effect="charge", why="x").redriven),
    )
    assert sum(each == "True" for each in told) == 1
    assert sum("is not in doubt: it is" in each for each in told) == 1
    assert acts(connection, job_id) == ["job-resolve", "redrive"]


def test_a_decision_waits_for_a_redrive_that_is_being_done_and_does_not_send_the_job_back_again(
    database: str, connection: Db
) -> None:
    """Fails when the decision locks the job before what the inbox says of its message: the two would end as a deadlock."""
    job_id, told = uncertain(connection), list[Any]()

    def decide() -> None:
        with opened(database, schema="packhorse", timeout=20) as tables:
            told.append(service_over(tables).jobs.resolve(job_id, Verdict.HAPPENED, why="x"))

    deciding = threading.Thread(target=decide)
    with psycopg.connect(database) as redriving:
        redriving.execute(
            "UPDATE packhorse.inbox SET outcome = 'retry', attempt = 2 WHERE message_id = %s", (job_id,)
        )
        deciding.start()
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        eventually(lambda: one(connection, waits) == 1, what="the decision waits for the redrive")
        redriving.execute(
            "UPDATE packhorse.quarantined_message SET state = 'redriven', redrives = 1 WHERE message_id = %s",
            (job_id,),
        )
    deciding.join(30)
    (done,) = told
    assert (done.redriven, done.state) == (False, JobState.RETRYING)
    assert acts(connection, job_id) == ["job-resolve"]


def test_jobs_are_sent_back_by_the_redrive_of_their_messages(run: Any, connection: Db) -> None:
    """Fails when quarantine and job disagree after it, or one that is refused keeps something from the others."""
    good, doubt, other = stopped(connection), uncertain(connection), running(connection)
    refused = run("job", "redrive", good, "--why", "fixed", given="n\n")
    assert (refused.code, state(connection, good)) == (1, "quarantined")
    asked = run("job", "redrive", doubt, "--why", "fixed", given="n\n")
    by_message = run("quarantine", "redrive", doubt, "--why", "fixed", given="n\n")
    assert asked.out.count("effects of its job are in doubt (charge)") == 1
    assert "effects of its job are in doubt (charge)" in by_message.out
    done = run("job", "redrive", good, other, "--why", "fixed", "--yes", "--json")
    assert done.code == 1
    assert [each["done"] for each in done.json()["results"]] == [True, False]
    assert state(connection, good) == "retrying"
    assert (
        one(connection, "SELECT state FROM packhorse.quarantined_message WHERE message_id = %s", good)
        == "redriven"
    )
    second = run("job", "redrive", good, "--why", "fixed", "--yes")
    assert second.code == 5
    assert "was sent back already, by" in second.err


def test_a_length_without_what_it_narrows_is_refused(run: Any) -> None:
    """Fails when `job list --state running --longer-than 1h` lists all that run, as if each ran for an hour."""
    alone = run("job", "list", "--state", "running", "--longer-than", "1h")
    assert (alone.code, "add --stuck" in alone.err) == (2, True)
    assert run("job", "list", "--stuck", "--longer-than", "1h").code == 0


def test_the_commands_ask_show_and_end_with_their_codes(run: Any, connection: Db) -> None:
    """Fails when an act is done without a yes, or a refusal ends as if it had acted."""
    job_id = accepted(connection, recorded(connection, key=None))
    no = run("job", "cancel", job_id, "--why", "x", given="n\n")
    assert (no.code, state(connection, job_id)) == (1, "accepted")
    assert run("job", "cancel", job_id, "--why", "x", "--json").code == 2
    yes = run("job", "cancel", job_id, "--why", "x", given="y\n")
    assert (yes.code, state(connection, job_id)) == (0, "cancelled")
    assert "cancelled at" in yes.out
    again = run("job", "cancel", job_id, "--why", "x", given="y\n")
    assert (again.code, "cancel it?" in again.out) == (5, False), (
        "a person is asked to confirm what is refused then"
    )
    doubt = uncertain(connection)
    rests = run("job", "cancel", doubt, "--why", "x", given="y\n")
    assert (rests.code, "cancel it?" in rests.out) == (2, False)
    assert "packhorse quarantine discard" in rests.err
    given_up = run("quarantine", "discard", doubt, "--why", "x", given="n\n")
    assert "may have happened (charge)" in " ".join(given_up.out.split())
    assert run("job", "resolve", doubt, "--why", "x", "--yes").code == 2
    both = run("job", "resolve", doubt, "--happened", "--did-not-happen", "--why", "x", "--yes")
    assert (both.code, state(connection, doubt)) == (2, "uncertain"), (
        "which of the two was meant is not to be guessed"
    )
    assert run("job", "resolve", doubt, "--did-not-happen", "--answer", "1", "--why", "x", "--yes").code == 2
    assert run("job", "resolve", doubt, "--happened", "--answer", "{", "--why", "x", "--yes").code == 2
    shown = run("job", "resolve", doubt, "--happened", "--why", "x", given="y\n")
    assert shown.code == 0, shown.err
    assert f"{doubt}:charge" in shown.out
    assert "the job goes on by itself" in shown.out
    assert run("job", "resolve", doubt, "--happened", "--effect", "charge", "--why", "x", "--yes").code == 5


def test_an_operators_grants_are_enough_and_a_viewers_are_not(roles: Roles, run: Any, connection: Db) -> None:
    """Fails when a grant is missing for what an operator may do, or an act is begun before its right is checked."""
    operator, viewer = (roles.url(roles.make(purpose)) for purpose in ("operator", "viewer"))
    later = SYSTEM_CLOCK.now() + timedelta(days=1)
    waits = accepted(connection, one_waiting="nightly", one_running="ledger", not_before=later)
    connection.execute(
        "INSERT INTO packhorse.job_waiting (type, name, job_id) VALUES (%s, 'nightly', %s)", (TYPE, waits)
    )
    connection.execute(
        "INSERT INTO packhorse.job_due (job_id, due_at, aggregatetype, type, schema_version)"
        " VALUES (%s, %s, 'reports', %s, '1')",
        (waits, later, TYPE),
    )
    acting = (
        ("cancel", waits),
        ("cancel", accepted(connection)),
        ("cancel", running(connection)),
        ("redrive", stopped(connection)),
        ("resolve", uncertain(connection), "--happened"),
    )
    for name, job_id, *more in acting:
        arguments = ("job", name, job_id, *more, "--why", "x", "--yes")
        before = state(connection, job_id)
        refused = run(*arguments, PACKHORSE_DATABASE_URL=viewer)
        assert (refused.code, state(connection, job_id)) == (8, before), refused.err
        done = run(*arguments, PACKHORSE_DATABASE_URL=operator)
        assert done.code == 0, done.err
    assert one(connection, "SELECT count(*) FROM packhorse.job_waiting WHERE job_id = %s", waits) == 0
    assert one(connection, "SELECT count(*) FROM packhorse.job_due WHERE job_id = %s", waits) == 0
    for url in (operator, viewer):
        for look in (("show", acting[0][1]), ("list",), ("list", "--counts"), ("list", "--stuck")):
            found = run("job", *look, PACKHORSE_DATABASE_URL=url)
            assert found.code == 0, found.err


def test_a_right_that_is_withdrawn_is_gone_for_the_act(database: str, roles: Roles, connection: Db) -> None:
    """Fails when the right of the look before counts for the act."""
    role = roles.make("operator")
    job_id = uncertain(connection)
    with opened(roles.url(role), schema="packhorse", timeout=5) as tables:
        service = service_over(tables)
        service.jobs.show(job_id, local=utc)
        connection.execute("UPDATE packhorse.operator SET role = 'viewer' WHERE name = %s", (role,))
        with pytest.raises(Forbidden):
            service.jobs.resolve(job_id, Verdict.HAPPENED, why="x")
        with pytest.raises(Forbidden):
            service.jobs.cancel(accepted(connection), why="x")
    assert state(connection, job_id) == "uncertain"
    assert one(connection, "SELECT count(*) FROM packhorse.audit") == 0


@pytest.mark.case("X-07")
def test_what_was_put_into_a_job_is_shown_on_the_record_alone(roles: Roles, run: Any, connection: Db) -> None:
    """Fails when a result, an answer, a name or who asked is shown without the right by name, or without a record of it."""
    secrets = ("ann@example.org", "ch_17", "step-secret", "checkpoint-secret", "Ann Private")
    job_id = running(
        connection, actor="Ann Private", request_key="ann@example.org", one_running="ann@example.org"
    )
    effect(connection, job_id, state="answered", answer={"id": "ch_17"})
    connection.execute(
        "INSERT INTO packhorse.job_step (job_id, name, attempt, result) VALUES (%s, 'load', 1, '\"step-secret\"')",
        (job_id,),
    )
    connection.execute(
        "UPDATE packhorse.job SET checkpoint = '\"checkpoint-secret\"' WHERE id = %s", (job_id,)
    )
    end(connection, job_id, "succeeded", result={"for": "ann@example.org"})
    role = roles.make("admin")
    url = {"PACKHORSE_DATABASE_URL": roles.url(role)}
    for command in (
        ("job", "show", job_id),
        ("job", "show", job_id, "--json"),
        ("job", "list"),
        ("job", "list", "--json"),
        ("status", job_id),
        ("status", job_id, "--json"),
        ("explain", job_id),
    ):
        found = run(*command, **url)
        assert found.code == 0, found.err
        assert not [secret for secret in secrets if secret in found.out], command
    names_shown = run("job", "show", job_id, "--show-key", **url).out
    assert names_shown.count("ann@example.org") == 2
    assert "\nsteps\n" in names_shown.replace(" ", "")
    assert "\noutsideeffects\n" in names_shown.replace(" ", "")
    arguments = ("job", "show", job_id, "--unmask", "--why", "ticket 17")
    refused = run(*arguments, **url)
    assert (refused.code, refused.out) == (8, "")
    assert acts(connection, job_id) == []
    connection.execute("UPDATE packhorse.operator SET personal = true WHERE name = %s", (role,))
    for form in ((), ("--json",)):
        found = run(*arguments, *form, **url)
        assert all(secret in found.out for secret in secrets), found.out
    assert acts(connection, job_id) == ["unmask", "unmask"]
    assert run("job", "show", job_id, "--unmask").code == 2


@pytest.mark.case("X-07")
def test_what_comes_from_elsewhere_is_printed_and_never_obeyed(run: Any, connection: Db) -> None:
    """Fails when one column of a job is printed as it is."""
    text = EVIL
    names: dict[str, Any] = dict.fromkeys(
        ("tenant", "actor", "correlation_id", "request_key", "one_running", "type"), text
    )
    job_id = running(connection, **names)
    effect(connection, job_id, EVIL, state="intended")
    connection.execute(
        "INSERT INTO packhorse.job_step (job_id, name, attempt) VALUES (%s, %s, 1)", (job_id, text)
    )
    connection.execute(
        "UPDATE packhorse.job SET progress_text = %s, progress_at = now(), progress_done = 1, error = %s, cancel_why = %s,"
        " cancel_asked_at = now(), cancel_asked_by = %s, reason = %s, changed_by = %s WHERE id = %s",
        (text, text, text, text, text, text, job_id),
    )
    for command in (
        ("job", "show", job_id, "--show-key"),
        ("job", "show", job_id, "--json"),
        ("job", "list"),
        ("job", "list", "--json"),
        ("job", "list", "--counts"),
        ("status", job_id),
        ("explain", job_id),
        ("job", "cancel", job_id, "--why", EVIL, "--yes"),
    ):
        found = run(*command)
        assert (found.out + found.err).replace("\n", "").isprintable(), command


def test_the_message_of_a_job_is_not_edited(
    run: Any, connection: Db, stack: Endpoints, tmp_path: Path
) -> None:
    """Fails when a copy is made that names a job under another message's id: nobody could run it."""
    job_id, file = stopped(connection), tmp_path / "payload.json"
    file.write_text("{}")
    arguments = ("quarantine", "edit", job_id, "--payload", file, "--why", "x", "--yes")
    found = run(*arguments, PACKHORSE_REGISTRY_URL=stack.registry_url)
    assert found.code == 2, found.err
    assert "is a job's" in found.err
    assert state(connection, job_id) == "quarantined"


def test_top_counts_the_jobs_that_are_not_over(run: Any, connection: Db) -> None:
    """Fails when a job that has ended is counted, or one that nobody works on or knows of is not told."""
    accepted(connection)
    running(connection)
    running(connection, lease=-60)
    uncertain(connection)
    end(connection, running(connection), "succeeded")
    found = run("top", "--json").json()
    assert {each["state"]: (each["jobs"], each["left"]) for each in found["jobs"]} == {
        "accepted": (1, 0),
        "running": (2, 1),
        "uncertain": (1, 0),
    }
    assert sum("packhorse job list" in text for text in found["wrong"]) == 2
    assert "1 accepted   2 running   1 uncertain" in run("top", "--once").out


LOST = "neither outbox nor inbox know"


def test_a_job_whose_message_is_lost_is_sent_anew_under_its_id_and_once(run: Any, connection: Db) -> None:
    """Fails when a message that is there is written twice, one that is gone is not, or the new one is not what the first was."""
    expires = SYSTEM_CLOCK.now() + timedelta(hours=1)
    lost = accepted(connection, tenant="acme", correlation_id="c-1", expires_at=expires)
    there = accepted(connection, recorded(connection, key=None))
    named = {"PACKHORSE_NAMESPACE": "reports"}
    assert LOST in " ".join(run("explain", lost).out.split())
    assert LOST not in run("explain", there).out
    arguments = ("job", "redrive", lost, "--why", "restored from a dump", "--yes", "--json")
    assert "schemas register" in run(*arguments, **named).err
    register_reference(connection)
    assert run(*arguments).code == 2
    assert "is none of the namespace" in run(*arguments, PACKHORSE_NAMESPACE="other").err
    assert run("job", "redrive", there, "--why", "x", "--yes", **named).code == 2
    sent = run(*arguments, **named)
    assert sent.code == 0, sent.err
    row = connection.execute(
        "SELECT aggregatetype, aggregateid, type, schema_version, tenant, correlation_id, expires_at, payload"
        " FROM packhorse.outbox WHERE id = %s",
        (lost,),
    ).fetchone()
    assert row is not None
    assert row[:7] == ("requests", None, TYPE, "1", "acme", "c-1", time_text(expires))
    assert row[7] == encode_message(JobReference(id=str(lost), type=TYPE, version=1), 77)
    assert acts(connection, lost) == ["job-send"]
    again = run(*arguments, **named)
    assert (again.code, "no person's decision" in again.err) == (2, True)
    assert one(connection, "SELECT count(*) FROM packhorse.outbox WHERE id = %s", lost) == 1


def test_of_two_who_send_a_lost_message_anew_one_does(database: str, connection: Db) -> None:
    """Fails when the job is not locked before the outbox is asked: its message would be written twice."""
    register_reference(connection)
    job_id = accepted(connection)
    told = raced(database, lambda service: str(service.jobs.send(job_id, why="x")), namespace="reports")
    assert sum("its message is not lost" in each for each in told) == 1
    assert one(connection, "SELECT count(*) FROM packhorse.outbox WHERE id = %s", job_id) == 1
    assert acts(connection, job_id) == ["job-send"]
