"""One suite on the simulated client and on the real one, with and without fencing: order, refusals, and what a halt does."""

from collections.abc import Iterator
from random import Random
from typing import Protocol

import pytest
from tests.simulation.relay.broker import SimBroker, Topic
from tests.support.topics import make_topic, records, set_limit, wait_for_limit
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.kafka_properties import merged
from packhorse.local.settings import Endpoints
from packhorse.relay.holds import Kind, Scope
from packhorse.relay.kafka import DEFAULTS, OURS, KafkaBroker, fence_name
from packhorse.relay.kafka import broker as adapter
from packhorse.relay.model import Row
from packhorse.relay.ports import Broker, Failed

LARGE = Random(1).randbytes(20_000)
"""Nothing that compression makes small enough again."""


HUGE = b"x" * 2_000_000
"""More than any topic takes here."""


def row(seq: int, key: str = "a", payload: bytes = b"x", kind: str = "lines") -> Row:
    return (
        seq,
        kind,
        key,
        payload,
        1_700_000_000_000 + seq,
        str(SYSTEM_CHANCE.token()),
        "t.T",
        "1",
        *[None] * 10,
    )


class World(Protocol):
    """Topics, as a client and as a reader see them."""

    broker: Broker

    def refuse(self, row: Row) -> None:
        """Let the broker refuse *row* from now on, without the client's knowing."""

    def mend(self) -> None:
        """Let the broker take what it refused."""

    def lack(self, kind: str) -> None:
        """Let the topic of *kind* be missing."""

    def supply(self, kind: str) -> None:
        """Make it."""

    def arrived(self) -> list[str]:
        """Return the ids on the topic of one key, in order."""


class SimWorld:
    def __init__(self) -> None:
        self.topic = Topic()
        self._broker = SimBroker(self.topic, Random(1), pause=self._steps)
        self.broker: Broker = self._broker

    def _steps(self) -> None:
        if self._broker.busy():
            self._broker.step()

    def refuse(self, row: Row) -> None:
        self.topic.refused.add(row[5])

    def mend(self) -> None:
        self.topic.refused.clear()

    def lack(self, kind: str) -> None:
        self.topic.missing.add(kind)

    def supply(self, kind: str) -> None:
        self.topic.missing.clear()

    def arrived(self) -> list[str]:
        return [name for key, name in self.topic.log if key == "k"]


class RealWorld:
    """A topic of one partition, read as readers of committed records do."""

    def __init__(self, bootstrap: str, namespace: str, fence: str | None = None) -> None:
        self._bootstrap = bootstrap
        self._namespace = namespace
        self._topic = f"{namespace}.lines"
        make_topic(bootstrap, self._topic, partitions=1)
        apart = {**DEFAULTS, "batch.num.messages": 1, "linger.ms": 0}  # each row in a request of its own
        properties = merged(apart, OURS, bootstrap_servers=bootstrap, sasl_password=None, part="relay")
        self.client = KafkaBroker(properties, namespace=namespace, clock=SYSTEM_CLOCK, fence=fence)
        self.broker: Broker = self.client

    def refuse(self, row: Row) -> None:
        """Lower the topic's limit once the client has asked for it."""
        self.client.send([globals()["row"](0)])
        confirmed(self.client)
        set_limit(self._bootstrap, self._topic, 10_000)
        wait_for_limit(self._bootstrap, self._topic, LARGE, refused=True)

    def mend(self) -> None:
        set_limit(self._bootstrap, self._topic, 1_000_000)
        wait_for_limit(self._bootstrap, self._topic, LARGE, refused=False)

    def lack(self, kind: str) -> None:
        """Do nothing: it was never made."""

    def supply(self, kind: str) -> None:
        make_topic(self._bootstrap, f"{self._namespace}.{kind}")

    def arrived(self) -> list[str]:
        return [record.id for record in records(self._bootstrap, self._topic) if record.key == b"k"]


