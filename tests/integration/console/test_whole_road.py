"""The console beside a relay and a processor that run: at each stage it says what tables and topics say."""

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.support.road import PARTITIONS, Road
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.naming import quarantine_topic, retry_topic
from packhorse.core.partitions import partition_of
from packhorse.local.settings import Endpoints
from packhorse.processor import Context, Retry

ONCE = Retry(attempts=1, delays=("1s",))


@pytest.fixture
def road(tmp_path: Path, database: str, stack: Endpoints, topic_prefix: str) -> Road:
    made = Road(tmp_path, database=database, endpoints=stack, prefix=topic_prefix)
    made.make_topics()
    return made


def record_at(road: Road, topic: str, partition: int, offset: int) -> Any:
    """Return the record that stands there, read by a plain client."""
    consumer = Consumer(
        {"bootstrap.servers": road.environ["PACKHORSE_KAFKA_BOOTSTRAP_SERVERS"], "group.id": "checks"}
    )
    consumer.assign([TopicPartition(topic, partition, offset)])
    try:
        return eventually(lambda: consumer.poll(0.2), what=f"{topic}/{partition}/{offset} can be read")
    finally:
        consumer.close()


def header(record: Any, name: str) -> str | None:
    return next((value.decode() for found, value in record.headers() if found == name), None)


def one(road: Road, query: str, message_id: UUID) -> Any:
    with psycopg.connect(road.database) as connection:
        row = connection.execute(query, [message_id]).fetchone()
    return None if row is None else row[0]


@pytest.mark.case("X-02")
@pytest.mark.case("X-01")
def test_status_agrees_with_tables_and_topics_at_each_stage(road: Road) -> None:
    """Fails when a stage is reported before it is a fact, or a place, count or outcome is another than in the tables."""
    handled: list[int] = []

    @road.app.handler(road.moved)
    def moved(message: Any, ctx: Context) -> None:
        handled.append(message.number)

    message_id = road.emit(7)
    status = road.status(message_id)
    assert (status["standing"], status["published"]) == ("recorded, not yet published", "not yet")
    assert status["groups"] == []

    with road.relay():
        eventually(lambda: road.status(message_id)["published"] == "yes", what="the horizon is past it")
    status = road.status(message_id)
    assert status["standing"] == "published, no delivery known in this database"
    found = road.run("status", message_id, "--search", "--json").json()["place"]
    assert found["partition"] == partition_of(b"k", PARTITIONS)
    assert header(record_at(road, **found), "id") == str(message_id)

    with road.processor():
        eventually(lambda: road.status(message_id)["groups"], what="there is an outcome", timeout=30)
    status = road.status(message_id)
    (group,) = status["groups"]
    assert (group["standing"], group["inbox"]["deliveries"], handled) == ("done", 1, [7])
    assert status["place"] == found
    assert one(road, "SELECT outcome FROM packhorse.inbox WHERE message_id = %s", message_id) == "done"


@pytest.mark.case("X-02")
@pytest.mark.case("O-07")
@pytest.mark.case("T-17")
def test_a_redrive_is_asked_sent_and_proved(road: Road) -> None:
    """Fails when a step is told before its fact, when the copy is not the original's bytes, or the outcome is another's."""
    broken = [True]

    @road.app.handler(road.moved, retry=ONCE)
    def moved(message: Any, ctx: Context) -> None:
        if broken[0]:
            raise ValueError(message.email)

    message_id = road.emit(7)
    with road.relay(), road.processor():
        eventually(
            lambda: (
                (found := road.status(message_id)["groups"])
                and found[0]["quarantined"]["copy_offset"] is not None
            ),
            what="it rests in quarantine, and its copy is confirmed",
            timeout=30,
        )
        (group,) = road.status(message_id)["groups"]
        assert group["standing"] == "quarantine: attempts-exhausted"
        held = group["quarantined"]
        copy = record_at(
            road, quarantine_topic(road.topic, road.group), held["copy_partition"], held["copy_offset"]
        )
        assert copy.value() == one(road, "SELECT payload FROM packhorse.outbox WHERE id = %s", message_id)
        assert header(copy, "reason") == "attempts-exhausted"

        again = road.run("quarantine", "redrive", message_id, "--why", "try", "--yes", "--wait", 30)
        assert again.code == 1, again.out + again.err
        assert "quarantine again, after a redrive" in again.out

        broken[0] = False
        done = road.run("quarantine", "redrive", message_id, "--why", "fixed", "--yes", "--wait", 30)
        assert done.code == 0, done.out + done.err
        assert "asked → sent → proved: done, after a redrive" in done.out
    status = road.status(message_id)
    assert [(act["act"], act["why"]) for act in status["acts"]] == [("redrive", "try"), ("redrive", "fixed")]
    assert [attempt["attempt"] for attempt in status["groups"][0]["failed_attempts"]] == [1, 2]
    assert one(road, "SELECT count(*) FROM packhorse.audit WHERE message_id = %s", message_id) == 2


