"""What a search finds by a key or a name, and at what cost, on real tables."""

from typing import Any

import psycopg
import pytest
from tests.support.console_rows import handled, new_id, recorded, rested
from tests.support.console_stages import Stages
from tests.support.job_rows import accepted

from packhorse.console.facts import Place
from packhorse.console.finding import sql
from packhorse.console.finding.model import FIRST_SHOWN, MOST_OF_KEY, MOST_ROWS
from packhorse.console.service import Service
from packhorse.console.truth.moments import utc
from packhorse.processor.record import key_hash

HASH = key_hash(b"N14228")


@pytest.fixture
def stages(connection: psycopg.Connection[Any]) -> Stages:
    return Stages(connection)


@pytest.mark.case("X-02")
def test_all_that_is_known_by_a_key_is_found_in_every_group_and_nothing_of_another(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a state, a group or a place where a key stands is left out, or another key's is shown."""
    head = rested(connection)
    other = rested(connection, group="billing")
    done = rested(connection, group="audit")
    stages.set("UPDATE packhorse.quarantined_message SET state = 'redriven' WHERE message_id = %s", done)
    rested(connection, key=b"N999")
    recorded(connection, key="N999")
    row = recorded(connection)
    stages.parked(head)
    stages.follows(handled(connection, outcome="parked"), offset=9)
    found = service.finding.find(key=b"N14228", name="N14228")
    assert [each.id for each in found.quarantined] == [done, other, head]
    assert found.quarantined_count == 3
    assert [(each.group, each.head, each.waiting) for each in found.keys] == [("figures", head, 1)]
    assert [each.id for each in found.rows] == [row]
    assert (found.looked, found.groups, found.topics) == (2, (), ())
    assert found.back_to is not None
    assert found.back_to <= found.now
    assert [each.head for each in service.finding.find(hashed=HASH).keys] == [head]
    nothing = service.finding.find(key=b"nobody", name="nobody")
    assert (nothing.quarantined, nothing.keys, nothing.rows) == ((), (), ())


def test_a_key_that_is_no_text_is_found_where_keys_are_bytes(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a key that can't be text is an error, or is looked for as another."""
    message_id = rested(connection, key=b"\xff\x00odd")
    found = service.finding.find(key=b"\xff\x00odd", name="0xff006f6464")
    assert [each.id for each in found.quarantined] == [message_id]
    assert (found.looked, found.back_to) == (0, None)


def test_groups_and_topics_are_found_by_a_part_of_their_names_the_exact_one_first(
    service: Service, stages: Stages
) -> None:
    """Fails when a name is read as a pattern, capitals count, or a tier is taken for a source topic."""
    for group in ("figures", "all-figures", "fig%res"):
        stages.watermark(5, group=group)
    stages.set(
        'INSERT INTO packhorse.watermark (group_id, topic_id, partition, topic, "offset", incarnation) VALUES'
        " ('figures', gen_random_uuid(), 2, 'airline.aircraft.figures.retry.5m', 4, '1/1')"
    )
    stages.process(group="FIGURES-2")
    found = service.finding.find(name="figures")
    assert found.groups[0] == "figures"
    assert set(found.groups) == {"figures", "all-figures", "FIGURES-2"}
    assert found.topics == ()
    (topic,) = service.finding.find(name="AIRCRAFT").topics
    assert (topic.name, topic.groups) == ("airline.aircraft", ("all-figures", "fig%res", "figures"))
    assert service.finding.find(name="fig%").groups == ("fig%res",)


def test_an_id_is_a_job_s_or_none(service: Service, connection: psycopg.Connection[Any]) -> None:
    assert service.finding.is_job(accepted(connection))
    assert not service.finding.is_job(rested(connection))
    assert not service.finding.is_job(new_id())


def test_without_a_broker_a_place_is_not_looked_at_and_that_is_said(service: Service) -> None:
    found = service.finding.at(Place(topic="airline.aircraft", partition=2, offset=1234))
    assert (found.id, found.said) == (None, "not looked: PACKHORSE_KAFKA_BOOTSTRAP_SERVERS is not set")


def test_the_first_followers_of_a_key_are_named_in_the_order_in_which_they_run(
    service: Service, stages: Stages, connection: psycopg.Connection[Any]
) -> None:
    """Fails when followers are named in another order than they run in, or those of another key are."""
    stages.parked(rested(connection))
    ids = [handled(connection, outcome="parked") for _ in range(22)]
    for number, each in enumerate(ids):
        stages.follows(each, offset=100 - number)
    told = service.truth.told_key("figures", "airline.aircraft", HASH, local=utc)
    assert [each.id for each in told.facts.followers] == list(reversed(ids))[:20]
    assert told.explanation.standing == "parked"
    elsewhere = service.truth.told_key("figures", "airline.aircraft", key_hash(b"x"), local=utc)
    assert elsewhere.facts.followers == ()


def test_a_search_reads_a_bounded_number_of_rows_by_the_indexes(
    connection: psycopg.Connection[Any],
) -> None:
    """Fails when a statement of the search goes through a whole table: the page would stand still with 10^6 rows."""
    connection.execute(
        'INSERT INTO packhorse.quarantined_message (group_id, topic, message_id, topic_id, partition, "offset", key, headers, reason,'
        " attempts, first_failed_at) SELECT 'g', 't', gen_random_uuid(), gen_random_uuid(), 0, n, ('k' || n % 5000)::bytea, '[]', 'x', 1, now()"
        " FROM generate_series(1, 20000) AS n"
    )
    connection.execute(
        "INSERT INTO packhorse.parked_key (group_id, topic, key_hash, key, partition) SELECT 'g', 't', md5(n::text), n::text::bytea, 0"
        " FROM generate_series(1, 20000) AS n"
    )
    connection.execute(
        "INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version)"
        " SELECT gen_random_uuid(), 'a', n::text, 't', '1' FROM generate_series(1, 30000) AS n"
    )
    for table in ("quarantined_message", "parked_key", "outbox"):
        connection.execute(f"ANALYZE packhorse.{table}".encode())
    values = {
        "key": b"k7",
        "hash": HASH,
        "text": "7",
        "first": FIRST_SHOWN,
        "most": MOST_OF_KEY,
        "rows": MOST_ROWS,
    }
    for statement, bound in (
        (sql.QUARANTINED_OF_KEY, 200),
        (sql.COUNT_OF_KEY, 200),
        (sql.PARKED_KEYS, 200),
        (sql.ROWS_OF_KEY, 12_000),
        (sql.LOOKED, 12_000),
    ):
        assert most_rows(connection, statement, values) <= bound, statement


def most_rows(connection: psycopg.Connection[Any], statement: str, values: dict[str, Any]) -> float:
    """Return the rows that the busiest step of the plan really went through, those that it threw away included."""
    text = statement.replace("{schema}", "packhorse")
    row = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}".encode(), values).fetchone()
    assert row is not None

    def steps(plan: dict[str, Any]) -> list[float]:
        removed = sum(value for name, value in plan.items() if name.startswith("Rows Removed"))
        mine = (plan["Actual Rows"] + removed) * max(plan["Actual Loops"], 1)
        return [mine, *(each for inner in plan.get("Plans", ()) for each in steps(inner))]

    return max(steps(row[0][0]["Plan"]))
