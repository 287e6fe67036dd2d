"""The relay and its holds as the console sees them, and orders about holds, on real tables."""

import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.support.console_rows import new_id, one, recorded
from tests.support.console_services import service_over
from tests.support.held import begins, ends, fails, held_key, hold_of, owned
from tests.support.roles import Roles

from packhorse.console.acting.person import Person, hash_of
from packhorse.console.acting.postgres import Database, opened
from packhorse.console.relaying.model import order_of
from packhorse.console.service import Service
from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import Forbidden, OwnershipLost, PackhorseError, UnknownId, UsageError
from packhorse.relay.orders.model import HoldView

WHY = "limit raised"


def acts(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT act, message_id, detail ->> 'hold', why FROM packhorse.audit WHERE act IN ('release', 'discard') ORDER BY id"
    ).fetchall()


def shown(service: Service, hold: int) -> HoldView:
    return service.relaying.release_preview([hold])[0]


@pytest.mark.case("R-10")
def test_the_relay_is_seen_whole(service: Service, connection: psycopg.Connection[Any]) -> None:
    """Fails when a shard, its owner, what waits or what is held is not as the tables say."""
    hold, _ = held_key(connection)
    heals = hold_of(connection, scope="topic", key=None, code="missing", heals=True)
    owned(connection)
    recorded(connection)
    found = service.relaying.relays()
    (shard,) = found.shards
    assert (shard.owner, shard.lag_rows, shard.holds, shard.people) == ("relay-a:4711", 1, 2, (hold,))
    assert [(each.name, each.shards) for each in found.processes] == [("relay-a:4711", (0,))]
    assert [view.id for view in service.relaying.holds().holds] == [heals, hold]