@pytest.mark.case("X-02")
@pytest.mark.case("O-10")
def test_a_key_is_followed_through_pause_retry_parking_quarantine_and_redrive(road: Road) -> None:
    """
    Fails when status or explanation say at any stage what tables and topics do not: a pause that is not told, a tier, time or
    copy of another attempt, a place in the queue, a head that is not the one that stopped, a command that does not help.
    """
    broken, handled = [True], list[int]()

    @road.app.handler(road.moved, retry=Retry(attempts=2, delays=("4s",)))
    def moved(message: Any, ctx: Context) -> None:
        if broken[0]:
            raise ValueError(message.email)
        handled.append(message.number)

    pause = ("processor", "pause", "--group", road.group, "--anyway", "--why", "bad import")
    assert road.run(*pause).code == 0
    with road.relay(), road.processor():
        head = road.emit(1)
        eventually(
            lambda: "not delivered yet" in explained(road, head) and "is paused by" in explained(road, head),
            what="it is published, and the pause is told",
            timeout=40,
        )
        resume = command_in(explained(road, head), "processor resume")
        assert road.shell(resume, "mended").code == 0

        group = eventually(lambda: group_at(road, head, "retry"), what="its first attempt failed", timeout=30)
        follower = road.emit(2)
        retry = eventually(
            lambda: (now := group_at(road, head, "retry")) and now["retry"]["sent_at"] and now["retry"],
            what="its copy is confirmed",
        )
        assert (retry["attempt"], retry["tier"]) == (2, "4s")
        assert retry["due_at"] == group["inbox"]["due_at"]
        tier = retry_topic(road.topic, road.group, "4s")
        copy = record_at(road, tier, retry["sent_partition"], retry["sent_offset"])
        assert (header(copy, "id"), header(copy, "attempt")) == (str(head), "2")
        assert "attempt 2 is due" in explained(road, head)

        parked = eventually(
            lambda: group_at(road, follower, "parked"), what="the follower is parked", timeout=30
        )
        assert (parked["queue"]["position"], parked["parked_key"]["head"]) == (1, str(head))
        assert f"message {head}" in explained(road, follower)

        eventually(lambda: group_at(road, head, "quarantine"), what="it rests in quarantine", timeout=30)
        told = explained(road, follower)
        assert f"the head of its key, message {head}: it rests in quarantine (attempts-exhausted)" in told
        by_key = road.run("explain", "--group", road.group, "--topic", road.topic, "--key", "k")
        assert f"its head is message {head} (quarantine, attempts-exhausted)" in by_key.out
        assert "1 message waits behind it" in by_key.out
        assert "ann@example.org" not in told + by_key.out

        broken[0] = False
        assert road.shell(f"{command_in(told, 'quarantine redrive')} --yes --wait 30", "fixed").code == 0
        eventually(lambda: group_at(road, follower, "done"), what="the follower is done", timeout=30)
        assert handled == [1, 2]
        assert "after a redrive" in explained(road, head)
        eventually(
            lambda: (
                "not parked"
                in road.run("explain", "--group", road.group, "--topic", road.topic, "--key", "k").out
            ),
            what="the key is let go",
        )
    assert one(road, "SELECT outcome FROM packhorse.inbox WHERE message_id = %s", head) == "done"


