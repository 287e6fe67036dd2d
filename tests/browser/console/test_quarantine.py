"""The quarantine: what stops, group by group and message by message, with exact counts, also of very many."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import refused
from tests.browser.console.conftest import another, is_well_made
from tests.support.console_api import Console, token_for
from tests.support.console_rows import one, rested

from packhorse.core.clock import SYSTEM_CLOCK

EVIL = "<script>document.title='planted'</script>\x1b[2J\u202e<img src=x onerror=alert(1)>"
PRINT = "SELECT packhorse.failure_print(group_id, topic, type, reason, error) FROM packhorse.quarantined_message WHERE message_id = %s"


def many(connection: psycopg.Connection[Any], n: int, **given: Any) -> None:
    """Let *n* messages rest, an hour apart."""
    now = SYSTEM_CLOCK.now()
    with connection.transaction():
        for each in range(n):
            rested(connection, offset=each, quarantined_at=now - timedelta(hours=each), **given)


@pytest.mark.case("O-09")
def test_what_stops_is_seen_by_what_it_has_in_common_filtered_and_counted_exactly(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when counts are wrong, a filter of an address is ignored or mistyped without a word, or links lead elsewhere."""
    viewer.goto(f"{console.url}/quarantine")
    expect(viewer.get_by_role("heading", level=1)).to_have_text("Nothing is in quarantine")
    expect(viewer.get_by_text("rests here byte for byte")).to_be_visible()
    is_well_made(viewer)

    many(connection, 30)
    many(connection, 4, group="billing", type="shop.OrderPlaced", reason="refused", tenant="acme")
    expect(viewer.get_by_role("heading", level=1)).to_have_text("34 messages wait for a person")
    rows = viewer.locator("#groups > .scroll tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("airline.FlightDeparted: attempts-exhausted")
    expect(rows.nth(0).locator("td").nth(0)).to_contain_text("30")
    expect(viewer.get_by_role("img", name="Came to quarantine, by day (UTC): 34")).to_be_visible()
    is_well_made(viewer)

    viewer.goto(f"{console.url}/quarantine?group=billing&type=shop.OrderPlaced&reason=refused")
    expect(viewer.get_by_role("heading", level=1)).to_have_text("4 messages that fit wait for a person")
    expect(viewer.get_by_label("Reason")).to_have_value("refused")
    viewer.get_by_label("Count by").select_option("tenant")
    viewer.get_by_role("button", name="Show").click()
    viewer.get_by_role("link", name="acme").click()
    viewer.wait_for_url("**/quarantine/messages?**tenant=acme**")
    expect(viewer.locator("tbody tr")).to_have_count(4)
    viewer.goto(f"{console.url}/quarantine?reason=no-such")
    expect(viewer.get_by_text("Nothing fits")).to_be_visible()
    for wrong, status, said in (
        ("resaon=refused", 422, "resaon"),
        ("since=yesterday", 422, "since"),
        ("after=x", 404, "position"),
        ("by=day&tenant=acme", 400, "by the day and by the tenant"),
    ):
        with refused(viewer, status):
            viewer.goto(f"{console.url}/quarantine?{wrong}")
        expect(viewer.get_by_role("alert")).to_contain_text(said)


@pytest.mark.case("O-09")
def test_messages_are_listed_in_pages_that_keep_their_filters(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a page loses the filter, repeats or leaves out a message, or shows a key that nobody asked for."""
    many(connection, 7, key=b"N-secret")
    many(connection, 2, group="billing")
    viewer.goto(f"{console.url}/quarantine/messages?group=figures&limit=3&since=2d")
    seen: list[str] = []
    for left in (3, 3, 1):
        expect(viewer.locator("tbody tr")).to_have_count(left)
        seen += viewer.locator("tbody .mono").all_text_contents()
        if left == 3:
            viewer.get_by_role("link", name="More").click()
            viewer.wait_for_load_state()
    assert (len(seen), len(set(seen))) == (7, 7)
    assert "N-secret" not in viewer.content()
    viewer.get_by_label("Show keys").check()
    viewer.get_by_role("button", name="Show").click()
    expect(viewer.get_by_text("N-secret").first).to_be_visible()
    is_well_made(viewer)
    viewer.locator("body").press("n")
    viewer.keyboard.press("Enter")
    viewer.wait_for_url("**/messages/*?group=figures&topic=airline.aircraft")
    viewer.goto(f"{console.url}/quarantine/messages?text=nowhere")
    expect(viewer.get_by_text("No message fits")).to_be_visible()
    with refused(viewer, 404):
        viewer.goto(f"{console.url}/quarantine/messages?group=no-such")
    expect(viewer.get_by_role("alert")).to_contain_text("no-such")


@pytest.mark.case("O-09")
def test_a_list_that_looked_at_enough_says_how_far_it_looked(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a page that found nothing among many claims that nothing fits, or leads no further."""
    rested(connection, error="Rare at x.py:1", quarantined_at=datetime(2020, 1, 1, tzinfo=UTC))
    connection.execute(
        'INSERT INTO packhorse.quarantined_message (group_id, topic, message_id, topic_id, partition, "offset", headers, reason,'
        " error, attempts, first_failed_at) SELECT 'figures', 'airline.aircraft', gen_random_uuid(), gen_random_uuid(), 0, n, '[]',"
        " 'refused', 'E at y.py:1', 1, now() FROM generate_series(1, 20000) AS n"
    )
    viewer.goto(f"{console.url}/quarantine/messages?text=rare")
    expect(viewer.locator("#looked")).to_contain_text(
        "No message that fits among the 20,000 that were looked at"
    )
    is_well_made(viewer)
    viewer.get_by_role("link", name="Look further back").click()
    expect(viewer.get_by_text("Rare at x.py:1")).to_be_visible()


@pytest.mark.case("O-14")
def test_what_people_know_of_a_group_is_written_down_and_makes_it_quiet(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a note or an acknowledgement is lost, not on the record, or shows what should be quiet loudly."""
    message_id = rested(connection)
    print_ = one(connection, PRINT, message_id)
    operator.goto(f"{console.url}/quarantine")
    operator.get_by_role("link", name="airline.FlightDeparted: attempts-exhausted").first.click()
    operator.get_by_label("A note").fill("the fix is on its way")
    operator.get_by_role("button", name="Write it down").click()
    expect(operator.locator(".card").get_by_text("the fix is on its way")).to_be_visible()
    is_well_made(operator)
    operator.get_by_role("link", name="Acknowledge").click()
    is_well_made(operator)
    operator.get_by_label("Why").fill("ticket 17")
    operator.get_by_role("button", name="Acknowledge this group").click()
    expect(operator.locator("#group")).to_contain_text("Acknowledged by olga")
    rested(connection)
    expect(operator.locator("#group")).to_contain_text("1 came since")
    operator.goto(f"{console.url}/quarantine")
    expect(operator.locator("tr.quiet")).to_contain_text("acknowledged by olga")
    is_well_made(operator)
    operator.goto(f"{console.url}/quarantine/failures/{print_}/unacknowledge")
    operator.get_by_label("Why").fill("it did not hold")
    operator.get_by_role("button", name="Take it back").click()
    expect(operator.get_by_role("link", name="Acknowledge")).to_be_visible()
    acts = connection.execute(
        "SELECT act, why, detail->>'failure' FROM packhorse.audit ORDER BY id"
    ).fetchall()
    assert acts == [
        ("note", None, print_),
        ("acknowledge", "ticket 17", print_),
        ("unacknowledge", "it did not hold", print_),
    ]
    with refused(operator, 404):
        operator.goto(f"{console.url}/quarantine/failures/{'0' * 32}")


@pytest.mark.case("O-02")
def test_of_two_who_acknowledge_one_is_told_who_was_first(
    operator: Page, chromium: Browser, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the second overwrites the first without a word."""
    print_ = one(connection, PRINT, rested(connection))
    path = f"{console.url}/quarantine/failures/{print_}/acknowledge"
    operator.goto(path)
    with another(chromium, console, token_for(connection, name="otto")) as other:
        other.goto(path)
        other.get_by_label("Why").fill("mine")
        other.get_by_role("button", name="Acknowledge this group").click()
        expect(other.locator("#group")).to_contain_text("Acknowledged by otto")
        other.goto("about:blank")
    operator.get_by_label("Why").fill("no, mine")
    with refused(operator, 409):
        operator.get_by_role("button", name="Acknowledge this group").click()
        expect(operator.get_by_role("alert")).to_contain_text("acknowledged already: by otto")
    operator.get_by_role("link", name="See how it stands now").click()
    expect(operator.locator("#group")).to_contain_text("mine")


@pytest.mark.case("O-01")
def test_a_set_is_frozen_from_its_group_and_what_comes_later_is_not_in_it(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the form redrives, freezes something else than the filters say, or everything without being told so."""
    many(connection, 3)
    many(connection, 2, group="billing")
    operator.goto(f"{console.url}/quarantine?group=figures")
    operator.get_by_role("link", name="Redrive these").click()
    expect(operator.get_by_label("Group", exact=True)).to_have_value("figures")
    is_well_made(operator)
    operator.get_by_label("Messages a second").fill("20")
    operator.get_by_label("Stages").fill("1, 2")
    operator.get_by_role("button", name="Freeze and preview").click()
    operator.wait_for_url("**/redrives/*")
    many(connection, 1)
    row = connection.execute("SELECT state, members, rate, stages, wanted FROM packhorse.redrive").fetchone()
    assert row == ("previewed", 3, 20, [1, 2], {"group": "figures"})
    assert one(connection, "SELECT count(*) FROM packhorse.inbox WHERE outcome <> 'quarantine'") == 0

    operator.goto(f"{console.url}/quarantine/redrive")
    with refused(operator, 400):
        operator.get_by_role("button", name="Freeze and preview").click()
        expect(operator.get_by_role("alert")).to_contain_text("no filter")
    operator.goto(f"{console.url}/quarantine/redrive?group=figures")
    operator.get_by_label("Stages").fill("5, 1")
    with refused(operator, 400):
        operator.get_by_role("button", name="Freeze and preview").click()
        expect(operator.get_by_role("alert")).to_contain_text("rising numbers")
    operator.get_by_role("link", name="See how it stands now").click()
    expect(operator.get_by_label("Stages")).to_have_value("5, 1")
    assert one(connection, "SELECT count(*) FROM packhorse.redrive") == 1


@pytest.mark.case("O-13")
@pytest.mark.case("O-10")
def test_rows_are_ticked_by_keyboard_and_redriven_as_one_set(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when ticking needs a mouse, a box has no name, or the set is another than was ticked."""
    many(connection, 3)
    operator.goto(f"{console.url}/quarantine/messages")
    boxes = operator.get_by_role("checkbox", name="Tick airline.FlightDeparted")
    expect(boxes).to_have_count(3)
    is_well_made(operator)
    boxes.nth(1).focus()
    operator.keyboard.press("Space")
    expect(operator.get_by_text("1 of 3 ticked")).to_be_visible()
    operator.get_by_role("link", name="Tick all on this page").press("Enter")
    expect(operator.get_by_text("3 of 3 ticked")).to_be_visible()
    boxes.nth(0).press("Space")
    operator.get_by_role("button", name="Redrive those ticked").press("Enter")
    operator.wait_for_url("**/redrives/*")
    expect(operator.get_by_text("picked 2")).to_be_visible()
    assert one(connection, "SELECT count(*) FROM packhorse.redrive_member") == 2


def test_who_may_only_look_sees_what_the_right_is_called_and_no_form(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when somebody without the right gets a form, or no word about what is missing."""
    print_ = one(connection, PRINT, rested(connection))
    for path in ("redrive?group=figures", f"failures/{print_}/acknowledge", f"failures/{print_}"):
        viewer.goto(f"{console.url}/quarantine/{path}")
        expect(viewer.locator("main form[method=post]")).to_have_count(0)
        expect(viewer.get_by_text("right to act").first).to_be_visible()
        is_well_made(viewer)


@pytest.mark.case("X-07")
def test_what_is_planted_in_a_message_stays_text(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a type, reason, error, tenant or key becomes an element, runs, or turns the line around."""
    message_id = rested(connection, type=EVIL, error=EVIL, tenant=EVIL, key=EVIL.encode())
    for path in (
        "/quarantine",
        "/quarantine?by=tenant",
        "/quarantine?by=class",
        "/quarantine/messages?show_key=true",
        f"/quarantine/failures/{one(connection, PRINT, message_id)}",
    ):
        viewer.goto(console.url + path)
        expect(viewer.get_by_text("<script>document.title").first).to_be_visible()
        text = viewer.locator("main").inner_text()
        assert not {"\x1b", "\u202e"} & set(text), path
        assert viewer.locator("main script, main img").count() == 0
    is_well_made(viewer)
