"""One group from inside on real tables, and whether its processes follow a pause."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.support.console_rows import handled, one, rested
from tests.support.console_stages import GROUP, TOPIC, Stages

from packhorse.console.service import Service
from packhorse.core.errors import OwnershipLost, UnknownId, UsageError
from packhorse.processor.pausing.pauses import Scope
from packhorse.processor.record import key_hash

KEY = """
INSERT INTO packhorse.parked_key (group_id, topic, key_hash, partition, head_id, parked_at)
VALUES (%s, %s, %s, 1, %s, now() - %s * interval '1 minute')
"""


def place(
    partition: int, *, topic: str = TOPIC, paused: str | None = None, in_flight: int = 0
) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition,
        "pending": 2,
        "in_flight": in_flight,
        "paused": paused,
        "trouble": None,
    }


def test_a_group_is_seen_from_inside(service: Service, connection: psycopg.Connection[Any]) -> None:
    """Fails when a tier, a process or a pause is not as the tables say, or a dead process counts as alive."""
    stages = Stages(connection)
    for minutes, sent in ((-5, False), (-1, True), (5, True)):
        stages.waits(handled(connection, outcome="retry"), due_in=timedelta(minutes=minutes), sent=sent)
    stall = {
        "topic": TOPIC,
        "partition": 1,
        "offset": 7,
        "cause": "unexplained",
        "seconds": 90,
        "text": "stands",
    }
    stages.process(
        {
            "version": "1.2",
            "partitions": [place(1, in_flight=1), place(2)],
            "stalls": [stall],
            "partitions_not_shown": 3,
        }
    )
    stages.process({"stalls": "rubbish", "wrong": [1], "partitions": [7]}, ago=timedelta(hours=1))
    stages.pause(topic=TOPIC, why="import")
    found = service.processing.inside(GROUP)
    (tier,) = found.tiers
    assert (tier.tier, tier.messages, tier.unsent, tier.overdue) == ("5m", 3, 1, 2)
    living, dead = found.processes
    assert (living.alive, living.partitions, living.pending, living.in_hand) == (True, 5, 4, 1)
    assert [(each.offset, each.cause, each.is_quiet) for each in living.stalls] == [(7, "unexplained", False)]
    assert (dead.alive, dead.wrong, dead.stalls, dead.partitions) == (False, ("1",), (), 0)
    assert [row.what for row in found.pauses] == [TOPIC]


def test_a_group_that_nobody_knows_is_unknown(service: Service) -> None:
    """Fails when a mistyped name looks like a group without trouble."""
    with pytest.raises(UnknownId, match="no group figurse is known"):
        service.processing.inside("figurse")


def test_parked_keys_come_in_pages_the_longest_parked_first(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a page repeats or leaves out a key, or the order is another."""
    head = rested(connection)
    hashes = [key_hash(f"k{n}".encode()) for n in range(5)]
    for age, hashed in enumerate(hashes):
        connection.execute(KEY, (GROUP, TOPIC, hashed, head, age // 2))
    connection.execute(KEY, ("another", TOPIC, hashes[0], None, 99))
    found, after = list[str](), None
    while True:
        page = service.processing.parked(GROUP, after=after, limit=2)
        found += [each.key_hash for each in page.keys]
        assert page.whole
        if (after := page.next) is None:
            break
    assert sorted(found) == sorted(hashes)
    assert found[0] == hashes[4]
    assert {each.head_outcome for each in service.processing.parked(GROUP).keys} == {"quarantine"}
    for rubbish in ("x", "WyJhIl0", "WyIyMDI2LTAxLTAxIiwgImEiLCAiYiJd"):
        with pytest.raises(UsageError):
            service.processing.parked(GROUP, after=rubbish)


@pytest.mark.case("O-10")
def test_a_pause_is_followed_once_the_processes_say_so_themselves(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when what was asked for counts as followed, or what a process said before counts as an answer."""
    stages, scope = Stages(connection), Scope(topic=TOPIC, partition=1)
    stages.watermark(5, partition=1)
    stages.process(
        {"partitions": [place(1, in_flight=1), place(1, topic=f"{TOPIC}.{GROUP}.retry.5m"), place(2)]}
    )
    stages.process({"partitions": [place(3)]})
    assert service.pausing.pause(GROUP, scope, why="import")
    asked = service.processing.following(GROUP, scope)
    assert (len(asked.processes), len(asked.concerned), asked.following, asked.in_hand) == (2, 1, (), 1)
    assert asked.pause is not None
    assert (asked.last and (asked.last.act, asked.last.why)) == ("pause", "import")

    def says(paused: str) -> None:
        connection.execute(
            "UPDATE packhorse.processor_member SET seen_at = clock_timestamp(), status = replace(replace(status::text,"
            " '\"paused\": null', %s), '\"in_flight\": 1', '\"in_flight\": 0')::jsonb",
            (f'"paused": {paused}',),
        )

    says("null")
    assert service.processing.following(GROUP, scope).following == ()
    says('"airline.aircraft[1] paused by ann"')
    followed = service.processing.following(GROUP, scope)
    assert (len(followed.following), followed.in_hand) == (1, 0)
    assert service.pausing.resume(GROUP, scope, why="mended", since=asked.pause.at).done
    resumed = service.processing.following(GROUP, scope)
    assert (resumed.pause, resumed.following, resumed.last and resumed.last.act) == (None, (), "resume")
    with pytest.raises(UsageError):
        service.processing.following(GROUP, Scope(topic=TOPIC, key=b"k"))


@pytest.mark.case("O-02")
def test_a_resume_ends_the_pause_that_was_shown_and_no_other(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when somebody's new pause is ended by a page that showed an older one."""
    Stages(connection).watermark(5)
    scope = Scope(topic=TOPIC)
    service.pausing.pause(GROUP, scope, why="first")
    (shown,) = service.pausing.paused(GROUP).pauses
    service.pausing.resume(GROUP, scope, why="mended")
    service.pausing.pause(GROUP, scope, why="second, and for another reason")
    with pytest.raises(OwnershipLost, match="is paused anew"):
        service.pausing.resume(GROUP, scope, why="mended too", since=shown.at)
    assert [row.why for row in service.pausing.paused(GROUP).pauses] == ["second, and for another reason"]
    assert one(connection, "SELECT count(*) FROM packhorse.audit WHERE act = 'resume'") == 1


def test_looks_at_a_group_read_no_more_than_their_bounds(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a look counts all rows of a group, however many wait."""
    connection.execute(
        'INSERT INTO packhorse.retry_message (group_id, topic, message_id, attempt, tier, due_at, topic_id, partition, "offset",'
        " headers) SELECT %s, %s, gen_random_uuid(), 2, '5m', now() + n * interval '1 second', gen_random_uuid(), 1, n, '[]'"
        " FROM generate_series(1, 10500) AS n",
        (GROUP, TOPIC),
    )
    Stages(connection).watermark(5)
    (tier,) = service.processing.inside(GROUP).tiers
    assert tier.messages == 10_000
