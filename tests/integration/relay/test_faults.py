"""Rows and topics that can't be sent to, at the real broker: whose fault the client says it is, and what it says of a scope."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tests.support.relay import row
from tests.support.stack import PrivateBroker
from tests.support.topics import make_topic, records, wait_for
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import BrokerUnavailable
from packhorse.core.kafka_properties import merged
from packhorse.local.settings import Endpoints
from packhorse.relay.holds import Fault, Kind, Scope
from packhorse.relay.kafka import DEFAULTS, OURS, KafkaBroker, topics
from packhorse.relay.model import ID, Row
from packhorse.relay.ports import Handed

NOISE = Random(1).randbytes
"""Bytes that compression makes no smaller."""
Make = Callable[..., KafkaBroker]


@pytest.fixture
def make(stack: Endpoints, topic_prefix: str) -> Iterator[Make]:
    """Provide a maker of clients; keywords are properties with underscores for dots."""
    made: list[KafkaBroker] = []

    def client(**properties: Any) -> KafkaBroker:
        users = {**DEFAULTS, **{name.replace("_", "."): value for name, value in properties.items()}}
        whole = merged(users, OURS, bootstrap_servers=stack.kafka_bootstrap, sasl_password=None, part="relay")
        made.append(KafkaBroker(whole, namespace=topic_prefix, clock=SYSTEM_CLOCK))
        return made[-1]

    yield client
    for each in made:
        each.close()


@pytest.fixture
def orders(stack: Endpoints, topic_prefix: str) -> str:
    """Provide the topic of `row`."""
    make_topic(stack.kafka_bootstrap, f"{topic_prefix}.orders", partitions=1)
    return f"{topic_prefix}.orders"


def topic_scope(kind: str) -> Scope:
    return Scope(kind=Kind.TOPIC, aggregatetype=kind)


def confirmed(broker: KafkaBroker) -> None:
    eventually(lambda: broker.confirmed(0.1), what="the broker has confirmed every row")


def fault(handed: Handed) -> Fault:
    assert handed.fault is not None
    return handed.fault


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_topics([topic]).values():
        future.result(30)


@pytest.mark.case("R-10")
@pytest.mark.parametrize(
    ("broken", "code", "said"),
    [
        (row(2, payload=b"x" * 2_000_000), "too_large", "max.message.bytes is 1048588"),
        (row(2, payload="not bytes \ud800"), "refused", "UnicodeEncodeError"),  # type: ignore[arg-type]
        (row(2, tenant=5), "header", "TypeError"),
        (row(2, tenant="\ud800"), "header", "UnicodeEncodeError"),
    ],
    ids=["too large", "payload", "header of another type", "header that is no text"],
)
def test_a_row_that_the_client_does_not_take_is_named_and_those_before_and_behind_it_go(
    broken: Row, code: str, said: str, make: Make, stack: Endpoints, orders: str
) -> None:
    """Fails when what the client raises is not taken for the row's fault: the relay would end, and start, and end."""
    broker = make()
    first, other = row(1), row(3, "other")
    handed = broker.send([first, broken, other])
    found = fault(handed)
    assert handed.count == 1
    assert (found.id, found.seq, found.scope.kind, found.code, found.heals) == (
        broken[ID],
        2,
        Kind.KEY,
        code,
        False,
    )
    assert said in found.reason
    assert broker.send([other]).count == 1
    confirmed(broker)
    assert [record.id for record in records(stack.kafka_bootstrap, orders)] == [first[ID], other[ID]]


@pytest.mark.case("R-10")
def test_a_missing_topic_is_the_topic_s_fault_and_heals(
    make: Make, stack: Endpoints, topic_prefix: str, orders: str
) -> None:
    """Fails when a row is blamed for it, or the client goes on believing that the topic is missing."""
    broker = make()
    later = row(2, kind="later")
    handed = broker.send([row(1), later])
    found = fault(handed)
    assert (handed.count, found.code, found.heals, found.id) == (1, "missing", True, None)
    assert found.scope == topic_scope("later")
    assert "packhorse topics apply" in found.reason
    assert broker.probe(found.scope) is not None
    make_topic(stack.kafka_bootstrap, f"{topic_prefix}.later")
    eventually(lambda: broker.probe(found.scope) is None, what="the topic is there")
    assert broker.send([later]).count == 1
    confirmed(broker)


