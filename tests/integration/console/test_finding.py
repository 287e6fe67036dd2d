"""Finding messages in quarantine: by what an index leads to, and by looking through bounded portions."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.support.console_rows import new_id, rested

from packhorse.console import paging
from packhorse.console.quarantine.groups.model import GroupFilter
from packhorse.console.quarantine.pages import Filter, Position
from packhorse.console.service import Service
from packhorse.core.errors import UnknownId, UsageError

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)


def ids(service: Service, *, limit: int = 100, **wanted: Any) -> list[UUID]:
    found: list[UUID] = []
    after: Position | None = None
    while True:
        page = service.quarantine.page(Filter(**wanted), after=after, limit=limit)
        found += [message.id for message in page.messages]
        if (after := page.next) is None:
            return found


@pytest.mark.case("O-09")
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_each_filter_finds_its_messages_and_no_others(
    service: Service, connection: psycopg.Connection[Any], limit: int
) -> None:
    """Fails when a filter is left out of one of the statements, or a page skips or repeats a message."""
    plain = [rested(connection, quarantined_at=NOON - timedelta(hours=n)) for n in range(4)]
    odd = rested(
        connection,
        plain[0],
        group="billing",
        key=b"\xff\x00odd",
        type="shop.Odd",
        tenant="acme",
        reason="permanent",
        error="shop.Broken at shop.py:3: Customer 17 is closed",
        quarantined_at=NOON,
    )
    group = next(
        found.name for found in service.groups.page(GroupFilter(reason="permanent")).groups if found.failure
    )
    only = [odd]
    assert ids(service, limit=limit, key=b"\xff\x00odd") == only
    assert ids(service, limit=limit, failure=group[:8]) == only
    assert ids(service, limit=limit, failure=group, key=b"x") == []
    assert ids(service, limit=limit, text="cUSTOMER 17") == only
    assert ids(service, limit=limit, text="%") == []
    assert ids(service, limit=limit, type="shop.Odd") == only
    assert ids(service, limit=limit, tenant="acme") == only
    assert ids(service, limit=limit, id=plain[0]) == [plain[0], plain[0]]
    assert ids(service, limit=limit, id=plain[0], group="billing") == only
    assert ids(service, limit=limit, id=new_id()) == []
    assert ids(service, limit=limit, key=b"N14228") == plain
    assert ids(service, limit=limit, since=NOON - timedelta(hours=1), group="figures") == plain[:2]
    assert ids(service, limit=limit, until=NOON - timedelta(hours=1)) == plain[2:]
    with pytest.raises(UnknownId):
        ids(service, failure="00000000")
    with pytest.raises(UsageError, match="is not after"):
        Filter(since=NOON, until=NOON)


@pytest.mark.case("O-09")
def test_a_look_is_bounded_says_how_far_it_went_and_goes_on(
    service: Service, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a filter without an index looks at everything at once, or what it did not look at counts as not there."""
    monkeypatch.setattr(paging, "LOOK", 3)
    rare = rested(connection, reason="crashed", quarantined_at=NOON - timedelta(days=1))
    for n in range(7):
        rested(connection, quarantined_at=NOON - timedelta(hours=n))
    wanted = Filter(reason="crashed")
    first = next(service.quarantine.search(wanted, after=None, limit=5))
    assert first.messages == ()
    assert first.looked_to == NOON - timedelta(hours=2)
    parts = list(service.quarantine.search(wanted, after=None, limit=5))
    assert [message.id for part in parts for message in part.messages] == [rare]
    assert (parts[-1].next, parts[-1].looked_to) == (None, None)
    *_, last = service.quarantine.search(wanted, after=None, limit=5, most_looked=4)
    assert last.looked_to == NOON - timedelta(hours=3)
    on = list(service.quarantine.search(wanted, after=last.next, limit=5))
    assert [message.id for part in on for message in part.messages] == [rare]


def test_the_command_says_how_far_it_looked_and_how_to_go_on(
    run: Any, connection: psycopg.Connection[Any]
) -> None:
    for n in range(3):
        rested(connection, quarantined_at=NOON - timedelta(hours=n))
    found = run("quarantine", "list", "--text", "nothing", "--most-looked", 2)
    assert found.code == 0
    assert "looked back to 2026-08-01 11:00:00.000Z and no further" in found.out
    assert "more: add --after" in found.out
    assert run("quarantine", "list", "--text", "nothing").out == "nothing in quarantine fits\n"
    answer = run("quarantine", "list", "--text", "nothing", "--most-looked", 2, "--json").json()
    assert answer["looked_to"] == "2026-08-01T11:00:00Z"
    assert answer["next"]
    assert run("quarantine", "list", "--since", "x").code == 2


@pytest.mark.case("X-07")
def test_a_cell_of_the_csv_is_no_formula_and_the_key_is_hidden(
    run: Any, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a cell is written as it came, or the key without --show-key."""
    evil = "=1+1\x1b[2J"
    message_id = rested(connection, key=b"@SUM(A1)", error=evil, type=f"-{evil}", tenant=f"\t{evil}")
    hidden = run("quarantine", "list", "--csv")
    assert "SUM" not in hidden.out
    shown = run("quarantine", "list", "--csv", "--show-key")
    head, row = shown.out.split("\r\n")[:2]
    cells = dict(zip(head.split(","), row.split(","), strict=True))
    assert cells["id"] == str(message_id)
    assert cells["key"] == "'@SUM(A1)"
    assert cells["error"] == "'=1+1\\x1b[2J"
    assert cells["type"] == "'-=1+1\\x1b[2J"
    assert cells["tenant"] == "'\\x09=1+1\\x1b[2J"
