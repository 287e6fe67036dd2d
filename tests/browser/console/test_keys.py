"""One key on its page: what holds it, what waits behind it, and its pause from the preview to the proof."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import refused
from tests.browser.console.conftest import another, is_well_made, signed_in
from tests.support.console_api import Console, console_on, token_for
from tests.support.console_rows import handled, one, rested
from tests.support.console_stages import Stages

from packhorse.local.settings import Endpoints
from packhorse.processor.record import key_hash

EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script>'
KEY = "group=figures&topic=airline.aircraft&key=N14228"


@pytest.fixture
def topic(stack: Endpoints, topic_prefix: str) -> Iterator[str]:
    """Provide a topic that the broker knows."""
    name = f"{topic_prefix}.aircraft"
    admin = AdminClient({"bootstrap.servers": stack.kafka_bootstrap})
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(10)
    yield name
    admin.delete_topics([name])[name].result(10)


@pytest.mark.case("T-02")
def test_a_parked_key_says_what_holds_it_and_what_waits_behind_it(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the head, the order of followers or what comes next is not told, or the page asks for what nobody has to know."""
    stages, head = Stages(connection), rested(connection, reason="permanent")
    viewer.goto(f"{console.url}/keys")
    expect(viewer.get_by_text("No key is paused")).to_be_visible()
    is_well_made(viewer)
    viewer.get_by_label("Group", exact=True).fill("figures")
    viewer.get_by_label("Source topic").fill("airline.aircraft")
    viewer.get_by_label("Key", exact=True).fill("N14228")
    viewer.get_by_role("button", name="Look").click()
    expect(viewer.locator("#standing")).to_have_text("unknown")
    stages.watermark(5)
    stages.parked(head)
    second, first = handled(connection, outcome="parked"), handled(connection, outcome="parked")
    stages.follows(second, offset=9)
    stages.follows(first, offset=8)
    viewer.reload()
    expect(viewer.locator("#standing")).to_have_text("parked")
    rows = viewer.get_by_role("region", name="What waits behind it").locator("tbody th")
    assert rows.all_inner_texts() == [str(first), str(second)]
    expect(viewer.get_by_text("For a person: the head does not go on by itself")).to_be_visible()
    expect(viewer.get_by_role("link", name="Pause this key (needs the right to act)")).to_be_visible()
    is_well_made(viewer)
    viewer.goto(f"{console.url}/keys?group=figures")
    expect(viewer.get_by_role("alert").filter(has_text="give all three")).to_be_visible()