@pytest.fixture(params=["simulated", "real", "fenced"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "simulated":
        yield SimWorld()
        return
    stack: Endpoints = request.getfixturevalue("stack")
    namespace = request.getfixturevalue("topic_prefix")
    fence = fence_name(namespace, "packhorse", 0) if request.param == "fenced" else None
    real = RealWorld(stack.kafka_bootstrap, namespace, fence)
    yield real
    real.client.close()


def confirmed(broker: Broker) -> None:
    eventually(lambda: broker.confirmed(0.1), what="the broker has confirmed every row")


def failed(broker: Broker) -> Failed:
    def there() -> Failed | None:
        broker.confirmed(0.1)
        return broker.failed()

    found = eventually(there, what="a report of the failure")
    assert found is not None
    return found


def test_rows_arrive_in_order_and_are_confirmed(world: World) -> None:
    rows = [row(n, "k") for n in range(1, 6)]
    assert world.broker.send(rows).count == 5
    confirmed(world.broker)
    assert world.broker.failed() is None
    assert world.arrived() == [each[5] for each in rows]


@pytest.mark.case("R-07")
@pytest.mark.case("R-20")
def test_behind_a_refused_row_nothing_arrives_and_the_row_is_named(world: World) -> None:
    """Fails without enable.gapless.guarantee: rows 3 and 4 land before row 2."""
    rows = [row(1, "k"), row(2, "k", LARGE), row(3, "k"), row(4, "k")]
    world.refuse(rows[1])
    world.broker.send(rows)
    failed(world.broker)
    assert not world.broker.confirmed(0.1)
    found = world.broker.renew(2.0)
    assert found is not None
    assert found.fault is not None
    assert found.fault.id in [rows[0][5], rows[1][5]], "the first row of the request that was refused"
    assert world.arrived() in ([], [rows[0][5]])


@pytest.mark.case("R-11")
def test_after_the_repair_the_same_rows_arrive_in_order(world: World) -> None:
    rows = [row(1, "k"), row(2, "k", LARGE), row(3, "k")]
    world.refuse(rows[1])
    world.broker.send(rows)
    failed(world.broker)
    world.broker.renew(2.0)
    world.mend()
    world.broker.send(rows)
    confirmed(world.broker)
    assert list(dict.fromkeys(world.arrived())) == [each[5] for each in rows]


@pytest.mark.case("R-12")
def test_a_halted_client_takes_nothing_until_it_is_made_anew(world: World) -> None:
    """Fails when `halt` only empties the queue: a loop that is still sending would fill it again."""
    world.broker.halt()
    assert world.broker.send([row(1, "k"), row(2, "k")]).count < 2
    assert world.broker.failed() is not None
    assert not world.broker.confirmed(0.0)
    world.broker.renew(0.0)
    rows = [row(3, "k")]
    world.broker.send(rows)
    confirmed(world.broker)
    assert world.arrived()[-1] == rows[0][5]


@pytest.mark.case("R-10")
def test_a_row_that_is_too_large_is_named_before_it_is_handed_over(world: World) -> None:
    """Fails when it is handed over: the client would have to be made anew, and rows before it go again."""
    rows = [row(1, "k"), row(2, "k", HUGE), row(3, "other")]
    if isinstance(world, SimWorld):
        world.topic.too_large.add(rows[1][5])
    handed = world.broker.send(rows)
    assert handed.count == 1
    assert handed.fault is not None
    assert (handed.fault.id, handed.fault.code, handed.fault.heals) == (rows[1][5], "too_large", False)
    assert handed.fault.scope == Scope(kind=Kind.KEY, aggregatetype="lines", aggregateid="k")
    assert world.broker.send(rows[2:]).count == 1
    confirmed(world.broker)
    assert world.broker.failed() is None
    assert world.arrived() == [rows[0][5]]


@pytest.mark.case("R-10")
def test_a_missing_topic_is_blamed_and_not_the_row_and_the_probe_tells_when_it_is_there(world: World) -> None:
    """Fails when the row is blamed, or a client that missed a topic never finds it."""
    scope = Scope(kind=Kind.TOPIC, aggregatetype="topic")
    world.lack("topic")
    rows = [row(1, "k"), row(2, "k", kind="topic")]
    handed = world.broker.send(rows)
    assert handed.count == 1
    assert handed.fault is not None
    assert (handed.fault.scope, handed.fault.code, handed.fault.heals) == (scope, "missing", True)
    assert (handed.fault.id, handed.fault.seq) == (None, None)
    confirmed(world.broker)
    assert world.broker.probe(scope) is not None
    world.supply("topic")
    eventually(lambda: world.broker.probe(scope) is None, what="the topic is there")
    assert world.broker.send(rows[1:]).count == 1
    confirmed(world.broker)


@pytest.mark.case("R-10")
def test_a_healthy_broker_is_asked_and_names_nothing(world: World) -> None:
    world.broker.send([row(1, "k")])
    assert list(world.broker.unreachable()) == []
    confirmed(world.broker)
    assert list(world.broker.unreachable()) == []
    partition = Scope(kind=Kind.PARTITION, aggregatetype="lines", partition=0, partitions=1)
    key = Scope(kind=Kind.KEY, aggregatetype="lines", aggregateid="k")
    assert [world.broker.probe(scope) for scope in (partition, key)] == [None, None]
    assert world.broker.renew(1.0) is None


def test_what_is_kept_until_the_next_confirmation_is_bounded(
    stack: Endpoints, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when rows that the broker has long confirmed pile up until the next save."""
    monkeypatch.setattr(adapter, "MOST_ROWS", 3)
    world = RealWorld(stack.kafka_bootstrap, topic_prefix)
    assert world.client.send([row(n) for n in range(5)]).count == 5
    assert world.client.send([row(9)]).count == 0
    confirmed(world.client)
    assert world.client.send([row(9)]).count == 1
    world.client.close()
