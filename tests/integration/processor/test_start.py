"""At the start: what is missing is named and nothing is made; settings that would break a promise are refused."""

import psycopg
import pytest
from tests.support.processing import GROUP, Ground, noted, noting
from tests.support.wait import eventually

from packhorse.core.errors import NotReady, SchemaNotRegistered, SettingsError
from packhorse.processor import Processor
from packhorse.processor.clients import admin_properties
from packhorse.processor.compose import Composed
from packhorse.processor.kafka.admin import BrokerQuestions


@pytest.mark.case("X-11")
def test_a_missing_topic_is_named_and_not_made(ground: Ground) -> None:
    """Fails when the client may create topics by itself."""
    with pytest.raises(NotReady, match=f"topic {ground.topic}.* does not exist; `packhorse topics plan`"):
        Composed(noting(ground.namespace), ground.settings())
    broker = BrokerQuestions(admin_properties(ground.settings()))
    assert broker.topics([ground.topic]) == {}


@pytest.mark.case("X-11")
def test_a_quarantine_topic_of_another_size_is_refused(ground: Ground, wide_ground: Ground) -> None:
    app = noting(ground.namespace)
    ground.make_topics()
    wide_ground.topic = ground.topic
    broker = BrokerQuestions(admin_properties(ground.settings()))
    from packhorse.processor.topics.plan import Create

    for name in (*app.retry_topics(ground.topic), app.quarantine_topic(ground.topic)):
        broker.apply([Create(topic=name, partitions=2, replication=1, config={})])
    with pytest.raises(NotReady, match=r"has 2 partitions and .* has 1"):
        Composed(app, ground.settings())


@pytest.mark.case("X-11")
@pytest.mark.parametrize("table", ["inbox", "watermark", "quarantined_message", "in_hand"])
def test_a_missing_table_is_named(ground: Ground, database: str, table: str) -> None:
    app = noting(ground.namespace)
    ground.make_topics(app)
    with psycopg.connect(database) as connection:
        connection.execute(f"DROP TABLE packhorse.{table}")
    with pytest.raises(NotReady, match=f"table packhorse.{table} is missing .* `packhorse migrate up`"):
        Composed(app, ground.settings(database_url=database))


@pytest.mark.case("T-18")
def test_what_waits_of_a_topic_without_a_handler_is_told(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    """Fails when a handler that is removed leaves what waits for it behind in silence: nobody reads its topic any more."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    with psycopg.connect(ground.database) as connection:
        connection.execute(
            'INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, attempt, partition, "offset") '
            "SELECT %s, unnest(%s::text[]), gen_random_uuid(), 'parked', 1, 0, 0",
            (GROUP, ["gone.notes", "gone.notes", ground.topic]),
        )
    Composed(app, ground.settings())
    [told] = [vars(record)["packhorse_fields"] for record in caplog.records if "no handler" in record.message]
    assert (told["topic"], told["messages"]) == ("gone.notes", 2)


@pytest.mark.case("X-11")
def test_a_missing_right_is_named(ground: Ground) -> None:
    app = noting(ground.namespace)
    ground.make_topics(app)
    role = ground.namespace
    with psycopg.connect(ground.database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'p'")
        try:
            place = ground.database.rpartition("@")[2].removeprefix("postgresql://")
            url = f"postgresql://{role}:p@{place}"
            ground.environ["PACKHORSE_DATABASE_URL"] = url
            with pytest.raises(NotReady, match=f"role {role} may not read and write packhorse"):
                Composed(app, ground.settings())
        finally:
            connection.execute(f"DROP ROLE {role}")


@pytest.mark.case("S-03")
def test_a_class_whose_schema_is_not_registered_is_named(ground: Ground) -> None:
    app = Processor(GROUP)
    other = noted(f"{ground.namespace}x")
    app.handler(other)(lambda message, ctx: None)
    with pytest.raises(SchemaNotRegistered, match=r"tests\.Noted v1"):
        Composed(app, ground.settings())


@pytest.mark.case("P-03")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable.auto.commit", True),
        ("enable.auto.offset.store", "true"),
        ("auto.offset.reset", "latest"),
        ("group.id", "other"),
        ("allow.auto.create.topics", True),
    ],
)
def test_a_property_that_would_break_a_promise_is_refused_by_name(
    ground: Ground, name: str, value: str | bool
) -> None:
    """Fails when the user's properties win."""
    with pytest.raises(SettingsError, match=f"sets {name}=.*; the processor needs {name}="):
        Composed(noting(ground.namespace), ground.settings(kafka_properties={name: value}))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_two_members_share_the_partitions(wide_ground: Ground, protocol: str) -> None:
    """What one hands over the other goes on with, under both group protocols."""
    ground, app = wide_ground, noting(wide_ground.namespace)
    ground.make_topics(app)
    for n in range(4):
        ground.send(n, partition=n % 2)
    with ground.processing(app, group_protocol=protocol) as first:
        first.until_assigned(4)
        with ground.processing(app, group_protocol=protocol) as second:
            second.until_assigned(1)
            for n in range(4, 12):
                ground.send(n, partition=n % 2)
            eventually(lambda: len(ground.results()) == 12, what="all are done")
            assert len(first.composed.loop.states) < 4
        ground.send(12)
        eventually(lambda: len(ground.results()) == 13, what="the first one goes on alone")
    for parity in (0, 1):
        assert [n for n in ground.results() if n % 2 == parity] == list(range(parity, 13, 2))
    assert (ground.committed(0), ground.committed(1)) == (7, 6)
