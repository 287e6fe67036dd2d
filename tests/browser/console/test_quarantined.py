"""Acts on one message in quarantine: from the preview to the proof, once, whoever presses the button and how often."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import refused
from tests.browser.console.conftest import another, is_well_made, signed_in
from tests.support.console_api import Console, console_on, token_for
from tests.support.console_rows import one, rested

from packhorse.local.settings import Endpoints

SCHEMA = (
    '{"type": "record", "name": "Ordered", "namespace": "shop", "fields": [{"name": "order", "type": "string"},'
    ' {"name": "email", "type": "string", "packhorse.personal": true}]}'
)
EVIL = "<script>document.title='planted'</script>\x1b[2J\u202e<img src=x onerror=alert(1)>"
HEADERS = (("type", "c2hvcC5PcmRlcmVk"), ("actor", "YW5uQGV4YW1wbGUub3Jn"))
SECRET = "ann@example.org"


def state_of(connection: psycopg.Connection[Any], message_id: UUID) -> Any:
    return one(
        connection, "SELECT state FROM packhorse.quarantined_message WHERE message_id = %s", message_id
    )


def acts(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT act, why FROM packhorse.audit ORDER BY id").fetchall()


@pytest.mark.case("O-07")
@pytest.mark.case("O-14")
def test_one_message_is_redriven_as_previewed_and_only_asked_for_by_that(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a look acts, the act is not what was shown, is done twice by a double click, or leads to no proof."""
    message_id = rested(connection, headers=HEADERS)
    operator.goto(f"{console.url}/quarantine/{message_id}")
    expect(operator.get_by_text("ValueError at handlers.py:12").first).to_be_visible()
    is_well_made(operator)
    operator.get_by_role("link", name="Redrive", exact=True).click()
    expect(operator.get_by_text("attempt 6 is ordered")).to_be_visible()
    is_well_made(operator)
    assert (state_of(connection, message_id), acts(connection)) == ("quarantined", [])
    operator.get_by_label("Why").fill("fixed in 1.4.2")
    operator.get_by_role("button", name="Redrive this message").dblclick()
    operator.wait_for_url(f"**/messages/{message_id}?group=figures&topic=airline.aircraft")
    for stage in ("Asked", "Sent: not yet", "Proved: not yet"):
        expect(operator.get_by_text(stage, exact=True)).to_be_visible()
    assert (state_of(connection, message_id), acts(connection)) == (
        "redriven",
        [("redrive", "fixed in 1.4.2")],
    )
    with refused(operator, 409):
        operator.goto(f"{console.url}/quarantine/{message_id}/redrive")
    expect(operator.get_by_role("alert")).to_contain_text("redriven already: redrive by olga")