def test_holds_come_in_pages_the_newest_first_and_each_once(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a page repeats or leaves out a hold, or one that is over comes unasked."""
    ids = [hold_of(connection, key=f"k{n}") for n in range(5)]
    ends(connection, ids[1])
    pages, after = list[list[int]](), None
    while True:
        page = service.relaying.holds(after=after, limit=2)
        pages.append([view.id for view in page.holds])
        if (after := page.next) is None:
            break
    assert pages == [[ids[4], ids[3]], [ids[2], ids[0]]]
    assert [view.id for view in service.relaying.holds(ended=True).holds] == ids[::-1]
    for rubbish in ("x", "WyJhIl0", "W10"):
        with pytest.raises(UsageError):
            service.relaying.holds(after=rubbish)


@pytest.mark.case("O-07")
def test_a_release_is_ordered_on_the_record_and_each_step_is_told_apart(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when an order counts as done, or what people did and how it went can't be seen of the hold."""
    hold, ids = held_key(connection)
    before = service.relaying.hold(hold)
    assert before.waiting is not None
    assert ([id_ for id_, _ in before.waiting.first], before.acts) == (ids, ())
    orders = one(connection, "SELECT orders FROM packhorse.relay")
    service.relaying.release([order_of(before.view)], why=WHY, rate=7)
    found = service.relaying.hold(hold)
    assert (found.view.state, found.view.hold.asked, found.view.hold.rate) == ("held", True, 7)
    assert [(act.act, act.why) for act in found.acts] == [("release", WHY)]
    assert acts(connection) == [("release", UUID(ids[0]), str(hold), WHY)]
    assert one(connection, "SELECT orders FROM packhorse.relay") == orders + 1
    begins(connection, hold)
    assert service.relaying.hold(hold).view.state == "releasing"
    ends(connection, hold)
    over = service.relaying.hold(hold)
    assert (over.view.state, over.waiting) == ("ended", None)


@pytest.mark.case("O-02")
def test_of_many_who_release_a_hold_at_once_one_does_and_the_others_are_told_who(
    service: Service, connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when a hold is released twice, or the later ones are not told."""
    hold, _ = held_key(connection)
    order = order_of(shown(service, hold))
    start, told = threading.Barrier(4), list[str]()

    def release() -> None:
        with opened(database, schema="packhorse", timeout=30) as tables:
            own = service_over(tables)
            start.wait()
            try:
                own.relaying.release([order], why=WHY)
                told.append("done")
            except OwnershipLost as error:
                told.append(str(error))

    threads = [threading.Thread(target=release) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(text.partition(": ")[0] for text in told) == [
        "done",
        *[f"the release of hold {hold} is ordered already"] * 3,
    ]
    assert len(acts(connection)) == 1
    assert all("release by " in text for text in told if text != "done")


@pytest.mark.case("O-01")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (begins, "on its way already"),
        (ends, "has ended already"),
        (fails, "no longer as it was shown"),
        (
            lambda c, h: c.execute("UPDATE packhorse.relay_hold SET code = 'header' WHERE id = %s", (h,)),
            "by now it is header",
        ),
    ],
    ids=["releasing", "ended", "failed", "another reason"],
)
def test_what_changed_since_the_preview_is_not_ordered(
    service: Service, connection: psycopg.Connection[Any], change: Callable[..., object], said: str
) -> None:
    """Fails when an order is of another hold than was shown, or of a part of what was."""
    hold, ids = held_key(connection)
    other = hold_of(connection, key="other")
    orders = [order_of(shown(service, each)) for each in (other, hold)]
    change(connection, hold)
    with pytest.raises(OwnershipLost, match=said):
        service.relaying.release(orders, why=WHY)
    with pytest.raises(OwnershipLost, match=said):
        service.relaying.discard(orders[1], UUID(ids[0]), why=WHY)
    assert acts(connection) == []
    assert one(connection, "SELECT count(*) FROM packhorse.relay_hold WHERE asked IS NOT NULL") == 0


@pytest.mark.case("R-10")
def test_a_row_is_given_up_by_name_once(service: Service, connection: psycopg.Connection[Any]) -> None:
    """Fails when another row than the named one is given up, or one that does not wait there."""
    hold, ids = held_key(connection)
    found = service.relaying.discard_preview(hold, UUID(ids[1]))
    assert (found.row.id, found.view.id) == (ids[1], hold)
    strange = recorded(connection, key="another")
    with pytest.raises(UsageError, match="does not wait in hold"):
        service.relaying.discard_preview(hold, strange)
    with pytest.raises(UsageError, match="no committed outbox row"):
        service.relaying.discard(order_of(found.view), new_id(), why=WHY)
    service.relaying.discard(order_of(found.view), UUID(ids[1]), why=WHY)
    assert connection.execute("SELECT message_id::text, why FROM packhorse.relay_discard").fetchall() == [
        (ids[1], WHY)
    ]
    assert acts(connection) == [("discard", UUID(ids[1]), str(hold), WHY)]
    assert service.relaying.hold(hold).view.hold.asked


@pytest.mark.case("O-13")
def test_without_the_right_to_act_nothing_is_ordered(
    service: Service, tables: Database, connection: psycopg.Connection[Any], roles: Roles
) -> None:
    """Fails when the right is looked for elsewhere than in the transaction of the order, or a viewer may not look."""
    hold, ids = held_key(connection)
    token = SYSTEM_CHANCE.token().hex
    connection.execute(
        "INSERT INTO packhorse.operator (kind, name, role, token_hash, made_by) VALUES ('token', 'vera', 'viewer', %s, 'a test')",
        (hash_of(token),),
    )
    vera = service_over(tables, Person(user="page", token_hash=hash_of(token)))
    order = order_of(vera.relaying.release_preview([hold])[0])
    with pytest.raises(Forbidden, match="vera may not release holds"):
        vera.relaying.release([order], why=WHY)
    with pytest.raises(Forbidden, match="vera may not give up rows"):
        vera.relaying.discard(order, UUID(ids[0]), why=WHY)
    assert acts(connection) == []
    operator = roles.make("operator")
    with opened(roles.url(operator), schema="packhorse", timeout=5) as own:
        service_over(own).relaying.release([order], why=WHY)
    assert len(acts(connection)) == 1


@pytest.mark.parametrize(
    ("ids", "error"),
    [([], UsageError), ([2**40], UnknownId), ([2**70], PackhorseError), ([1] * 201, UsageError)],
)
def test_holds_that_are_not_there_are_refused(
    service: Service, ids: list[int], error: type[Exception]
) -> None:
    """Fails when an order about nothing, too much or rubbish is taken, or is an error of ours."""
    with pytest.raises(error):
        service.relaying.release_preview(ids)


def test_a_look_at_a_hold_reads_no_more_than_its_bound(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a look goes through all of the outbox, however much waits there."""
    hold, _ = held_key(connection)
    connection.execute(
        "INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version)"
        " SELECT gen_random_uuid(), 'aircraft', 'k' || n % 100, 't', '1' FROM generate_series(1, 25000) AS n"
    )
    found = service.relaying.hold(hold).waiting
    assert found is not None
    assert (found.rows, found.whole, found.most) == (2, False, 20_000)
    assert "20,000 rows of the outbox" in str(found)
