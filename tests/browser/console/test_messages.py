"""One message on its page: where it stands agrees with the tables at each stage, and nobody is told more than is known."""

import base64
import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.conftest import refused
from tests.browser.console.conftest import is_well_made
from tests.support.console_api import Console
from tests.support.console_rows import handled, horizon_past_all, new_id, one, recorded, rested
from tests.support.console_stages import Stages
from tests.support.job_rows import stopped

EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script>\x1b[2J\u202e'
PRIVATE = "ann.private@example.org"


def look(page: Page, console: Console, message_id: UUID | str, query: str = "") -> Locator:
    """Open the page of the message, and return where it says how it stands."""
    page.goto(f"{console.url}/messages/{message_id}{query}")
    return page.locator("#standing")


def steps(page: Page) -> list[str]:
    """Return the names of the steps that the page shows, those of the message first."""
    return page.locator("ol.way:not(ol.way ol.way) > li > p:first-child > b").all_inner_texts()


@pytest.mark.case("X-01")
def test_an_id_that_never_was_is_unknown_and_not_pending_until_it_is_committed(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when an unknown id looks accepted or pending, is an error, or its commit is not seen."""
    message_id = new_id()
    standing = look(viewer, console, message_id)
    expect(standing).to_have_text("Unknown here: not accepted, not pending")
    expect(viewer.get_by_text("Its transaction was rolled back, or is still open")).to_be_visible()
    assert steps(viewer) == []
    is_well_made(viewer)
    recorded(connection, id=message_id)
    expect(standing).to_have_text("recorded, not yet published")
    assert steps(viewer) == ["Recorded", "Publication"]


def test_what_is_no_id_is_an_answer_that_teaches(viewer: Page, console: Console) -> None:
    """Fails when a mistyped address is a fault of the server's, or is obeyed."""
    for text in ("17", "019b", "..%2f..", "%3Cscript%3E", "N14228%00"):
        with refused(viewer, 404):
            viewer.goto(f"{console.url}/messages/{text}")
            expect(viewer.locator("main")).to_contain_text(re.compile("no id of a message|no such page"))


@pytest.mark.case("X-02", "O-07", "T-08", "T-09")
def test_a_message_is_followed_through_all_stages_without_loading_the_page_again(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """
    Fails when a stage is told before the tables have it or not after, "asked", "sent" and "proved" are one thing, or the page stands
    still or is loaded anew.
    """
    stages, message_id = Stages(connection), recorded(connection)
    standing = look(operator, console, message_id)
    expect(standing).to_have_text("recorded, not yet published")
    operator.evaluate("window.stayed = true")
    horizon_past_all(connection)
    handled(connection, message_id, outcome="retry", attempt=2, reason="failed", error="ValueError at h.py:1")
    stages.set(
        "INSERT INTO packhorse.failed_attempt (group_id, topic, message_id, attempt, reason, error)"
        " VALUES ('figures', 'airline.aircraft', %s, 1, 'failed', 'ValueError at h.py:1')",
        message_id,
    )
    stages.waits(message_id, due_in=timedelta(hours=1), sent=True)
    expect(standing).to_have_text("figures: retry: attempt 2 is next")
    assert steps(operator) == ["Recorded", "Published", "Delivered", "Attempt 1 failed", "Attempt 2"]
    expect(operator.get_by_text("In tier 5m; its copy is at 2/7")).to_be_visible()
    is_well_made(operator)
    to_quarantine(stages, connection, message_id)
    expect(standing).to_have_text("figures: quarantine: attempts-exhausted")
    assert steps(operator)[-2:] == ["Came to quarantine", "A person decides"]
    operator.get_by_text("The same on a command line").first.click()
    is_well_made(operator)
    redrive(stages, message_id)
    way = operator.get_by_role("list", name="How far it is")
    expect(way.locator("li").nth(0)).to_have_class("good")
    expect(way).to_contain_text("Sent: not yet")
    expect(way).to_contain_text("Proved: not yet")
    stages.set("UPDATE packhorse.quarantined_message SET redrive_sent_at = clock_timestamp()")
    expect(standing).to_have_text("figures: redrive sent: no outcome yet")
    expect(way).not_to_contain_text("Sent: not yet")
    expect(way).to_contain_text("Proved: not yet")
    stages.set("UPDATE packhorse.inbox SET outcome = 'done', changed_at = clock_timestamp()")
    expect(standing).to_have_text("figures: done, after a redrive")
    expect(way).to_contain_text("Done since")
    assert one(connection, "SELECT outcome FROM packhorse.inbox") == "done"
    assert operator.evaluate("window.stayed") is True
    expect(operator.locator("[data-live]")).to_have_count(0)


def to_quarantine(stages: Stages, connection: psycopg.Connection[Any], message_id: UUID) -> None:
    stages.set("DELETE FROM packhorse.inbox")
    stages.set("DELETE FROM packhorse.retry_message")
    rested(connection, message_id)


def redrive(stages: Stages, message_id: UUID) -> None:
    stages.set("UPDATE packhorse.inbox SET outcome = 'retry', attempt = 6, due_at = clock_timestamp()")
    stages.set("UPDATE packhorse.quarantined_message SET state = 'redriven', redrives = redrives + 1")
    stages.set(
        "INSERT INTO packhorse.audit (actor, act, group_id, topic, message_id, why, detail)"
        " VALUES ('bob (role ops)', 'redrive', 'figures', 'airline.aircraft', %s, 'fixed', '{\"attempt\": 6}')",
        message_id,
    )


@pytest.mark.case("O-07", "O-08")
def test_a_redrive_that_failed_again_is_proved_bad_in_one_history(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a redrive that failed looks as if it went well, or who asked for it, and why, is not told."""
    stages, message_id = Stages(connection), rested(connection)
    redrive(stages, message_id)
    stages.set("UPDATE packhorse.inbox SET outcome = 'quarantine', reason = 'attempts-exhausted'")
    stages.set(
        "UPDATE packhorse.quarantined_message SET state = 'quarantined', quarantined_at = clock_timestamp()"
    )
    expect(look(viewer, console, message_id)).to_contain_text("quarantine again, after a redrive")
    way = viewer.get_by_role("list", name="How far it is")
    expect(way.locator("li").nth(2)).to_have_class("bad")
    expect(way).to_contain_text("It failed again and is back")
    expect(viewer.locator("li.person")).to_contain_text("Redrive asked for by bob (role ops)")
    expect(viewer.locator("li.person")).to_contain_text("“fixed”")
    expect(viewer.get_by_role("link", name="Redrive (needs the right to act)").first).to_be_visible()
    expect(viewer.locator("main form")).to_have_count(0)


@pytest.mark.case("T-01", "T-02", "T-17")
def test_each_group_has_its_own_way_and_a_follower_names_its_head(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when groups are mixed up, the one that was asked for is not first, or a follower does not lead to its head."""
    stages, head = Stages(connection), rested(connection, reason="permanent")
    follower = handled(connection, outcome="parked")
    handled(connection, follower, group="billing")
    stages.parked(head)
    stages.follows(follower, offset=7)
    look(operator, console, follower, "?group=figures&topic=airline.aircraft")
    expect(operator.locator("main h2").nth(2)).to_contain_text("Group figures")
    expect(operator.locator("main h2").nth(3)).to_contain_text("Group billing")
    billing = operator.get_by_label("Way in group billing")
    expect(billing).to_contain_text("Done")
    expect(billing).not_to_contain_text("Parked")
    is_well_made(operator)
    operator.get_by_role("link", name="Its key").click()
    operator.wait_for_url("**/keys?*")
    operator.go_back()
    operator.get_by_label("Way in group figures").get_by_role("link", name=str(head)).first.click()
    operator.wait_for_url(f"{console.url}/messages/{head}")
    expect(operator.locator("#standing")).to_have_text("figures: quarantine: permanent")
    act = operator.get_by_role("link", name="Redrive", exact=True).first
    expect(act).to_have_attribute("href", f"/quarantine/{head}/redrive?group=figures&topic=airline.aircraft")


@pytest.mark.case("X-07")
def test_what_was_planted_is_shown_and_never_obeyed_and_what_is_private_is_not_shown(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a key, a header or an error becomes an element or a terminal code, or a key or an actor is shown to whoever looks."""
    header = base64.b64encode(PRIVATE.encode()).decode()
    message_id = rested(
        connection,
        key=PRIVATE.encode(),
        type=EVIL,
        error=EVIL,
        headers=[["actor", header], ["evil", base64.b64encode(EVIL.encode()).decode()]],
    )
    recorded(connection, id=message_id, key=PRIVATE, type=EVIL)
    look(viewer, console, message_id)
    expect(viewer.get_by_text("<script>alert(2)</script>").first).to_be_visible()
    is_well_made(viewer)
    assert PRIVATE not in viewer.content()
    assert not re.search("[\x1b\u202e]", viewer.content())
    viewer.get_by_role("link", name="Show it").first.click()
    expect(viewer.get_by_text(PRIVATE).first).to_be_visible()


def test_a_message_of_a_job_leads_to_the_job(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a job looks like any message, or its page is not to be found from here."""
    job_id = stopped(connection)
    look(viewer, console, job_id)
    link = viewer.get_by_role("link", name="Its job").first
    expect(link).to_have_attribute("href", f"/jobs/{job_id}")
    expect(viewer.get_by_text("It failed for good").first).to_be_visible()
    is_well_made(viewer)


def test_without_a_broker_a_look_into_the_topic_says_why_there_is_none(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when nobody can ask for the look, or it says nothing of what was looked through; and when it is asked for again by itself."""
    message_id = recorded(connection)
    horizon_past_all(connection)
    look(viewer, console, message_id)
    viewer.get_by_role("link", name="Look into the topic").click()
    expect(viewer.get_by_text("Not searched: PACKHORSE_NAMESPACE is not set")).to_be_visible()
    expect(viewer.locator("[data-live]")).to_have_count(0)
    is_well_made(viewer)
