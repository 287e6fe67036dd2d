"""The servers that tests may hurt, and the proxy before them."""

import psycopg
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tests.support.stack import PrivateBroker, PrivateDatabase
from tests.support.wait import eventually


def test_a_killed_database_comes_back_with_what_was_committed(private_database: PrivateDatabase) -> None:
    with psycopg.connect(private_database.url) as connection:
        connection.execute("CREATE TABLE kept (n int)")
    private_database.kill()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(private_database.url, connect_timeout=5)
    private_database.start()
    with psycopg.connect(private_database.url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_the_broker_is_reached_through_its_proxy(private_kafka: PrivateBroker, topic_prefix: str) -> None:
    admin = AdminClient({"bootstrap.servers": private_kafka.bootstrap})
    admin.create_topics([NewTopic(topic_prefix, 1)])[topic_prefix].result(10)
    producer = Producer({"bootstrap.servers": private_kafka.bootstrap, "message.timeout.ms": 20000})
    producer.produce(topic_prefix, b"1")
    assert producer.flush(10) == 0
    private_kafka.proxy.cut()
    producer.produce(topic_prefix, b"2")
    assert producer.flush(1) == 1
    private_kafka.proxy.resume()
    assert producer.flush(20) == 0
    private_kafka.kill()
    private_kafka.start()
    consumer = Consumer(
        {
            "bootstrap.servers": private_kafka.direct_bootstrap,
            "group.id": topic_prefix,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic_prefix])
    got: list[bytes | None] = []

    def both() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            got.append(message.value())
        return len(got) == 2

    eventually(both, what="both records", timeout=20)
    consumer.close()
