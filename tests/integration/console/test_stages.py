"""Each stage of a message's way, on real tables: what status says of it."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from tests.support.console_rows import handled, horizon_past_all, new_id, recorded, rested
from tests.support.console_services import service_over
from tests.support.console_stages import Stages

from packhorse.console.acting.postgres import Database
from packhorse.console.service import Service
from packhorse.console.truth.render import group_json, group_pairs, message_pairs
from packhorse.console.truth.status import Status
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.ids import replayed_id

pytestmark = pytest.mark.case("X-02")
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


@pytest.fixture
def stages(connection: psycopg.Connection[Any]) -> Stages:
    return Stages(connection)


@pytest.fixture
def service(tables: Database) -> Service:
    return service_over(tables, namespace="airline")


def told(status: Status) -> dict[str, str]:
    """Return what status says besides of the only group, by label."""
    (group,) = status.groups
    return {label: str(value) for label, value in group_pairs(status, group)}


def test_a_retry_says_its_tier_its_time_and_whether_its_copy_is_sent(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a copy that nobody has confirmed is told as sent, or the one in a tier is not placed in its line."""
    sent, owed = (
        handled(connection, outcome="retry", attempt=2),
        handled(connection, outcome="retry", attempt=2),
    )
    stages.waits(sent, due_in=HOUR, sent=True)
    stages.waits(owed, due_in=HOUR, sent=False)
    stages.set(
        'INSERT INTO packhorse.watermark (group_id, topic_id, partition, topic, "offset", incarnation) VALUES'
        " ('figures', gen_random_uuid(), 2, 'airline.aircraft.figures.retry.5m', 4, '1/1')"
    )
    line = told(service.truth.status(sent, search=False))["next attempt"]
    assert line.startswith("2, in tier 5m, due ")
    assert line.endswith("its copy is sent (partition 2, offset 7, 3 before it)")
    assert "is not known to be sent" in told(service.truth.status(owed, search=False))["next attempt"]


def test_a_follower_says_its_place_in_the_queue_and_why_the_key_is_parked(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the queue is counted in another order than followers run in, or the head's standing is left out."""
    head = rested(connection, reason="permanent")
    stages.parked(head)
    third, first, second = (handled(connection, outcome="parked") for _ in range(3))
    for message_id, offset in ((third, 9), (first, 5), (second, 7)):
        stages.follows(message_id, offset=offset)
    standings = [service.truth.status(each, search=False).standing for each in (first, second, third)]
    assert [text.rpartition(", ")[2] for text in standings] == [f"{n} of 3 in the queue" for n in (1, 2, 3)]
    line = told(service.truth.status(second, search=False))["its key"]
    assert f"its head is {head} (quarantine, permanent)" in line
    assert line.endswith("3 wait behind it")
    assert "3 wait behind it" in told(service.truth.status(head, search=False))["its key"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"by": "ann (role ops)", "why": "bad import"}, "paused by ann (role ops) since"),
        ({"drainer": "box:42"}, "its followers are run by box:42"),
        ({}, "its head is finished; a running processor lets it go on"),
    ],
)
def test_a_key_says_who_paused_it_or_drains_it(
    service: Service,
    stages: Stages,
    connection: psycopg.Connection[Any],
    given: dict[str, str],
    expected: str,
) -> None:
    follower = handled(connection, outcome="parked")
    stages.parked(None, **given)
    stages.follows(follower, offset=5)
    assert expected in told(service.truth.status(follower, search=False))["its key"]


@pytest.mark.case("O-10")
@pytest.mark.parametrize(
    ("pause", "expected"),
    [
        ({}, "group figures, by ann (role ops) since"),
        ({"topic": "airline.aircraft"}, "airline.aircraft, by ann"),
        ({"topic": "airline.aircraft", "partition": 2}, "partition 2 of airline.aircraft, by ann"),
        ({"topic": "airline.aircraft.figures.retry.5m"}, "airline.aircraft.figures.retry.5m, by ann"),
        ({"topic": "airline.aircraft", "partition": 1}, None),
        ({"topic": "airline.aircraft.figures.retry.1h"}, None),
    ],
)
def test_a_pause_is_said_of_what_it_holds_and_of_nothing_else(
    service: Service,
    stages: Stages,
    connection: psycopg.Connection[Any],
    pause: dict[str, Any],
    expected: str | None,
) -> None:
    """Fails when a pause of another partition or tier is told, or one of the group, topic or tier is not."""
    message_id = handled(connection, outcome="retry", attempt=2)
    stages.waits(message_id, due_in=HOUR, sent=True)
    stages.pause(**pause, why="bad import")
    line = told(service.truth.status(message_id, search=False)).get("paused")
    assert (
        (line is None)
        if expected is None
        else (line is not None and line.startswith(expected) and "bad import" in line)
    )