@pytest.mark.case("R-10")
def test_a_topic_that_goes_away_while_rows_are_sent_is_blamed_and_found_again(
    make: Make, stack: Endpoints, topic_prefix: str
) -> None:
    """Fails when a topic that was there once is never asked about again: rows would wait in the client for good."""
    bootstrap, topic = stack.kafka_bootstrap, f"{topic_prefix}.gone"
    make_topic(bootstrap, topic)
    broker = make()
    broker.send([row(1, kind="gone")])
    confirmed(broker)
    delete_topic(bootstrap, topic)

    def blamed() -> list[Fault]:
        handed = broker.send([row(2, kind="gone")])
        return [fault(handed)] if handed.fault else list(broker.unreachable())

    found = eventually(blamed, what="the topic is blamed")[0]
    assert (found.scope, found.code) == (topic_scope("gone"), "missing")
    broker.renew(0.1)
    make_topic(bootstrap, topic)
    late = row(3, kind="gone")
    eventually(lambda: broker.probe(found.scope) is None, what="the topic is there")
    assert broker.send([late]).count == 1
    assert wait_for(bootstrap, topic, 1)[0].id == late[ID]


@pytest.mark.case("R-10")
@pytest.mark.parametrize("kind", ["no topic", "ü", "x" * 249])
def test_a_name_that_no_topic_can_have_is_the_topic_s_fault_and_does_not_heal(kind: str, make: Make) -> None:
    broker = make()
    found = fault(broker.send([row(1, kind=kind)]))
    assert (found.scope, found.code, found.heals) == (topic_scope(kind), "missing", False)
    assert broker.probe(found.scope) is not None


@pytest.mark.case("R-10")
def test_rows_that_a_topic_takes_one_by_one_are_not_refused_together(
    make: Make, stack: Endpoints, topic_prefix: str
) -> None:
    """Fails when the client fills its batches beyond the topic's limit: the broker refuses the whole batch, and no row is at fault."""
    topic = f"{topic_prefix}.small"
    make_topic(stack.kafka_bootstrap, topic, partitions=1, max_message_bytes="5000")
    broker = make(compression_type="none")
    rows = [row(n, payload=NOISE(1_000), kind="small") for n in range(100)]
    left = list(rows)
    while left:
        handed = broker.send(left)
        assert handed.fault is None
        confirmed(broker)
        left = left[handed.count :]
    assert [record.id for record in records(stack.kafka_bootstrap, topic)] == [each[ID] for each in rows]


@pytest.mark.case("R-10")
def test_the_client_s_own_limit_is_named_when_it_is_the_smaller_one(make: Make, orders: str) -> None:
    broker = make(message_max_bytes=2_000)
    assert (
        "the client's message.max.bytes is 2000" in fault(broker.send([row(1, payload=b"x" * 2_000)])).reason
    )


def test_rows_before_one_whose_topic_nobody_describes_count_as_handed_over(
    private_kafka: PrivateBroker, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the broker's silence about a later row makes the caller forget those before it: they would go twice."""
    monkeypatch.setattr(topics, "_ASK_WITHIN", 0.5)
    make_topic(private_kafka.direct_bootstrap, f"{topic_prefix}.orders", partitions=1)
    properties = merged(
        DEFAULTS, OURS, bootstrap_servers=private_kafka.bootstrap, sasl_password=None, part="relay"
    )
    broker = KafkaBroker(properties, namespace=topic_prefix, clock=SYSTEM_CLOCK)
    try:
        broker.send([row(1)])
        confirmed(broker)
        private_kafka.proxy.freeze()
        rows = [row(2), row(3, kind="later")]
        assert broker.send(rows) == Handed(1)
        with pytest.raises(BrokerUnavailable):
            broker.send(rows[1:])
        private_kafka.proxy.resume()
        confirmed(broker)
    finally:
        broker.close()


@pytest.mark.case("R-12")
def test_a_client_that_is_closed_at_this_moment_may_be_halted(make: Make, orders: str) -> None:
    """Fails when the lease's thread dies of it at the end of a lease, just as the relay makes its client anew: the process would end."""
    broker = make()
    broker.send([row(1)])
    confirmed(broker)
    broker._producer.close()
    broker.halt()
    broker._make()
