"""The console on real tables: what it reads, what it orders, and that it orders once."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from tests.support.console_rows import handled, horizon_past_all, new_id, one, recorded, rested
from tests.support.console_services import service_over
from tests.support.roles import Roles
from tests.support.wait import eventually

from packhorse.console.acting.person import this_process
from packhorse.console.acting.postgres import opened
from packhorse.console.facts import Outcome, State
from packhorse.console.quarantine.pages import Filter, Position
from packhorse.console.service import Service
from packhorse.console.truth.groups import Redrive
from packhorse.console.truth.status import Published
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import DatabaseUnavailable, NotReady, OwnershipLost, SettingsError
from packhorse.core.ids import uuid7_from
from packhorse.core.users import system_user

WHY = "fixed in 1.4.2"


def audit_count(connection: psycopg.Connection[Any]) -> int:
    return int(one(connection, "SELECT count(*) FROM packhorse.audit"))


@pytest.mark.case("X-02")
def test_a_parked_message_names_the_head_that_it_waits_behind(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a person has to find out by hand why a message of a parked key does not run."""
    head, follower = rested(connection), handled(connection, outcome="parked")
    connection.execute(
        "INSERT INTO packhorse.parked_message (group_id, topic, message_id, key_hash, topic_age, topic_id, partition,"
        " \"offset\", timestamp_ms, headers) SELECT group_id, topic, message_id, repeat('0', 32), 0, gen_random_uuid(), 0, 1, 0, '[]'"
        " FROM packhorse.inbox WHERE message_id = %s",
        (follower,),
    )
    connection.execute(
        "INSERT INTO packhorse.parked_key (group_id, topic, key_hash, partition, head_id)"
        " SELECT group_id, topic, repeat('0', 32), 0, %s FROM packhorse.inbox WHERE message_id = %s",
        (head, follower),
    )
    assert service.truth.status(follower, search=False).standing.endswith(
        f"parked: waits behind {head}, 1 of 1 in the queue"
    )


