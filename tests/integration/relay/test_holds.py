"""What can't go is held, everything else flows; orders of people are carried out once and in order."""

import threading
from random import Random
from uuid import UUID

import psycopg
import pytest
from tests.support.holds import held, holds, none_held, relay
from tests.support.relay import Relays, insert
from tests.support.topics import first_arrivals, make_topic, records, set_limit, wait_for, wait_for_limit

from packhorse.local.settings import Endpoints
from packhorse.relay.postgres.status import read_status

LARGE = Random(7).randbytes(20_000)
"""Larger than the limit that these tests set on a topic; a client can't make it smaller."""


@pytest.fixture
def narrow(stack: Endpoints, topic: str) -> str:
    """Provide the topic, which takes no row as large as LARGE."""
    set_limit(stack.kafka_bootstrap, topic, 10_000)
    wait_for_limit(stack.kafka_bootstrap, topic, LARGE, refused=True)
    return topic


def widen(stack: Endpoints, topic: str) -> None:
    """Let the topic take LARGE."""
    set_limit(stack.kafka_bootstrap, topic, 1_000_000)
    wait_for_limit(stack.kafka_bootstrap, topic, LARGE, refused=False)


def ids_on(stack: Endpoints, topic: str, key: bytes) -> list[str]:
    """Return the first arrivals of *key*."""
    return first_arrivals(records(stack.kafka_bootstrap, topic)).get(key, [])


@pytest.mark.case("R-10")
def test_a_row_too_large_holds_its_key_and_goes_in_order_once_it_is_released(
    group: Relays, database: str, stack: Endpoints, narrow: str
) -> None:
    """Fails when the rows of other keys wait too, when those of its own go on, or when a release overtakes."""
    group.start()
    with psycopg.connect(database, autocommit=True) as connection:
        first = insert(connection, "k")
        bad = insert(connection, "k", payload=LARGE)
        behind = [insert(connection, "k") for _ in range(3)]
        others = [insert(connection, f"o{n}") for n in range(20)]
        (view,) = held(database, "too_large")
        wait_for(stack.kafka_bootstrap, narrow, 21)
        arrived = {record.id for record in records(stack.kafka_bootstrap, narrow)} - {"probe"}
        assert arrived == {first, *others}
        assert (view.hold.fault.id, view.waits_for_a_person) == (bad, True)
        shown = relay(group, "hold", "show", view.id, "--json")
        assert shown.json()["waiting"]["rows"] == 4
        assert relay(group, "holds").code == 1
        assert relay(group, "status", "--sample", "0").code == 1

        failed = relay(group, "hold", "release", view.id, "--yes", "--wait", "20")
        assert failed.code == 1, failed
        assert "held again, too_large" in failed.out
        widen(stack, narrow)
        done = relay(group, "hold", "release", view.id, "--why", "limit raised", "--yes", "--wait", "20")
        assert done.code == 0, done
        last = insert(connection, "k")
    wait_for(stack.kafka_bootstrap, narrow, 27)
    assert ids_on(stack, narrow, b"k") == [first, bad, *behind, last]
    assert not holds(database)
    assert relay(group, "hold", "release", view.id, "--yes").code != 0
