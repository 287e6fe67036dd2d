"""Pages of the relay: what it holds and why, and an order that is asked, on its way and released, each told apart."""

from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import refused
from tests.browser.console.conftest import another, is_well_made
from tests.support.console_api import Console, token_for
from tests.support.held import begins, ends, fails, held_key, hold_of, owned

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp\x1b[2J"


@pytest.mark.case("R-10")
@pytest.mark.case("R-07")
def test_the_relay_shows_who_carries_the_outbox_and_what_it_leaves_out(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a hold, its reason, or that it waits for a person can't be seen; or a key is shown to who did not ask."""
    viewer.goto(f"{console.url}/relay")
    expect(viewer.get_by_text("Nothing is held")).to_be_visible()
    expect(viewer.get_by_text("No relay runs")).to_be_visible()
    is_well_made(viewer)
    hold, ids = held_key(connection, EVIL.replace("\x1b", "?"))
    connection.execute("UPDATE packhorse.relay_hold SET reason = %s", (EVIL,))
    heals = hold_of(
        connection, scope="partition", key=None, partition=2, partitions=4, code="no_leader", heals=True
    )
    owned(connection)
    viewer.goto(f"{console.url}/relay")
    expect(viewer.get_by_role("heading", level=1)).to_contain_text("Relay: 1 thing to look at")
    holds = viewer.get_by_role("region", name="Holds")
    expect(holds.get_by_role("row").filter(has_text=f"Hold {hold}")).to_contain_text("waits for a person")
    expect(holds.get_by_role("row").filter(has_text=f"Hold {heals}")).to_contain_text("heals by itself")
    expect(viewer.get_by_role("region", name="Shards")).to_contain_text("relay-a:4711")
    is_well_made(viewer)
    viewer.get_by_role("link", name=f"Hold {hold}").click()
    expect(viewer.get_by_text("2 rows, the oldest written")).to_be_visible()
    for id_ in ids:
        expect(viewer.get_by_role("link", name=id_).first).to_be_visible()
    assert "gnp" not in viewer.get_by_text("not shown").inner_text()
    viewer.get_by_role("link", name="Show the key").click()
    expect(viewer.locator("dd .mono")).to_contain_text("\\u202e")
    is_well_made(viewer)
    viewer.goto(f"{console.url}/relay/holds?ended=true")
    expect(viewer.get_by_role("link", name=f"Hold {heals}")).to_be_visible()
    is_well_made(viewer)


@pytest.mark.case("O-07")
@pytest.mark.case("R-10")
def test_a_release_is_asked_then_on_its_way_then_released(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when an order looks like a release, or the page has to be loaded again to see how it went."""
    hold, _ = held_key(connection)
    operator.goto(f"{console.url}/relay/holds/{hold}")
    operator.get_by_role("link", name="Release it").click()
    expect(operator.get_by_text("No relay owns shard 0")).to_be_visible()
    is_well_made(operator)
    owned(connection)
    operator.get_by_label("At most so many rows a second").fill("7")
    operator.get_by_label("Why").fill("limit raised")
    operator.get_by_role("button", name=f"Release hold {hold}").click()
    operator.wait_for_url(f"{console.url}/relay/holds/{hold}")
    way = operator.get_by_role("list", name="How far it is")
    expect(way).to_contain_text("ordered by olga (token)", ignore_case=True)
    expect(way).to_contain_text("Releasing: not yet")
    expect(way).to_contain_text("Released: not yet")
    expect(operator.get_by_role("link", name="Release it")).to_have_count(0)
    is_well_made(operator)
    fails(connection, hold)
    expect(way).to_contain_text(
        "held again: too_large: still too large; 1 release failed so far", ignore_case=True
    )
    expect(operator.get_by_role("link", name="Release it")).to_be_visible()
    begins(connection, hold, sent=1)
    expect(way).not_to_contain_text("Releasing: not yet")
    expect(way).to_contain_text("Released: not yet")
    ends(connection, hold)
    expect(way).not_to_contain_text("not yet")
    is_well_made(operator)
    assert connection.execute("SELECT rate FROM packhorse.relay_hold").fetchone() == (7,)


@pytest.mark.case("O-02")
def test_of_two_who_release_the_same_hold_the_later_is_told_who_was_first(
    operator: Page, console: Console, chromium: Browser, connection: psycopg.Connection[Any]
) -> None:
    """Fails when both are told that they did it, or several holds are released in part."""
    (hold, _), second = held_key(connection), hold_of(connection, key="another")
    with another(chromium, console, token_for(connection, name="otto")) as other:
        operator.goto(f"{console.url}/relay")
        operator.get_by_role("link", name="Release these 2: too_large").click()
        other.goto(f"{console.url}/relay/holds/release?ids={hold}")
        for one in (operator, other):
            one.get_by_label("Why").fill("limit raised")
        other.get_by_role("button", name=f"Release hold {hold}").click()
        expect(other.get_by_role("list", name="How far it is")).to_contain_text(
            "ordered by otto", ignore_case=True
        )
        with refused(operator, 409):
            operator.get_by_role("button", name="Release 2 holds").click()
            expect(operator.get_by_role("alert")).to_contain_text(
                f"the release of hold {hold} is ordered already: release by otto"
            )
        is_well_made(operator)
        operator.get_by_role("link", name="See how it stands now").click()
        expect(operator.get_by_role("row").filter(has_text=f"Hold {second}")).to_contain_text(
            "waits for a person"
        )
        other.goto("about:blank")
    assert connection.execute("SELECT count(*) FROM packhorse.audit WHERE act = 'release'").fetchone() == (1,)


@pytest.mark.case("R-10")
def test_a_row_is_given_up_by_name_after_a_preview(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when another row than the one shown is given up, or it is not said that nobody takes that back."""
    hold, ids = held_key(connection)
    owned(connection)
    operator.goto(f"{console.url}/relay/holds/{hold}")
    operator.get_by_role("link", name=f"Give it up {ids[1]}").click()
    expect(operator.get_by_text("That can't be taken back")).to_be_visible()
    expect(operator.get_by_text(ids[1]).first).to_be_visible()
    is_well_made(operator)
    operator.get_by_label("Why").fill("a test that went live")
    operator.get_by_role("button", name="Give up this row").click()
    expect(operator.get_by_role("list", name="How far it is")).to_contain_text(
        "a row was given up and the release ordered by olga", ignore_case=True
    )
    assert connection.execute("SELECT message_id::text FROM packhorse.relay_discard").fetchall() == [
        (ids[1],)
    ]


@pytest.mark.case("O-13")
def test_who_may_only_look_orders_nothing_and_what_is_not_there_is_said(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the right is a matter of a hidden button, or an unknown hold or row is an error of ours."""
    hold, ids = held_key(connection)
    for path in (f"release?ids={hold}", f"{hold}/discard?row={ids[0]}"):
        viewer.goto(f"{console.url}/relay/holds/{path}")
        expect(viewer.get_by_text("it needs the right to act")).to_be_visible()
        expect(viewer.locator("main form")).to_have_count(0)
    is_well_made(viewer)
    mark = viewer.locator("input[name=mark]").first.get_attribute("value")
    order = f"{hold} too_large 0 {ids[0]}"
    for path in ("release", f"{hold}/discard"):
        more = {"row": ids[0]} if "discard" in path else {}
        with refused(viewer, 403):
            status = viewer.evaluate(
                "async ([url, fields]) => (await fetch(url, {method: 'POST', body: new URLSearchParams(fields)})).status",
                [f"{console.url}/relay/holds/{path}", {"mark": mark, "why": "x", "orders": order, **more}],
            )
        assert status == 403
    assert connection.execute(
        "SELECT count(*) FROM packhorse.relay_hold WHERE asked IS NOT NULL"
    ).fetchone() == (0,)
    for path, status in {
        "/relay/holds/999": 404,
        "/relay/holds/x": 404,
        "/relay/holds/release?ids=999": 404,
        "/relay/holds/release?ids=9,x": 422,
        f"/relay/holds/{hold}/discard?row=019b76da-a800-7000-8000-000000000000": 400,
        "/relay/holds/99999999999999999999999": 400,
        "/relay/holds?after=x": 400,
    }.items():
        with refused(viewer, status):
            viewer.goto(console.url + path)
            expect(viewer.get_by_role("alert")).to_be_visible()