def test_processes_are_alive_gone_or_never_seen_and_say_what_they_have_stopped(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    message_id = handled(connection, outcome="retry")
    assert told(service.truth.status(message_id, search=False))["processors"] == "none is known"
    stages.process({"stopped handlers": ["gone: brake"]}, ago=HOUR)
    found = told(service.truth.status(message_id, search=False))
    assert found["processors"].startswith("none alive, the last was seen at ")
    assert "stopped" not in found
    stages.process({"stopped handlers": ["moved: brake, after 3 tries"]})
    found = told(service.truth.status(message_id, search=False))
    assert (found["processors"], found["stopped"]) == ("1 alive", "moved: brake, after 3 tries")


@pytest.mark.parametrize(
    ("watermarks", "standing"),
    [
        ([("billing", 1200)], "figures: done; billing: not delivered yet"),
        ([("billing", 1234)], "figures: done; billing: not delivered yet"),
        ([("billing", 1235)], "figures: done"),
        ([], "figures: done"),
    ],
)
def test_a_group_without_a_row_is_told_by_its_watermark(
    service: Service,
    stages: Stages,
    connection: psycopg.Connection[Any],
    watermarks: list[tuple[str, int]],
    standing: str,
) -> None:
    """Fails when a record at the watermark itself counts as dealt with, or a group that reads the topic is left out."""
    message_id = handled(connection)
    for group, offset in watermarks:
        stages.watermark(offset, group=group)
    status = service.truth.status(message_id, search=False)
    assert status.standing == standing
    below = [offset > 1234 for _, offset in watermarks]
    assert [each.below for each in status.awaited] == below
    lines = [str(value) for label, value in message_pairs(status) if label == "group billing"]
    assert all(
        ("done before, or its row is gone" in line) is is_below
        for line, is_below in zip(lines, below, strict=True)
    )


def test_without_its_place_nobody_can_say_whether_the_watermark_is_past_it(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    message_id = recorded(connection)
    stages.watermark(1200)
    assert not service.truth.status(message_id, search=False).awaited, "it is not published yet"
    horizon_past_all(connection)
    status = service.truth.status(message_id, search=False)
    assert [each.below for each in status.awaited] == [None]
    assert "nobody can say" in status.awaited[0].said
    assert status.standing == "published, no delivery known in this database"


def test_a_member_of_a_redrive_names_the_run_and_the_people(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    message_id = rested(connection)
    run = stages.redrive(message_id)
    assert told(service.truth.status(message_id, search=False))[f"redrive {run}"] == (
        "waiting; the run is running, previewed by ann (role ops), confirmed by bob (role ops)"
    )
    stages.set("UPDATE packhorse.redrive SET state = 'previewed', expires_at = clock_timestamp()")
    assert f"redrive {run}" not in told(service.truth.status(message_id, search=False))


def test_a_replayed_message_names_the_replay_and_the_identity_that_it_has_there(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    """Fails when what is done once more, under an id of its own, is not told of the message, or not the other way round."""
    message_id, run = handled(connection), stages.replay()
    stages.handed(run, message_id)
    label = f"replay {run}"
    assert (
        "no outcome counted yet; the replay, by ann (role ops), is running"
        in told(service.truth.status(message_id, search=False))[label]
    )
    again, once_more = handled(connection), stages.replay()
    identity = replayed_id(again, once_more, "figures")
    stages.handed(once_more, identity)
    found = told(service.truth.status(again, search=False))
    assert "handed over at" in found[f"replay {once_more}"]
    assert label not in found
    handled(connection, identity)
    stages.set("DELETE FROM packhorse.replay_message WHERE replay_id = %s", once_more)
    assert (
        f"done, under the identity {identity}"
        in told(service.truth.status(again, search=False))[f"replay {once_more}"]
    )
    assert (
        "replayed",
        f"it is message {again}, as replay {once_more} hands it to group figures",
    ) in message_pairs(service.truth.status(identity, search=False))


def test_a_discarded_message_says_until_when_it_may_be_restored_and_an_erased_one_that_it_may_not(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    message_id = rested(connection)
    stages.set("UPDATE packhorse.inbox SET outcome = 'discarded'")
    stages.set(
        "UPDATE packhorse.quarantined_message SET state = 'discarded', discarded_at = '2026-08-01T12:00Z'"
    )
    assert (
        "restorable while its bytes are kept"
        in told(service.truth.status(message_id, search=False))["discarded"]
    )
    stages.set(
        "INSERT INTO packhorse.inbox_retention (group_id, kept_from, discarded_from, seen_at)"
        " VALUES ('figures', now() - interval '22 days', now() - interval '90 days', now())"
    )
    found = told(service.truth.status(message_id, search=False))
    assert found["discarded"] == "2026-08-01 12:00:00.000Z; restorable until 2026-10-30 12:00:00.000Z"
    stages.set(
        "UPDATE packhorse.quarantined_message SET purged_at = '2026-08-02T12:00Z', payload = NULL, key = NULL"
    )
    found = told(service.truth.status(message_id, search=False))
    assert found["discarded"].endswith("its bytes are erased")
    assert "cannot be sent again" in found["erased"]


def test_an_edited_copy_and_its_parent_name_each_other(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    parent, copy = rested(connection), handled(connection)
    stages.set("UPDATE packhorse.quarantined_message SET edited_as = %s", copy)
    assert told(service.truth.status(parent, search=False))["edited as"] == str(copy)
    assert ("edited copy", f"of message {parent} in quarantine of group figures") in message_pairs(
        service.truth.status(copy, search=False)
    )


def test_an_id_of_several_outbox_rows_is_said_so(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when an id that was written twice looks like any other."""
    message_id = recorded(connection)
    recorded(connection, id=message_id)
    assert message_pairs(service.truth.status(message_id, search=False))[0] == (
        "rows",
        "2 outbox rows bear this id; the first is shown",
    )


def test_a_row_that_the_relay_holds_or_that_somebody_gave_up_is_explained(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a row behind the horizon looks published though a hold has it, or its relay's state is not told."""
    message_id = recorded(connection)
    stages.set(
        "INSERT INTO packhorse.relay_hold (shard, scope, aggregatetype, aggregateid, code, reason, heals, horizon)"
        " VALUES (0, 'key', 'aircraft', 'N14228', 'too_large', '20560 bytes', false, '1:1:')"
    )
    horizon_past_all(connection)
    stages.set(
        "UPDATE packhorse.relay SET owner = 'relay-1', token = gen_random_uuid(), lease_until = now() + interval '1 minute'"
    )
    status = service.truth.status(message_id, search=False)
    assert status.standing.endswith(": too_large")
    assert status.around.carrier is not None
    assert (status.around.carrier.owner, status.around.carrier.trouble) == ("relay-1", None)
    stages.set("UPDATE packhorse.relay_hold SET state = 'ended'")
    stages.set(
        "INSERT INTO packhorse.relay_discard (message_id, hold_id, aggregatetype, seq, actor, why)"
        " VALUES (%s, 1, 'aircraft', 1, 'ann (role ops)', 'a test')",
        message_id,
    )
    told_of = service.truth.explain(message_id, search=False, local=SYSTEM_CLOCK.local)
    assert told_of.standing == "discarded before it was published"
    assert any("ann (role ops) gave it up" in text for text in told_of.parts[0].stands)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("done", "it is done since"),
        ("skipped", "its handler chose to skip it"),
        ("uncertain", "an outside effect may or may not have happened"),
        ("discarded", "its bytes are no longer kept"),
    ],
)
def test_an_outcome_that_is_the_last_word_is_explained(
    service: Service, connection: psycopg.Connection[Any], outcome: str, said: str
) -> None:
    message_id = handled(connection, outcome=outcome)
    found = service.truth.explain(message_id, search=False, local=SYSTEM_CLOCK.local)
    assert any(said in text for part in found.parts for text in part.stands)


def test_json_has_the_same_facts(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    message_id = handled(connection, outcome="retry", attempt=2)
    stages.waits(message_id, due_in=SECOND, sent=True)
    stages.process({"stalls": [{"topic": "airline.aircraft", "partition": 2, "cause": "trouble"}]})
    status = service.truth.status(message_id, search=False)
    found = group_json(status, status.groups[0])
    assert (found["retry"].tier, found["processors"].alive) == ("5m", 1)
    assert found["processors"].stalls == (("airline.aircraft", 2, "trouble"),)
    assert (found["parked_key"], found["queue"], found["pause"]) == (None, None, None)


def test_a_row_of_a_process_that_says_something_else_is_no_trouble(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the status of another version, whatever it holds, ends the answer with an error."""
    message_id = handled(connection, outcome="retry")
    stages.process({"stopped handlers": "none", "stalls": {"a": 1}})
    stages.set("UPDATE packhorse.processor_member SET status = %s", Jsonb([1]))
    assert told(service.truth.status(message_id, search=False))["processors"] == "1 alive"
    assert not service.truth.status(new_id(), search=False).known