def test_an_id_of_before_what_the_inbox_keeps_is_said_so(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    connection.execute(
        "INSERT INTO packhorse.inbox_retention (group_id, kept_from) VALUES ('', '-infinity'),"
        " ('figures', clock_timestamp() - interval '22 days 1 hour')"
    )
    now = SYSTEM_CLOCK.now()
    old, young = (uuid7_from(now - timedelta(days=days), bytes(10)) for days in (23, 21))
    assert service.truth.status(old, search=False).standing == (
        "older than the inbox keeps: no row; group figures keeps rows for 22 days, and may have dealt with it"
    )
    assert service.truth.status(young, search=False).standing.startswith("unknown")
    assert service.truth.status(UUID(int=7 << 124 | 4 << 76), search=False).standing.startswith("unknown")


@pytest.mark.case("X-01")
def test_an_id_that_never_existed_is_unknown(service: Service) -> None:
    """Fails when an absent row is reported as recorded, accepted or pending."""
    status = service.truth.status(new_id(), search=True)
    assert not status.known
    assert status.standing.startswith("unknown")
    assert "not searched" in status.search.said


@pytest.mark.case("X-02")
def test_a_message_is_followed_from_its_transaction_to_the_horizon(
    service: Service, connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when an open transaction is seen, or when the horizon's answer is not asked for."""
    with psycopg.connect(database) as writer:
        message_id = recorded(writer)
        assert not service.truth.status(message_id, search=False).known
        writer.commit()
    connection.execute("UPDATE packhorse.relay SET epoch = 1")
    assert service.truth.status(message_id, search=False).standing == "recorded, not yet published"
    horizon_past_all(connection)
    status = service.truth.status(message_id, search=False)
    assert (status.published, status.standing) == (
        Published.YES,
        "published, no delivery known in this database",
    )


@pytest.mark.case("X-02")
def test_inside_a_target_progress_decides(service: Service, connection: psycopg.Connection[Any]) -> None:
    """Fails when target and progress are left out of the question, or `seq <=` becomes `<`."""
    first, second = recorded(connection), recorded(connection)
    seq = one(connection, "SELECT seq FROM packhorse.outbox WHERE id = %s", first)
    connection.execute(
        "UPDATE packhorse.relay SET epoch = 1, target = (SELECT pg_current_snapshot()), progress = %s", (seq,)
    )
    found = [service.truth.status(each, search=False).published for each in (first, second)]
    assert found == [Published.YES, Published.NOT_YET]


def test_a_consumers_own_database_answers_without_an_outbox_row(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    message_id = handled(connection, deliveries=3)
    handled(connection, message_id, group="billing", outcome="retry", attempt=2)
    status = service.truth.status(message_id, search=False)
    assert status.recorded is None
    assert status.published is Published.YES
    assert [(group.group, group.standing) for group in status.groups] == [
        ("billing", "retry: attempt 2 is next"),
        ("figures", "done"),
    ]


def test_pages_reach_each_message_once_whatever_the_ties(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    noon = datetime(2026, 8, 1, 12, tzinfo=UTC)
    ids = {rested(connection, quarantined_at=noon) for _ in range(7)}
    message_id = rested(connection, quarantined_at=noon)
    rested(connection, message_id, group="billing", quarantined_at=noon)
    seen: list[tuple[UUID, str]] = []
    after: Position | None = None
    while True:
        page = service.quarantine.page(Filter(), after=after, limit=2)
        seen += [(message.id, message.group) for message in page.messages]
        if (after := page.next) is None:
            break
    assert len(seen) == 9
    assert set(seen) == {(each, "figures") for each in ids | {message_id}} | {(message_id, "billing")}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(), {"a", "b", "c"}),
        (Filter(group="b"), {"b"}),
        (Filter(topic="x.y"), {"b"}),
        (Filter(reason="permanent"), {"b", "c"}),
        (Filter(type="T"), {"c"}),
        (Filter(tenant="acme"), {"a"}),
        (Filter(state=State.REDRIVEN), {"d"}),
        (Filter(state=None), {"a", "b", "c", "d"}),
        (Filter(group="a", reason="permanent"), set()),
    ],
)
def test_filters(
    service: Service, connection: psycopg.Connection[Any], wanted: Filter, expected: set[str]
) -> None:
    rested(connection, group="a", tenant="acme")
    rested(connection, group="b", topic="x.y", reason="permanent")
    rested(connection, group="c", type="T", reason="permanent")
    rested(connection, group="d")
    connection.execute("UPDATE packhorse.quarantined_message SET state = 'redriven' WHERE group_id = 'd'")
    assert {
        message.group for message in service.quarantine.page(wanted, after=None, limit=10).messages
    } == expected


def test_show_gives_headers_in_their_order_and_masks_what_is_not_ours(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    message_id = rested(connection, headers=[["id", "aWQ="], ["odd", "/wA="], ["null", None], ["id", ""]])
    shown = service.quarantine.show(message_id, group=None, topic=None, payload=True)
    assert shown.headers == (("id", b"id"), ("odd", b"***"), ("null", None), ("id", b""))
    unmasked = service.quarantine.unmask(message_id, group=None, topic=None, why=WHY)
    assert unmasked.headers == (("id", b"id"), ("odd", b"\xff\x00"), ("null", None), ("id", b""))
    assert shown.payload_said == "not decoded: PACKHORSE_REGISTRY_URL is not set"


@pytest.mark.case("T-17")
def test_a_redrive_changes_three_rows_at_once(service: Service, connection: psycopg.Connection[Any]) -> None:
    """Fails when one of the three statements is left out, or the attempt is not moved."""
    message_id = rested(connection)
    preview = service.quarantine.preview(message_id, group=None, topic=None)
    actor = service.people.actor()
    service.quarantine.redrive(preview.order, why=f" {WHY} ")
    status = service.truth.status(message_id, search=False)
    (group,), (act,) = status.groups, status.acts
    assert group.redrive is Redrive.ASKED
    assert group.inbox is not None
    assert (group.inbox.outcome, group.inbox.attempt) == (Outcome.RETRY, 6)
    assert group.inbox.due_at is not None
    assert (act.act, act.why, act.actor) == ("redrive", WHY, actor)
    assert act.detail == {"attempt": 6, "redrive": 1}


def test_a_redrive_forgets_why_the_broker_refused_the_one_before(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a refusal of before stands for this redrive: a set that waits for its outcome would take it for refused."""
    message_id = rested(connection)
    connection.execute("UPDATE packhorse.quarantined_message SET redrive_refused = 'too large'")
    order = service.quarantine.preview(message_id, group=None, topic=None).order
    service.quarantine.redrive(order, why=WHY)
    row = connection.execute("SELECT redrive_refused FROM packhorse.quarantined_message").fetchone()
    assert row == (None,)


@pytest.mark.case("O-02")
def test_of_two_operators_one_acts_and_the_other_is_told_who(
    database: str, service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the claim does not compare the previewed values, or the loser is not told by whom."""
    message_id = rested(connection)
    order = service.quarantine.preview(message_id, group=None, topic=None).order
    gate = threading.Barrier(2)
    told: list[str] = []

    def act(name: str) -> None:
        with opened(database, schema="packhorse", timeout=5) as tables:
            mine = service_over(tables, this_process(claimed=name))
            gate.wait(10)
            try:
                mine.quarantine.redrive(order, why=WHY)
            except OwnershipLost as error:
                told.append(f"{name}: {error}")

    threads = [threading.Thread(target=act, args=(name,)) for name in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(told) == 1
    winner = "bob" if told[0].startswith("ann") else "ann"
    assert f"redrive by {winner} (claimed by" in told[0]
    assert audit_count(connection) == 1
    assert one(connection, "SELECT attempt FROM packhorse.inbox") == 6


@pytest.mark.case("O-02")
def test_the_one_who_waits_for_the_other_is_told_too(
    database: str, service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the loser's look at the audit shares the snapshot in which it claimed."""
    message_id = rested(connection)
    order = service.quarantine.preview(message_id, group=None, topic=None).order
    told: list[str] = []

    def second() -> None:
        try:
            service.quarantine.redrive(order, why=WHY)
        except OwnershipLost as error:
            told.append(str(error))

    with psycopg.connect(database) as first:
        first.execute("UPDATE packhorse.quarantined_message SET state = 'redriven', redrives = 1")
        first.execute(
            "INSERT INTO packhorse.audit (actor, act, group_id, topic, message_id) VALUES ('ann', 'redrive', %s, %s, %s)",
            (order.group, order.topic, order.id),
        )
        waiting = threading.Thread(target=second)
        waiting.start()
        eventually(
            lambda: one(connection, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 1,
            what="the second waits for the first",
        )
        first.commit()
        waiting.join(20)
    assert len(told) == 1
    assert "is redriven already: redrive by ann at" in told[0]


@pytest.mark.parametrize(
    "moved",
    [
        "UPDATE packhorse.inbox SET attempt = 7",
        "UPDATE packhorse.inbox SET outcome = 'done'",
        "UPDATE packhorse.quarantined_message SET redrives = 1",
        "UPDATE packhorse.quarantined_message SET quarantined_at = now()",
        "UPDATE packhorse.quarantined_message SET state = 'discarded'",
        "DELETE FROM packhorse.quarantined_message",
    ],
)
@pytest.mark.case("O-01")
def test_what_moved_since_the_preview_is_not_acted_on(
    service: Service, connection: psycopg.Connection[Any], moved: str
) -> None:
    """Fails when one of the previewed values is left out of the claim; nothing may be half done."""
    message_id = rested(connection)
    order = service.quarantine.preview(message_id, group=None, topic=None).order
    connection.execute(moved)
    before = connection.execute("SELECT outcome, attempt FROM packhorse.inbox").fetchall()
    with pytest.raises(OwnershipLost, match="nothing was done now"):
        service.quarantine.redrive(order, why=WHY)
    assert connection.execute("SELECT outcome, attempt FROM packhorse.inbox").fetchall() == before
    assert one(connection, "SELECT count(*) FROM packhorse.quarantined_message WHERE state = 'redriven'") == 0
    assert audit_count(connection) == 0


@pytest.fixture
def operator(roles: Roles) -> tuple[str, str]:
    """Provide a role with an operator's rights, and the URL to connect as it."""
    role = roles.make("operator")
    return role, roles.url(role)


def test_an_operators_rights_are_enough(
    operator: tuple[str, str], connection: psycopg.Connection[Any]
) -> None:
    role, url = operator
    message_id = rested(connection)
    with opened(url, schema="packhorse", timeout=5) as tables:
        service = service_over(tables)
        assert service.quarantine.page(Filter(), after=None, limit=5).messages
        assert (
            service.quarantine.show(message_id, group=None, topic=None, payload=False).message.id
            == message_id
        )
        order = service.quarantine.preview(message_id, group=None, topic=None).order
        service.quarantine.redrive(order, why=WHY)
        assert (
            service.truth.status(message_id, search=False).acts[0].actor == f"{system_user()} (role {role})"
        )


def test_without_the_right_to_record_nothing_is_done(
    operator: tuple[str, str], connection: psycopg.Connection[Any]
) -> None:
    role, url = operator
    message_id = rested(connection)
    connection.execute(sql.SQL("REVOKE INSERT ON packhorse.audit FROM {}").format(sql.Identifier(role)))
    with opened(url, schema="packhorse", timeout=5) as tables:
        service = service_over(tables)
        order = service.quarantine.preview(message_id, group=None, topic=None).order
        with pytest.raises(NotReady, match="permission denied for table audit"):
            service.quarantine.redrive(order, why=WHY)
    assert one(connection, "SELECT state FROM packhorse.quarantined_message") == "quarantined"
    assert one(connection, "SELECT outcome FROM packhorse.inbox") == "quarantine"


def test_a_row_that_somebody_holds_ends_the_act_in_time(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    message_id = rested(connection)
    with psycopg.connect(database) as holder, opened(database, schema="packhorse", timeout=0.2) as tables:
        service = service_over(tables)
        order = service.quarantine.preview(message_id, group=None, topic=None).order
        holder.execute("SELECT FROM packhorse.inbox FOR UPDATE")
        with pytest.raises(DatabaseUnavailable, match="nothing was changed, try again"):
            service.quarantine.redrive(order, why=WHY)
    assert one(connection, "SELECT state FROM packhorse.quarantined_message") == "quarantined"


@pytest.mark.case("X-11")
def test_missing_tables_are_named_with_the_command_that_makes_them(empty_database: str) -> None:
    """Fails when the driver's error goes out as it is."""
    with (
        opened(empty_database, schema="packhorse", timeout=5) as tables,
        pytest.raises(NotReady, match=r"packhorse\.outbox.*packhorse migrate up"),
    ):
        service_over(tables).truth.facts(new_id())


def test_a_database_that_only_reads_is_said_so(database: str, connection: psycopg.Connection[Any]) -> None:
    message_id = rested(connection)
    url = f"{database}?options=-c%20default_transaction_read_only%3Don"
    with opened(url, schema="packhorse", timeout=5) as tables:
        service = service_over(tables)
        order = service.quarantine.preview(message_id, group=None, topic=None).order
        with pytest.raises(NotReady, match="only reads"):
            service.quarantine.redrive(order, why=WHY)


@pytest.mark.case("X-08")
@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("postgresql://app:hunter2@127.0.0.1:1/app", DatabaseUnavailable),
        ("postgresql://app:hunter2@127.0.0.1:1/app?connect_timeout=x", DatabaseUnavailable),
        ("postgresql://app:hun@ter2@127.0.0.1:1/app", DatabaseUnavailable),
        ("postgresql://app:hun/ter2@127.0.0.1:1/app", DatabaseUnavailable),
        ("postgresql://app:hun%ter2@127.0.0.1:1/app", SettingsError),
        ("postgres ql://app:hunter2@127.0.0.1:1/app", SettingsError),
        ("host=127.0.0.1 port=1 user=app password=hunter2", DatabaseUnavailable),
        ("host=127.0.0.1 port=1 user=app password='hunter2", SettingsError),
        ("host=127.0.0.1 port=1 pass word=hunter2", SettingsError),
    ],
)
def test_no_form_of_a_failing_connection_tells_the_password(url: str, error: type[Exception]) -> None:
    """Fails when the driver's text is passed on, or chained, with the pieces it has torn the password into."""
    with (
        pytest.raises((DatabaseUnavailable, SettingsError)) as caught,
        opened(url, schema="packhorse", timeout=2),
    ):
        pass
    assert caught.type is error
    assert caught.value.__cause__ is None
    for text in (str(caught.value), repr(caught.value)):
        assert "ter2" not in text
        assert "hunt" not in text
