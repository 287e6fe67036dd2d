"""A handler's time-out on a real PostgreSQL: its query ends, and nothing that the lane does afterwards."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from tests.support.databases import fresh_database
from tests.support.lending import Lane, lane_on

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.local.settings import Endpoints
from packhorse.processor.running.deadlines import Deadlines
from packhorse.processor.running.resources import Lent


@pytest.fixture
def lane(stack: Endpoints) -> Iterator[Lane]:
    with fresh_database(stack.database_url) as url, lane_on(url) as found:
        yield found


@pytest.fixture
def deadlines() -> Iterator[Deadlines]:
    made = Deadlines(SYSTEM_CLOCK)
    yield made
    made.close()


def slot(deadlines: Deadlines, lane: Lane) -> Any:
    return deadlines.slot(lambda: lane.connection.cancel_safe(timeout=2), lambda: None)


@pytest.mark.case("P-33")
def test_the_query_of_a_handler_that_outlasts_its_timeout_is_cancelled(
    lane: Lane, deadlines: Deadlines
) -> None:
    """Fails when the time-out only gives up waiting: the query would go on for a minute."""
    deadline = slot(deadlines, lane)
    lane.begin()
    began = SYSTEM_CLOCK.monotonic()
    deadline.start(0.05)
    with pytest.raises(psycopg.errors.QueryCanceled):
        lane.handle(lambda lent: lent.connection.execute("SELECT pg_sleep(60)"))
    assert deadline.stop()
    assert SYSTEM_CLOCK.monotonic() - began < 20
    lane.roll_back()
    lane.begin()
    lane.handle(lambda lent: lent.connection.execute("SELECT 1"))
    lane.commit()


def test_a_handler_that_goes_on_after_the_error_is_cancelled_again(lane: Lane, deadlines: Deadlines) -> None:
    def handler(lent: Lent) -> None:
        for _ in range(2):
            with pytest.raises(psycopg.errors.QueryCanceled), lent.connection.transaction():
                lent.connection.execute("SELECT pg_sleep(60)")

    deadline = slot(deadlines, lane)
    lane.begin()
    deadline.start(0.05)
    lane.handle(handler)
    assert deadline.stop()
    lane.roll_back()


def test_nothing_is_cancelled_that_comes_after_the_handler(lane: Lane, deadlines: Deadlines) -> None:
    """Fails when `stop` lets a cancelling go on: it would hit what the lane writes, or the next handler."""
    deadline = slot(deadlines, lane)
    fired = 0
    for n in range(60):
        lane.begin()
        deadline.start(0.0005 * (n % 5))
        with suppress(psycopg.errors.QueryCanceled):
            lane.handle(lambda lent: lent.connection.execute("SELECT pg_sleep(0.001)"))
        fired += deadline.stop()
        lane.roll_back()
        lane.connection.execute("SELECT pg_sleep(0.002)")
    assert fired