@pytest.mark.case("O-07", "O-10")
def test_a_key_is_paused_and_let_go_on_from_the_preview_to_the_proof(
    page: Page, database: str, stack: Endpoints, topic: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a preview changes anything, "asked" counts as proved, or a second person who asks for the same is told a success."""
    stages = Stages(connection)
    stages.set(
        'INSERT INTO packhorse.watermark (group_id, topic_id, partition, topic, "offset", incarnation)'
        " VALUES ('figures', gen_random_uuid(), 0, %s, 5, '1/1')",
        topic,
    )
    with console_on(database, kafka_bootstrap_servers=stack.kafka_bootstrap) as console:
        signed_in(page, console, token_for(connection, "operator", name="olga"))
        page.goto(f"{console.url}/keys?group=figures&topic={topic}&key={quote(EVIL)}")
        page.get_by_role("link", name="Pause this key").click()
        expect(page.get_by_text("New messages of the key wait behind it")).to_be_visible()
        is_well_made(page)
        assert one(connection, "SELECT count(*) FROM packhorse.parked_key") == 0
        preview = page.url
        page.get_by_label("Why").fill("bad import")
        page.get_by_role("button", name="Pause this key").click()
        expect(page.locator("#standing")).to_have_text("paused")
        way = page.get_by_role("list", name="How far it is")
        expect(way).to_contain_text("by olga (token)")
        expect(way).to_contain_text("Taken up: not yet")
        is_well_made(page)
        page.goto(preview)
        expect(page.get_by_text("It is paused already: bad import")).to_be_visible()
        page.get_by_label("Why").fill("again")
        page.get_by_role("button", name="Pause this key").click()
        expect(page.get_by_text("It was paused already when you asked; nothing was done")).to_be_visible()
        assert one(connection, "SELECT count(*) FROM packhorse.audit WHERE act = 'pause'") == 1
        stages.process()
        expect(way).not_to_contain_text("not yet")
        page.get_by_role("link", name="Let it go on").click()
        is_well_made(page)
        page.get_by_label("Why").fill("mended")
        page.get_by_role("button", name="Let this key").click()
        expect(way).to_contain_text("Proved: not yet")
        stages.set(
            "DELETE FROM packhorse.parked_key WHERE NOT paused"
        )  # as a processor does that looks at it
        expect(way).to_contain_text("The key is let go")
        assert one(connection, "SELECT count(*) FROM packhorse.parked_key WHERE paused") == 0
        page.goto("about:blank")


@pytest.mark.case("O-02")
def test_two_people_let_one_key_go_on_and_the_later_one_is_told(
    operator: Page, chromium: Browser, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when both are told that they did it, or a paused key can't be reached but by its name."""
    Stages(connection).parked(None, by="ann (role ops)", why="bad import")
    operator.goto(f"{console.url}/keys")
    operator.get_by_role("link", name=f"{key_hash(b'N14228')[:12]}…").click()
    operator.get_by_role("link", name="Let it go on").click()
    with another(chromium, console, token_for(connection, "operator", name="omar")) as other:
        other.goto(operator.url)
        for page in (other, operator):
            page.get_by_label("Why").fill("mended")
            page.get_by_role("button", name="Let this key").click()
            page.wait_for_url("**asked=resume**")
        expect(operator.get_by_text("It was not paused when you asked; nothing was done.")).to_be_visible()
        expect(other.get_by_text("It was not paused when you asked")).to_have_count(0)
        other.goto("about:blank")
    assert one(connection, "SELECT actor FROM packhorse.audit WHERE act = 'resume'") == "omar (token)"


@pytest.mark.case("O-07")
def test_whoever_may_not_act_sees_the_preview_and_is_refused_by_the_server(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a hidden button is all that keeps somebody from acting, or the refusal is not told in words."""
    Stages(connection).parked(None, by="ann (role ops)")
    viewer.goto(f"{console.url}/keys/resume?{KEY}")
    expect(viewer.get_by_text("it needs the right to act")).to_be_visible()
    expect(viewer.locator("main form")).to_have_count(0)
    form = {
        "mark": viewer.locator("input[name=mark]").first.get_attribute("value"),
        "group": "figures",
        "topic": "airline.aircraft",
        "key": "N14228",
        "hash": key_hash(b"N14228"),
        "why": "mended",
    }
    cookies = {each["name"]: each["value"] for each in viewer.context.cookies()}
    ours = {"Sec-Fetch-Site": "same-origin"}
    answer = httpx.post(
        f"{console.url}/keys/resume", data=form, cookies=cookies, headers=ours, trust_env=False
    )
    assert (answer.status_code, "See how it stands now" in answer.text) == (403, True)
    assert one(connection, "SELECT paused FROM packhorse.parked_key") is True


@pytest.mark.case("O-07")
def test_a_session_that_ends_in_the_middle_of_an_act_does_nothing_and_says_so(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when an act is done for somebody who is signed out, or they are left to guess whether it was."""
    Stages(connection).parked(None, by="ann (role ops)")
    operator.goto(f"{console.url}/keys/resume?{KEY}")
    operator.get_by_label("Why").fill("mended")
    connection.execute("DELETE FROM packhorse.operator")
    with refused(operator, 401):
        operator.get_by_role("button", name="Let this key").click()
        expect(operator.get_by_text("Nothing was done.")).to_be_visible()
    assert one(connection, "SELECT paused FROM packhorse.parked_key") is True


def test_a_mistyped_address_is_answered_in_words(viewer: Page, console: Console) -> None:
    """Fails when a bad address is a fault of the server's, or a name that nobody knows lets everything pass."""
    both = "group=figures&topic=a.b&key=x&key_hash=" + "0" * 32
    for query, status in ((both, 400), ("key_hash=zz", 422), ("nothing=1", 422), ("asked=purge", 422)):
        with refused(viewer, status):
            viewer.goto(f"{console.url}/keys?{query}")
            expect(viewer.get_by_role("alert").first).to_be_visible()
