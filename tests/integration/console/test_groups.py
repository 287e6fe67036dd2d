"""Counts of the quarantine on real tables: exact, by every dimension, through every way a message can go."""

import random
from collections import Counter
from typing import Any

import psycopg
import pytest
from tests.support.console_rows import rested
from tests.support.console_services import service_over
from tests.support.roles import Roles

from packhorse.console.acting.postgres import Database, opened
from packhorse.console.quarantine.groups.folding import Folding
from packhorse.console.quarantine.groups.model import MOST_CHANGES, By, GroupFilter
from packhorse.console.quarantine.groups.postgres import GroupTables
from packhorse.console.service import Service
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import Forbidden, OwnershipLost, UnknownId, UsageError

PLACE = "ValueError at shop/handlers.py:12 in placed"


def fold(connection: psycopg.Connection[Any], step: int = 5000) -> int:
    row = connection.execute("SELECT packhorse.fold_quarantine(%s)", (step,)).fetchone()
    assert row is not None
    return int(row[0])


def counted(service: Service, by: By, **wanted: Any) -> dict[str, tuple[int, int, int]]:
    page = service.groups.page(GroupFilter(**{"state": None, **wanted}), by=by, limit=1_000)
    return {group.name: (group.quarantined, group.redriven, group.discarded) for group in page.groups}