@pytest.mark.case("O-02")
def test_of_two_browsers_that_redrive_one_message_the_later_is_told_who_was_first(
    operator: Page, chromium: Browser, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a message is redriven twice, or the second person believes that it was them."""
    message_id = rested(connection)
    path = f"{console.url}/quarantine/{message_id}/redrive"
    operator.goto(path)
    with another(chromium, console, token_for(connection, name="otto")) as other:
        other.goto(path)
        other.get_by_label("Why").fill("otto's reason")
        other.get_by_role("button", name="Redrive this message").click()
        other.wait_for_url("**/messages/*")
        other.goto("about:blank")
    operator.get_by_label("Why").fill("olga's reason")
    with refused(operator, 409):
        operator.get_by_role("button", name="Redrive this message").click()
        expect(operator.get_by_role("alert")).to_contain_text("redrive by otto")
    is_well_made(operator)
    operator.get_by_role("link", name="See how it stands now").click()
    expect(operator.get_by_text("otto's reason")).to_be_visible()
    assert acts(connection) == [("redrive", "otto's reason")]


def test_a_message_is_discarded_and_taken_back(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a discard or a restoring is not the one previewed, or an order that is broken is not confirmed by itself."""
    message_id = rested(connection)
    operator.goto(f"{console.url}/quarantine/{message_id}/discard")
    expect(operator.get_by_text("Its effect never comes about in this group")).to_be_visible()
    is_well_made(operator)
    operator.get_by_label("Why").fill("a test order")
    operator.get_by_role("button", name="Discard this message").click()
    operator.wait_for_url("**/messages/*")
    assert state_of(connection, message_id) == "discarded"

    operator.goto(f"{console.url}/quarantine/{message_id}")
    operator.get_by_role("link", name="Restore").click()
    is_well_made(operator)
    operator.get_by_label("Why").fill("it was none")
    out_of_order = operator.get_by_label("I know that it takes effect out of order")
    if out_of_order.count():
        out_of_order.check()
    operator.get_by_role("button", name="Restore this message").click()
    operator.wait_for_url("**/messages/*")
    assert state_of(connection, message_id) == "quarantined"
    assert acts(connection) == [("discard", "a test order"), ("restore", "it was none")]


@pytest.mark.case("O-13")
def test_an_act_is_refused_by_the_server_whatever_the_page_offers(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a hidden button is all that protects an act, or a page without the right does not say what is missing."""
    message_id = rested(connection)
    viewer.goto(f"{console.url}/quarantine/{message_id}")
    is_well_made(viewer)
    for act in ("redrive", "discard", "unmask"):
        viewer.goto(f"{console.url}/quarantine/{message_id}/{act}")
        expect(viewer.locator("main form[method=post]")).to_have_count(0)
        expect(viewer.get_by_text("You may look at this and not do it")).to_be_visible()
    cookies = {each["name"]: each["value"] for each in viewer.context.cookies()}
    mark = viewer.locator("input[name=mark]").first.get_attribute("value")
    at = one(connection, "SELECT quarantined_at FROM packhorse.quarantined_message").isoformat()
    order = {"attempt": "5", "redrives": "0", "quarantined_at": at, "why": "x", "mark": mark}
    for act, fields in (
        ("redrive", order),
        ("discard", order),
        ("unmask", {"why": "x", "mark": mark}),
        ("edit", {**order, "step": "preview", "payload": "{}"}),
    ):
        answer = httpx.post(
            f"{console.url}/quarantine/{message_id}/{act}?group=figures&topic=airline.aircraft",
            data=fields,
            cookies=cookies,
            headers={"Sec-Fetch-Site": "same-origin"},
            trust_env=False,
        )
        assert answer.status_code in {403, 422}, act
    assert (state_of(connection, message_id), acts(connection)) == ("quarantined", [])


@pytest.mark.parametrize(
    "path", ["019b76da-a800-7000-8000-000000000000", "019b76da-a800-7000-8000-000000000000/redrive", "x", "7"]
)
def test_an_id_that_nobody_knows_is_a_page_that_says_so(viewer: Page, console: Console, path: str) -> None:
    """Fails when an unknown id is an error of the console, or an empty page."""
    with refused(viewer, 404):
        viewer.goto(f"{console.url}/quarantine/{path}")
    expect(viewer.get_by_role("alert")).to_be_visible()


def test_a_session_that_ends_in_the_middle_of_an_act_does_nothing(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when an act goes through for somebody who is no more, or the page leaves open whether it did."""
    message_id = rested(connection)
    operator.goto(f"{console.url}/quarantine/{message_id}/redrive")
    connection.execute("DELETE FROM packhorse.operator")
    operator.get_by_label("Why").fill("too late")
    with refused(operator, 401):
        operator.get_by_role("button", name="Redrive this message").click()
        expect(operator.get_by_text("Nothing was done")).to_be_visible()
    assert state_of(connection, message_id) == "quarantined"


@pytest.mark.case("X-07")
def test_what_is_planted_in_a_message_stays_text_on_its_page(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when an error, key or header becomes an element, runs, or turns the line around."""
    message_id = rested(connection, type=EVIL, error=EVIL, key=EVIL.encode(), headers=[("x" + EVIL, None)])
    for path in ("?show_key=true", "/redrive", "/discard"):
        viewer.goto(f"{console.url}/quarantine/{message_id}{path}")
        expect(viewer.get_by_text("<script>document.title").first).to_be_visible()
        assert not {"\x1b", "\u202e"} & set(viewer.locator("main").inner_text()), path
        is_well_made(viewer)


@pytest.fixture
def decoding(database: str, stack: Endpoints) -> Iterator[Console]:
    """Provide a console that can decode payloads."""
    with console_on(database, registry_url=stack.registry_url) as found:
        yield found


@pytest.fixture
def order(connection: psycopg.Connection[Any], stack: Endpoints, topic_prefix: str) -> UUID:
    """Let an order rest that holds a personal field."""
    answer = httpx.post(
        f"{stack.registry_url}/subjects/{topic_prefix}-value/versions",
        json={"schema": SCHEMA},
        timeout=30,
        trust_env=False,
    )
    payload = b"\x00" + int(answer.json()["id"]).to_bytes(4, "big") + b"\x06A-1\x1e" + SECRET.encode()
    return rested(connection, payload=payload, headers=HEADERS)


@pytest.mark.case("X-07")
@pytest.mark.case("O-14")
def test_personal_fields_are_masked_until_they_are_asked_for_on_the_record(
    page: Page, decoding: Console, connection: psycopg.Connection[Any], order: UUID
) -> None:
    """Fails when a personal field is on a page of somebody who did not ask, or seeing it leaves no record."""
    signed_in(page, decoding, token_for(connection, name="pia", personal=True))
    for path in ("", "/edit", "/redrive"):
        page.goto(f"{decoding.url}/quarantine/{order}{path}")
        assert SECRET not in page.content(), path
    page.goto(f"{decoding.url}/quarantine/{order}")
    page.get_by_role("link", name="Show personal fields").click()
    is_well_made(page)
    page.get_by_label("Why").fill("the customer asks, ticket 17")
    page.get_by_role("button", name="Show this message unmasked").click()
    expect(page.get_by_label("Payload")).to_contain_text(SECRET)
    expect(page.get_by_role("note")).to_contain_text("That is on record")
    is_well_made(page)
    page.goto(f"{decoding.url}/quarantine/{order}")
    assert SECRET not in page.content()
    assert acts(connection) == [("unmask", "the customer asks, ticket 17")]
    page.goto("about:blank")


def test_an_edited_copy_takes_the_place_of_its_parent(
    page: Page, decoding: Console, connection: psycopg.Connection[Any], order: UUID
) -> None:
    """Fails when what is sent is not what was previewed, what was typed is lost by a mistake, or a masked field is sent as such."""
    signed_in(page, decoding, token_for(connection, name="edda", edit=True, personal=True))
    page.goto(f"{decoding.url}/quarantine/{order}/edit")
    expect(page.get_by_text("Fields marked personal stand as")).to_be_visible()
    is_well_made(page)
    text = page.get_by_label("The whole payload")
    for wrong, status, said in (
        ('{"order": ', 400, "in line 1"),
        ('{"order": "A-2", "email": "***"}', 400, "email"),
        ('{"order": 7, "email": "x"}', 400, "order"),
    ):
        text.fill(wrong)
        with refused(page, status):
            page.get_by_role("button", name="Preview the change").click()
            expect(page.get_by_role("alert")).to_contain_text(said)
        expect(text).to_have_value(wrong)
    is_well_made(page)

    page.goto(f"{decoding.url}/quarantine/{order}/unmask")
    page.get_by_label("Why").fill("to mend it")
    page.get_by_role("button", name="Show this message unmasked").click()
    page.get_by_role("button", name="Edit it as it is shown").click()
    expect(text).to_have_value('{\n  "order": "A-1",\n  "email": "ann@example.org"\n}')
    text.fill('{"order": "Käse \u202e2", "email": "ann@example.org"}')
    page.get_by_role("button", name="Preview the change").click()
    expect(page.locator("#changed")).to_have_text("order")
    is_well_made(page)
    page.get_by_role("button", name="Write on").click()
    page.get_by_role("button", name="Preview the change").click()
    page.get_by_label("Why").fill("the number was wrong")
    page.get_by_role("button", name="Send this copy").click()
    page.wait_for_url("**/messages/*")
    copy = UUID(page.url.rpartition("/")[2])
    assert (state_of(connection, order), copy != order) == ("discarded", True)
    payload = one(connection, "SELECT payload FROM packhorse.parked_message WHERE message_id = %s", copy)
    assert "Käse \u202e2".encode() in bytes(payload)
    assert acts(connection)[1:] == [("edit", "the number was wrong")] * 2
    page.goto("about:blank")