@pytest.mark.case("X-02")
def test_what_was_given_up_taken_back_and_replayed_is_told(road: Road) -> None:
    """Fails when who gave a message up, how it is had back, or what a replay did once more, is not told of it."""
    handled = list[int]()

    @road.app.handler(road.moved, retry=ONCE)
    def moved(message: Any, ctx: Context) -> None:
        if message.number == 1:
            raise ValueError(message.email)
        handled.append(message.number)

    with road.relay(), road.processor():
        bad, good = road.emit(1, key="a"), road.emit(2, key="b")
        eventually(lambda: group_at(road, bad, "quarantine"), what="it rests in quarantine", timeout=40)
        eventually(lambda: group_at(road, good, "done"), what="the other is done", timeout=30)
        given_up = road.shell(f"{command_in(explained(road, bad), 'quarantine discard')} --yes", "not needed")
        assert given_up.code == 0, given_up.err
        group = group_at(road, bad, "discarded")
        assert group["fate"]["discarded_at"] is not None
        told = explained(road, bad)
        assert re.search(r"it was given up .* by .*: not needed", told), told
        taken = road.shell(
            f"{command_in(told, 'quarantine restore')} --yes --out-of-order", "needed after all"
        )
        assert taken.code == 0, taken.err
        assert group_at(road, bad, "quarantine")["standing"].startswith("quarantine")
        acts = [act["act"] for act in road.status(bad)["acts"]]
        assert acts[:2] == ["discard", "restore"]

        wanted = (
            "--group",
            road.group,
            "--topic",
            road.topic,
            "--key",
            "b",
            "--again",
            "--since",
            "2026-01-01T00:00Z",
        )
        plan = road.run("replay", "plan", *wanted, "--json")
        assert plan.code == 0, plan.err
        run = one(road, "SELECT max(id) FROM packhorse.replay WHERE topic_id <> %s", UUID(int=0))
        done = road.run("replay", "run", run, "--why", "backfill", "--yes")
        assert done.code == 0, done.out + done.err
        (replay,) = group_at(road, good, "done")["replays"]
        assert (replay["run"], replay["outcome"], replay["run_state"]) == (run, "done", "ended")
        assert handled == [2, 2]
        again = UUID(replay["identity"])
        assert one(road, "SELECT outcome FROM packhorse.inbox WHERE message_id = %s", again) == "done"
        assert f"it is message {good}, under the identity that it has in replay {run}" in explained(
            road, again
        )


@pytest.mark.case("X-01")
def test_an_id_that_never_existed_is_explained_as_unknown(road: Road) -> None:
    """Fails when the exit code is that of an answer, or the text lets a person wait for it."""
    never = SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())
    found = road.run("explain", never)
    assert found.code == 6
    assert "it is not accepted and not pending" in found.out
    assert road.run("explain", never, "--json").json()["known"] is False
    elsewhere = road.run("explain", "--group", "nobody", "--topic", road.topic, "--key", "k")
    assert (elsewhere.code, "has never read it here" in elsewhere.out) == (6, True)
    assert road.run("explain").code == 2
    assert road.run("explain", never, "--key", "k").code == 2


def explained(road: Road, message_id: UUID) -> str:
    """Return what `packhorse explain` says to people."""
    return road.run("explain", message_id).out


def group_at(road: Road, message_id: UUID, outcome: str) -> Any:
    """Return how the group stands once its outcome is *outcome*; None before."""
    groups = road.status(message_id)["groups"]
    return groups[0] if groups and groups[0]["inbox"]["outcome"] == outcome else None


def command_in(text: str, words: str) -> str:
    """Return the command of *text* that begins with *words*, without its reason."""
    found = re.search(rf"^ *packhorse ({re.escape(words)} .*) --why TEXT *$", text, re.MULTILINE)
    assert found is not None, text
    return found[1]


def test_a_payload_is_shown_with_its_personal_field_masked(road: Road) -> None:
    @road.app.handler(road.moved, retry=ONCE)
    def moved(message: Any, ctx: Context) -> None:
        raise ValueError

    message_id = road.emit(7, email="ann@example.org")
    with road.relay(), road.processor():
        eventually(lambda: road.status(message_id)["groups"], what="it rests in quarantine", timeout=30)
    shown = road.run("quarantine", "show", message_id, "--payload", "--json")
    assert shown.json()["payload"] == {"email": "***", "number": 7}
    people = road.run("quarantine", "show", message_id, "--payload")
    assert "***" in people.out
    assert "ann@example.org" not in shown.out + people.out
    whole = road.run("quarantine", "show", message_id, "--unmask", "--why", "the customer asks", "--json")
    assert whole.json()["payload"] == {"email": "ann@example.org", "number": 7}
    acts = one(road, "SELECT array_agg(act) FROM packhorse.audit WHERE message_id = %s", message_id)
    assert acts == ["unmask"]