@pytest.mark.case("O-09")
def test_counts_are_exact_whatever_became_of_messages_and_however_far_they_are_folded(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a trigger forgets one way of a message, or a fold counts a change twice or drops one."""
    chance = random.Random(7)
    for _ in range(40):
        match chance.randrange(5):
            case 0 | 1:
                rested(
                    connection,
                    reason=chance.choice(["permanent", "crashed"]),
                    tenant=chance.choice(["a", "b", None]),
                    error=chance.choice([PLACE, f"{PLACE}: 17", None]),
                    type=chance.choice(["airline.FlightDeparted", None]),
                )
            case 2:
                connection.execute(
                    "UPDATE packhorse.quarantined_message SET state = %s, quarantined_at = quarantined_at - interval '1 day'"
                    " WHERE message_id IN (SELECT message_id FROM packhorse.quarantined_message ORDER BY random() LIMIT 3)",
                    (chance.choice(["quarantined", "redriven", "discarded"]),),
                )
            case 3:
                connection.execute(
                    "DELETE FROM packhorse.quarantined_message WHERE message_id ="
                    " (SELECT min(message_id::text)::uuid FROM packhorse.quarantined_message)"
                )
            case _:
                fold(connection, chance.choice([1, 3, 5000]))
        for by, column in (
            (By.REASON, "reason"),
            (By.TENANT, "coalesce(tenant, '')"),
            (By.TYPE, "coalesce(type, '')"),
            (By.DAY, "(quarantined_at AT TIME ZONE 'UTC')::date::text"),
            (By.FAILURE, "packhorse.failure_print(group_id, topic, type, reason, error)"),
        ):
            assert counted(service, by) == truth(connection, column), by
    assert fold(connection) >= 0
    assert counted(service, By.REASON) == truth(connection, "reason")


def truth(connection: psycopg.Connection[Any], column: str) -> dict[str, tuple[int, int, int]]:
    query = f"SELECT {column}, state FROM packhorse.quarantined_message"
    found = Counter(connection.execute(query.encode()).fetchall())
    names = {name for name, _ in found}
    states = ("quarantined", "redriven", "discarded")
    return {name: tuple(found[name, state] for state in states) for name in names}  # type: ignore[misc]


def test_class_and_place_of_the_error_are_told_apart(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    rested(connection, error="psycopg.errors.CheckViolation (23514) at shop/handlers.py:12 in placed")
    assert counted(service, By.CLASS) == {"psycopg.errors.CheckViolation": (1, 0, 0)}
    assert counted(service, By.PLACE) == {"shop/handlers.py:12 in placed": (1, 0, 0)}


@pytest.mark.case("O-09")
def test_pages_of_groups_follow_one_another_without_a_gap(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when groups of equal size are left out or come twice at the turn of a page."""
    for number in range(7):
        for _ in range(1 + number % 2):
            rested(connection, reason=f"reason-{number}")
    names: list[str] = []
    after = None
    for _ in range(4):
        page = service.groups.page(GroupFilter(), by=By.REASON, after=after, limit=2)
        names += [group.name for group in page.groups]
        after = page.next
        assert page.groups_in_all == 7
    assert after is None
    assert names == [f"reason-{number}" for number in (1, 3, 5, 0, 2, 4, 6)]


def test_days_and_tenants_are_not_counted_together(service: Service) -> None:
    with pytest.raises(UsageError, match="not by both at once"):
        service.groups.page(GroupFilter(tenant="a"), by=By.DAY)


@pytest.mark.case("O-09")
def test_one_group_is_shown_with_days_samples_and_the_share_that_failed_for_good(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when messages that recovered, or those of another type, are left out of or counted into the share."""
    stopped = rested(connection, error=f"{PLACE}: one", tenant="a")
    failed = [(stopped, "airline.FlightDeparted")]
    for kind in ("airline.FlightDeparted", "airline.FlightDeparted", "airline.Other"):
        row = connection.execute(
            'INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, partition, "offset", type)'
            " VALUES ('figures', 'airline.aircraft', gen_random_uuid(), 'done', 0, 1, %s) RETURNING message_id",
            (kind,),
        ).fetchone()
        assert row is not None
        failed.append((row[0], kind))
    for message_id, _ in failed:
        connection.execute(
            "INSERT INTO packhorse.failed_attempt (group_id, topic, message_id, attempt, reason)"
            " VALUES ('figures', 'airline.aircraft', %s, 1, 'failed')",
            (message_id,),
        )
    (group,) = service.groups.page(GroupFilter()).groups
    shown = service.groups.show(group.name[:8])
    assert (shown.for_good.failed, shown.for_good.stopped) == (3, 1)
    assert shown.samples == (stopped,)
    assert [(day.quarantined, day.redriven) for day in shown.days] == [(1, 0)]
    assert shown.tenants == (("a", 1),)
    assert group.failure is not None
    assert group.failure.site == PLACE


def test_a_print_that_is_not_there_or_not_one_is_said_so(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    rested(connection)
    with pytest.raises(UnknownId, match="begins with 00000000"):
        service.groups.show("00000000")
    with pytest.raises(UsageError, match="8 to 32"):
        service.groups.show("12")


@pytest.mark.case("O-14")
def test_notes_and_acknowledging_are_on_the_record_and_what_came_since_is_counted(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when an act has no audit row, a second acknowledgement acts, or what came before is counted as since."""
    message_id = rested(connection)
    (group,) = service.groups.page(GroupFilter()).groups
    service.groups.note(message_id, " fixed in 1.4.2 ")
    service.groups.acknowledge(group.name[:8], why="known")
    with pytest.raises(OwnershipLost, match="acknowledged already: by"):
        service.groups.acknowledge(group.name[:8], why="known")
    rested(connection)
    (group,) = service.groups.page(GroupFilter()).groups
    assert group.known is not None
    assert (group.known.notes, group.known.since, group.known.acknowledged_why) == (1, 1, "known")
    assert [note.note for note in service.groups.show(group.name).notes] == ["fixed in 1.4.2"]
    service.groups.unacknowledge(group.name, why="it came back")
    with pytest.raises(OwnershipLost, match="not acknowledged"):
        service.groups.unacknowledge(group.name)
    acts = connection.execute(
        "SELECT act, why, detail->>'failure' FROM packhorse.audit ORDER BY id"
    ).fetchall()
    assert acts == [
        ("note", None, group.name),
        ("acknowledge", "known", group.name),
        ("unacknowledge", "it came back", group.name),
    ]


@pytest.mark.case("O-13")
def test_a_viewer_sees_groups_and_writes_nothing(roles: Roles, connection: psycopg.Connection[Any]) -> None:
    """Fails when the listing needs the right to fold, or a note is written without the right to act."""
    connection.execute(
        "INSERT INTO packhorse.quarantine_change (group_id, topic, type, tenant, reason, site, day, state, n, first_at, last_at)"
        " SELECT 'figures', 't', 'x', '', 'crashed', '', '2026-08-01', 'quarantined', 1, now(), now()"
        " FROM generate_series(1, 6000)"
    )
    with opened(roles.url(roles.make("viewer")), schema="packhorse", timeout=5) as tables:
        service = service_over(tables)
        assert counted(service, By.REASON) == {"crashed": (6000, 0, 0)}
        (group,) = service.groups.page(GroupFilter()).groups
        with pytest.raises(Forbidden, match="may not write notes"):
            service.groups.note(group.name, "x")


def changed(connection: psycopg.Connection[Any], times: int, reason: str = "crashed") -> None:
    """Let *times* messages have come to quarantine, none of which is in the counts yet."""
    connection.execute(
        "INSERT INTO packhorse.quarantine_change (group_id, topic, type, tenant, reason, site, day, state, n, first_at, last_at)"
        " SELECT 'figures', 't', 'x', '', %s, '', '2026-08-01', 'quarantined', 1, now(), now()"
        " FROM generate_series(1, %s)",
        (reason, times),
    )


def waiting(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT count(*) FROM packhorse.quarantine_change").fetchone()
    assert row is not None
    return int(row[0])


def test_a_look_pays_for_no_backlog_and_says_what_is_not_counted_yet(
    service: Service, tables: Database, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a look adds a large backlog to the counts, or reads all of it, or shows counts without it as exact."""
    changed(connection, 20, "permanent")
    fold(connection)
    (before,) = service.groups.page(GroupFilter()).groups
    changed(connection, MOST_CHANGES + 10)
    page = service.groups.page(GroupFilter(), by=By.REASON)
    assert ([group.name for group in page.groups], page.uncounted) == (["permanent"], MOST_CHANGES + 1)
    shown = service.groups.show(before.name)
    assert (shown.group.quarantined, shown.uncounted) == (20, MOST_CHANGES + 1)
    assert waiting(connection) == MOST_CHANGES + 10
    with pytest.raises(UnknownId, match="still counting"):
        service.groups.show("00000000")
    folding = Folding(GroupTables(tables), SYSTEM_CLOCK)
    while folding.look():
        pass
    page = service.groups.page(GroupFilter(), by=By.REASON)
    assert [group.quarantined for group in page.groups] == [MOST_CHANGES + 10, 20]
    assert (page.uncounted, waiting(connection) < 5_000) == (0, True)


def test_a_backlog_that_is_soon_added_up_is_in_the_counts(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    changed(connection, 26_000)
    page = service.groups.page(GroupFilter(state=None), by=By.REASON)
    assert (page.groups[0].quarantined, page.uncounted, waiting(connection)) == (26_000, 0, 26_000)


def test_a_group_of_which_nothing_is_left_is_said_to_be_gone(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when it is an error that nobody expected."""
    changed(connection, 1)
    (group,) = service.groups.page(GroupFilter()).groups
    connection.execute(
        "INSERT INTO packhorse.quarantine_change (group_id, topic, type, tenant, reason, site, day, state, n, first_at, last_at)"
        " SELECT group_id, topic, type, tenant, reason, site, day, state, -1, first_at, last_at FROM packhorse.quarantine_change"
    )
    with pytest.raises(UnknownId, match="any more"):
        service.groups.show(group.name)


@pytest.mark.case("X-07")
def test_what_others_wrote_is_inert_in_groups_json_and_csv(
    run: Any, connection: psycopg.Connection[Any]
) -> None:
    """Fails when one column is printed as it is, or a cell of the CSV begins a formula."""
    evil = "=cmd|'/c calc'!A1 \x1b[2J\x1b]0;x\x07[red]x[/red]\u202e"
    rested(connection, error=evil, type=evil, tenant=f"@{evil}", reason=f"+{evil}", group=f"-{evil}")
    (name,) = (group["name"] for group in run("quarantine", "groups", "--json").json()["groups"])
    assert run("quarantine", "note", name, evil).code == 0
    assert run("quarantine", "ack", name, "--why", evil).code == 0
    for by in By:
        for form in ((), ("--json",), ("--csv",)):
            found = run("quarantine", "groups", "--by", by.value, *form)
            assert found.code == 0, found.err
            assert found.out.replace("\n", "").replace("\r", "").isprintable(), (by, form)
            if form == ("--csv",):
                cells = found.out.replace('"', "").replace("\r\n", ",").split(",")
                assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    for form in ((), ("--json",)):
        found = run("quarantine", "group", name, *form)
        assert found.code == 0, found.err
        assert found.out.replace("\n", "").isprintable()
    assert f"packhorse redrive preview --failure {name[:8]}" in run("quarantine", "group", name).out
    assert run("quarantine", "groups", "--csv", "--json").code == 2


def test_a_person_is_told_what_is_wrong_with_a_day(run: Any) -> None:
    found = run("quarantine", "groups", "--since", "2026-08-01T12:00")
    assert found.code == 2
    assert "whole days in UTC" in found.err


def test_an_empty_quarantine_says_so(run: Any) -> None:
    assert run("quarantine", "groups").out == "nothing in quarantine\n"
