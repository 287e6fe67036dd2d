"""Jobs: how they stand, each act from its preview to its proof, and what happens when two people act."""

import re
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import refused
from tests.browser.console.conftest import another, is_well_made, signed_in
from tests.support.console_api import Console, console_on, token_for
from tests.support.console_rows import handled, horizon_past_all, new_id, one, recorded
from tests.support.job_rows import (
    GROUP,
    TOPIC,
    accepted,
    begin,
    effect,
    end,
    register_reference,
    running,
    stopped,
    uncertain,
)

Db = psycopg.Connection[Any]
EVIL = "<script>alert(1)</script>\x1b[2J\x1b]0;x\x07\u202e<img src=x onerror=alert(1)>"


def stands(page: Page) -> Any:
    return page.get_by_role("heading", level=1)


def stages(page: Page) -> Any:
    return page.get_by_role("list", name="How far it is").get_by_role("listitem")


def audited(connection: Db, job_id: UUID) -> list[tuple[str, str, str]]:
    query = "SELECT act, actor, why FROM packhorse.audit WHERE message_id = %s ORDER BY id"
    return connection.execute(query, (job_id,)).fetchall()


def confirm(page: Page, button: str, why: str = "ticket 17") -> None:
    page.get_by_label("Why", exact=True).fill(why)
    page.get_by_role("button", name=button).click()


def test_a_database_without_jobs_says_how_one_comes_there_and_what_comes_shows(
    viewer: Page, console: Console, connection: Db
) -> None:
    """Fails when an empty list teaches nothing, stands still, or a filter that nothing fits looks like no jobs at all."""
    viewer.goto(f"{console.url}/jobs")
    expect(viewer.get_by_text("No job was ever accepted in this database")).to_be_visible()
    is_well_made(viewer)
    viewer.evaluate("window.stayed = true")
    job_id = running(connection)
    expect(viewer.get_by_role("link", name=str(job_id))).to_be_visible()
    assert viewer.evaluate("window.stayed") is True
    viewer.goto(f"{console.url}/jobs?state=discarded")
    expect(viewer.get_by_text("No job fits")).to_be_visible()
    viewer.goto(f"{console.url}/jobs?stuck=true")
    expect(viewer.get_by_text("Nothing is stuck")).to_be_visible()


def test_jobs_are_counted_filtered_and_paged(viewer: Page, console: Console, connection: Db) -> None:
    """Fails when a filter lets others pass, is lost on the following page, or a page leaves jobs out."""
    rejected = [stopped(connection, reason="rejected", type="mails.Letter") for _ in range(52)]
    dead, doubt = running(connection, lease=-60), uncertain(connection)
    alive = running(connection, tenant="north")
    viewer.goto(f"{console.url}/jobs")
    counts = viewer.locator("dl.stats .stat")
    expect(counts.filter(has_text="quarantined").locator("dd")).to_have_text("52")
    expect(counts.filter(has_text="running").locator("dd")).to_have_text("2")
    viewer.get_by_text("By type (2)").click()
    is_well_made(viewer)
    viewer.get_by_role("region", name="Jobs by type").get_by_role("link", name="52").click()
    rows = viewer.locator("td.open a")
    expect(rows).to_have_count(50)
    seen = set(rows.all_inner_texts())
    viewer.get_by_role("link", name="More", exact=True).click()
    viewer.wait_for_url("**after=*")
    assert "type=mails.Letter" in viewer.url
    expect(rows).to_have_count(2)
    assert seen | set(rows.all_inner_texts()) == set(map(str, rejected))
    viewer.goto(f"{console.url}/jobs?stuck=true")
    assert set(rows.all_inner_texts()) == {str(dead), str(doubt)}
    expect(viewer.get_by_text("lease over", exact=True)).to_be_visible()
    viewer.goto(f"{console.url}/jobs")
    for state in ("running", "uncertain"):
        viewer.get_by_label(state, exact=True).check()
    viewer.get_by_role("button", name="Show").click()
    viewer.wait_for_url("**state=uncertain*")
    assert set(rows.all_inner_texts()) == {str(dead), str(doubt), str(alive)}
    expect(viewer.get_by_label("running", exact=True)).to_be_checked()
    viewer.get_by_text("More filters").click()
    viewer.get_by_label("Tenant").fill("north")
    viewer.get_by_role("button", name="Show").click()
    viewer.wait_for_url("**tenant=north*")
    assert rows.all_inner_texts() == [str(alive)]


def test_what_an_address_asks_that_nobody_can_mean_is_refused_in_words(
    viewer: Page, console: Console, connection: Db
) -> None:
    """Fails when a filter that is mistyped lets everything pass, or an id of nothing is shown as waiting."""
    running(connection)
    for query, status in (
        ("state=done", 422),
        ("stuck=long", 422),
        ("colour=red", 422),
        ("type=a&type=b", 422),
        ("since=yesterday", 400),
        ("state=succeeded&stuck=true", 400),
        ("after=x", 404),
    ):
        with refused(viewer, status):
            viewer.goto(f"{console.url}/jobs?{query}")
            expect(viewer.get_by_role("alert")).to_be_visible()
    with refused(viewer, 404):
        viewer.goto(f"{console.url}/jobs/no-id")


@pytest.mark.case("X-01")
def test_an_id_that_never_existed_is_unknown(viewer: Page, console: Console) -> None:
    """Fails when a page of an id without a job says accepted, pending or anything else but that it is not known."""
    for act in ("", "/cancel", "/redrive", "/resolve", "/send", "/unmask", "/cancel/asked"):
        with refused(viewer, 404):
            viewer.goto(f"{console.url}/jobs/{new_id()}{act}")
            expect(stands(viewer)).to_have_text("The id is not known here")
    assert not re.search("pending|accepted", viewer.locator("main").inner_text())
    is_well_made(viewer)


def test_the_page_of_a_job_goes_on_with_the_job_until_it_is_over(
    viewer: Page, console: Console, connection: Db
) -> None:
    """Fails when progress, a taken lease or the end does not show by itself, or accepted is shown as done."""
    job_id = accepted(connection, tenant="north", correlation_id="c-4711", request_key="order-17")
    recorded(connection, id=job_id, key=None)
    viewer.goto(f"{console.url}/jobs/{job_id}")
    expect(stands(viewer)).to_have_text("Accepted")
    viewer.evaluate("window.stayed = true")
    begin(connection, job_id, lease=-5)
    expect(stands(viewer)).to_have_text("Running, its lease is over")
    expect(viewer.get_by_text("its worker is dead or stuck").first).to_be_visible()
    begin(connection, job_id)
    connection.execute(
        "UPDATE packhorse.job SET progress_done = 7, progress_total = 12, progress_text = 'adding up',"
        " progress_at = clock_timestamp() WHERE id = %s",
        (job_id,),
    )
    expect(viewer.get_by_role("progressbar", name="Progress")).to_be_visible()
    expect(viewer.get_by_text("7 of 12 (58%), adding up said")).to_be_visible()
    expect(viewer.get_by_text("Taken over by another worker")).to_be_visible()
    is_well_made(viewer)
    viewer.get_by_text("Where it comes from").click()
    expect(viewer.get_by_text("hidden, 8 characters")).to_be_visible()
    assert "order-17" not in viewer.content()
    end(connection, job_id, "succeeded", result={"n": 1})
    expect(stands(viewer)).to_have_text("Succeeded")
    expect(viewer.get_by_role("button", name="Live")).to_be_hidden()
    assert viewer.evaluate("window.stayed") is True
    viewer.get_by_role("link", name="Show the names").click()
    viewer.get_by_text("Where it comes from").click()
    expect(viewer.get_by_text("order-17")).to_be_visible()
    expect(viewer.get_by_role("link", name="Its message")).to_have_attribute("href", f"/messages/{job_id}")


@pytest.mark.case("J-02")
def test_the_first_end_of_a_job_stands_and_nothing_can_be_done_about_it(
    operator: Page, console: Console, connection: Db
) -> None:
    """Fails when a job that has ended is offered to be cancelled, or a cancelling that came too late looks like one that worked."""
    job_id = running(connection)
    operator.goto(f"{console.url}/jobs/{job_id}/cancel")
    end(connection, job_id, "succeeded")
    with refused(operator, 409):
        confirm(operator, "Ask it to stop")
        expect(operator.get_by_role("alert")).to_contain_text("is succeeded already")
    operator.get_by_role("link", name="See how it stands now").click()
    expect(stands(operator)).to_have_text("Succeeded")
    expect(operator.get_by_role("link", name="Cancel")).to_have_count(0)
    assert audited(connection, job_id) == []


@pytest.mark.case("O-07")
def test_a_worker_that_is_asked_to_stop_has_not_stopped_until_it_says_so(
    operator: Page, console: Console, connection: Db
) -> None:
    """Fails when a cancelling that is only asked for is shown as done, or the proof does not come by itself."""
    job_id = running(connection)
    operator.goto(f"{console.url}/jobs/{job_id}")
    operator.get_by_role("link", name="Ask it to stop").click()
    expect(operator.get_by_text("what it has done by then stays done")).to_be_visible()
    is_well_made(operator)
    confirm(operator, "Ask it to stop")
    expect(stands(operator)).to_have_text("Asked to stop")
    expect(stages(operator).nth(0)).to_contain_text("olga (token): ticket 17")
    expect(stages(operator).nth(1)).to_contain_text("not yet")
    is_well_made(operator)
    end(connection, job_id, "cancelled")
    expect(stands(operator)).to_have_text("Stopped by its worker")
    expect(stages(operator).nth(1)).to_contain_text("its worker stopped")
    assert audited(connection, job_id) == [("job-cancel", "olga (token)", "ticket 17")]


@pytest.mark.case("J-07")
@pytest.mark.case("O-02")
def test_what_nobody_runs_is_cancelled_at_once_and_not_when_it_began_since(
    operator: Page, console: Console, connection: Db
) -> None:
    """Fails when the act does another thing than the preview said, or a cancelling at once looks as if it was only asked for."""
    began, waits = accepted(connection), accepted(connection)
    operator.goto(f"{console.url}/jobs/{began}/cancel")
    begin(connection, began)
    with refused(operator, 409):
        confirm(operator, "Cancel the job")
        expect(operator.get_by_role("alert")).to_contain_text("was accepted when you looked, and is running")
    assert audited(connection, began) == []
    operator.goto(f"{console.url}/jobs/{waits}/cancel")
    confirm(operator, "Cancel the job", why=EVIL)
    expect(stands(operator)).to_have_text("Cancelled at once")
    expect(stages(operator).nth(1)).to_contain_text("nobody ran it")
    is_well_made(operator)
    assert one(connection, "SELECT state FROM packhorse.job WHERE id = %s", waits) == "cancelled"


@pytest.mark.case("O-07")
def test_a_redrive_is_asked_sent_and_proved_and_the_page_says_which(
    operator: Page, console: Console, connection: Db
) -> None:
    """Fails when one of the three is shown before it is so, or a job that fails again looks as if it was done."""
    job_id = stopped(connection, reason="rejected")
    operator.goto(f"{console.url}/jobs/{job_id}")
    expect(stands(operator)).to_have_text("Quarantined, rejected")
    operator.get_by_role("link", name="Redrive", exact=True).click()
    expect(operator.get_by_text("attempt 2 is ordered")).to_be_visible()
    confirm(operator, "Redrive this job")
    operator.wait_for_url("**/redrive/asked")
    expect(stages(operator)).to_have_text(
        [re.compile("^Asked"), re.compile("^Sent: not yet"), re.compile("^Proved: not yet")]
    )
    is_well_made(operator)
    connection.execute(
        "UPDATE packhorse.quarantined_message SET redrive_sent_at = now() WHERE message_id = %s", (job_id,)
    )
    expect(stages(operator).nth(1)).to_contain_text("the broker has it")
    expect(stages(operator).nth(2)).to_contain_text("not yet")
    begin(connection, job_id)
    expect(stages(operator).nth(2)).to_contain_text("the job is running")
    end(connection, job_id, "succeeded")
    expect(stages(operator).nth(2)).to_contain_text("the job has succeeded")
    with refused(operator, 409):
        operator.goto(f"{console.url}/jobs/{job_id}/redrive")
        expect(operator.get_by_role("alert")).to_contain_text("is succeeded")


@pytest.mark.case("O-02")
def test_of_two_who_act_on_one_job_the_second_is_told_who_came_first(
    operator: Page, chromium: Browser, console: Console, connection: Db
) -> None:
    """Fails when two redrives, two decisions or a redrive beside a decision are both done, or the second hears nothing."""
    job_id, doubt = stopped(connection), uncertain(connection)
    with another(chromium, console, token_for(connection, "operator", name="otto")) as other:
        for page in (operator, other):
            page.goto(f"{console.url}/jobs/{job_id}/redrive")
        confirm(operator, "Redrive this job")
        operator.wait_for_url("**/redrive/asked")
        with refused(other, 409):
            confirm(other, "Redrive this job")
            expect(other.get_by_role("alert")).to_contain_text("redrive by olga (token)")
        for page in (operator, other):
            page.goto(f"{console.url}/jobs/{doubt}/resolve")
        other.get_by_label("It happened").check()
        confirm(other, "Put it on the record", why="seen at the bank")
        other.wait_for_url("**/resolve/asked?*")
        operator.get_by_label("It did not happen").check()
        with refused(operator, 409):
            confirm(operator, "Put it on the record")
            expect(operator.get_by_role("alert")).to_contain_text("it is happened by otto (token)")
    assert [each[:2] for each in audited(connection, job_id)] == [("redrive", "olga (token)")]
    assert [each[:2] for each in audited(connection, doubt)] == [
        ("job-resolve", "otto (token)"),
        ("redrive", "otto (token)"),
    ]


@pytest.mark.case("O-02")
def test_of_a_cancelling_and_a_run_that_meets_it_one_is_true(
    operator: Page, chromium: Browser, console: Console, connection: Db
) -> None:
    """Fails when a job that was sent back and cancelled by another is shown as both."""
    job_id = stopped(connection)
    with another(chromium, console, token_for(connection, "operator", name="otto")) as other:
        operator.goto(f"{console.url}/jobs/{job_id}/redrive")
        other.goto(f"{console.url}/jobs/{job_id}")
        confirm(operator, "Redrive this job")
        operator.wait_for_url("**/redrive/asked")
        other.get_by_role("link", name="Cancel", exact=True).click()
        confirm(other, "Cancel the job")
        expect(stands(other)).to_have_text("Cancelled at once")
        expect(stages(operator).nth(2)).to_contain_text("the job is cancelled")


@pytest.mark.case("J-08")
def test_an_effect_in_doubt_stands_out_and_what_a_person_says_of_it_is_exact(
    operator: Page, console: Console, connection: Db
) -> None:
    """Fails when an effect in doubt looks like another, what was called again since is decided, or the job goes on too early."""
    job_id = uncertain(connection, "charge", "mail/3&x")
    effect(connection, job_id, "book", state="answered", answer={"id": 7})
    operator.goto(f"{console.url}/jobs/{job_id}")
    expect(stands(operator)).to_have_text("Uncertain, an outside effect may or may not have happened")
    ledger = operator.get_by_role("region", name="Outside effects")
    expect(ledger.get_by_text("in doubt", exact=True)).to_have_count(2)
    expect(ledger.get_by_text("answered")).to_have_count(1)
    is_well_made(operator)
    operator.get_by_role("link", name="Decide mail/3&x").click()
    expect(operator.get_by_text(f"{job_id}:mail/3&x")).to_be_visible()
    is_well_made(operator)
    connection.execute("UPDATE packhorse.job_effect SET calls = calls + 1 WHERE key = 'mail/3&x'")
    operator.get_by_label("It did not happen").check()
    with refused(operator, 409):
        confirm(operator, "Put it on the record")
        expect(operator.get_by_role("alert")).to_contain_text(
            "was called 2 times by now, and 1 when you looked"
        )
    operator.goto(f"{console.url}/jobs/{job_id}")
    operator.get_by_role("link", name="Decide mail/3&x").click()
    operator.get_by_label("It happened").check()
    operator.get_by_label("What the outside system answered").fill("{no json")
    with refused(operator, 422):
        confirm(operator, "Put it on the record")
        expect(operator.get_by_role("alert")).to_contain_text("it is no JSON")
    assert "{no json" not in operator.locator("main").inner_text()
    operator.get_by_label("What the outside system answered").fill('{"id": "m-1"}')
    confirm(operator, "Put it on the record")
    operator.wait_for_url("**/resolve/asked?*")
    expect(stages(operator).nth(0)).to_contain_text("Said: it happened")
    expect(stages(operator).nth(1)).to_contain_text("Still in doubt: charge")
    operator.get_by_role("link", name="Decide effect charge").click()
    operator.get_by_label("It did not happen").check()
    confirm(operator, "Put it on the record", why="not in the outbox there")
    expect(stages(operator)).to_have_count(4)
    expect(stages(operator).nth(1)).to_contain_text("olga (token): not in the outbox there")
    expect(stages(operator).nth(2)).to_contain_text("not yet")
    assert one(connection, "SELECT answer->>'id' FROM packhorse.job_effect WHERE key = 'mail/3&x'") == "m-1"
    assert one(connection, "SELECT state FROM packhorse.job WHERE id = %s", job_id) == "retrying"


def test_that_a_call_did_not_happen_can_not_be_said_while_it_may_be_on_its_way(
    operator: Page, console: Console, connection: Db
) -> None:
    """Fails when the answer is offered before the call's own time-out is over, or one that a worker deals with is."""
    job_id = running(connection)
    effect(connection, job_id, state="intended", ago=0, timeout=300)
    operator.goto(f"{console.url}/jobs/{job_id}")
    expect(operator.get_by_text("called, no answer on record yet")).to_be_visible()
    expect(operator.get_by_role("link", name="Decide")).to_have_count(0)
    with refused(operator, 400):
        operator.goto(f"{console.url}/jobs/{job_id}/resolve")
        expect(operator.get_by_role("alert")).to_contain_text("its worker deals with effect charge itself")
    end(connection, job_id, "cancelled")
    operator.goto(f"{console.url}/jobs/{job_id}/resolve?effect=charge")
    expect(operator.get_by_label("It did not happen")).to_be_disabled()
    expect(operator.get_by_text("Its call may be on its way until")).to_be_visible()


def test_a_job_whose_message_nobody_knows_is_sent_anew(page: Page, database: str, connection: Db) -> None:
    """Fails when a lost job looks well, its message is written twice, or a job that waits is offered it."""
    register_reference(connection)
    lost, waits = accepted(connection), accepted(connection)
    recorded(connection, id=waits, key=None)
    with console_on(database, namespace=TOPIC.partition(".")[0]) as console:
        operator = signed_in(page, console, token_for(connection, "operator", name="olga"))
        operator.goto(f"{console.url}/jobs/{waits}")
        expect(operator.get_by_role("link", name="Write its message anew")).to_have_count(0)
        with refused(operator, 400):
            operator.goto(f"{console.url}/jobs/{waits}/send")
            expect(operator.get_by_role("alert")).to_contain_text("not lost")
        operator.goto(f"{console.url}/jobs/{lost}")
        expect(stands(operator)).to_have_text("Accepted, its message is not known any more")
        operator.get_by_role("link", name="Write its message anew").click()
        confirm(operator, "Write it anew")
        expect(stages(operator)).to_have_text(
            [
                re.compile("outbox row is written"),
                re.compile("^Sent: not yet"),
                re.compile("^Proved: not yet"),
            ]
        )
        horizon_past_all(connection)
        expect(stages(operator).nth(1)).to_contain_text("horizon is past it")
        begin(connection, lost)
        handled(connection, lost, group=GROUP, topic=TOPIC, outcome="retry")
        expect(stages(operator).nth(2)).to_contain_text("the job is running")
        operator.goto("about:blank")
    assert one(connection, "SELECT count(*) FROM packhorse.outbox WHERE id = %s", lost) == 1


@pytest.mark.case("O-13")
def test_whoever_may_only_look_sees_what_would_be_done_and_can_not_do_it(
    viewer: Page, console: Console, connection: Db
) -> None:
    """Fails when the page hides what an act would do, shows its button, or the server takes a form behind it."""
    job_id, doubt = running(connection), uncertain(connection)
    viewer.goto(f"{console.url}/jobs/{job_id}")
    expect(viewer.get_by_role("link", name="Ask it to stop (needs the right to act)")).to_be_visible()
    mark = viewer.locator("input[name=mark]").first.get_attribute("value")
    cookies = {each["name"]: each["value"] for each in viewer.context.cookies()}
    for path, fields in (
        (f"{job_id}/cancel", {"seen": "running"}),
        (f"{doubt}/resolve", {"effect": "charge", "calls": "1", "verdict": "happened"}),
        (f"{doubt}/unmask", {}),
    ):
        viewer.goto(f"{console.url}/jobs/{path}")
        expect(viewer.get_by_text("You may look at this and not do it")).to_be_visible()
        expect(viewer.locator("main button:not([data-copy])")).to_have_count(0)
        answer = httpx.post(
            f"{console.url}/jobs/{path}",
            data={"mark": mark, "why": "x", **fields},
            cookies=cookies,
            headers={"Sec-Fetch-Site": "same-origin"},
            trust_env=False,
        )
        assert answer.status_code == 403, path
        assert "nothing was done" in answer.text
    is_well_made(viewer)
    for each in (job_id, doubt):
        assert audited(connection, each) == []


@pytest.mark.case("X-07")
def test_what_is_planted_is_text_and_what_may_be_personal_shows_to_nobody_without_the_right(
    viewer: Page, chromium: Browser, console: Console, connection: Db
) -> None:
    """Fails when a value becomes an element or a terminal code, a result shows unasked, or to see it is not on the record."""
    job_id = uncertain(connection, f"charge{EVIL}", tenant=EVIL, correlation_id=EVIL, causation_id=EVIL)
    connection.execute(
        "UPDATE packhorse.job SET error = %s, result = %s WHERE id = %s",
        (EVIL, '{"mail": "ann@example.org"}', job_id),
    )
    connection.execute(
        "INSERT INTO packhorse.job_step (job_id, name, attempt, result) VALUES (%s, %s, 1, '\"ann@example.org\"')",
        (job_id, EVIL),
    )
    for path in ("", "?input=true", "?show_key=true", "/redrive", "/cancel/asked", "/unmask"):
        viewer.goto(f"{console.url}/jobs/{job_id}{path}")
        text = viewer.content()
        assert not re.search("[\x1b\x07\u202e]", text), path
        assert "ann@example.org" not in text, path
        assert viewer.locator("main script, main img").count() == 0, path
    viewer.goto(f"{console.url}/jobs/{job_id}")
    is_well_made(viewer)
    viewer.goto(f"{console.url}/jobs")
    is_well_made(viewer)
    seeing = token_for(connection, "viewer", name="paula", personal=True)
    with another(chromium, console, seeing) as page:
        page.goto(f"{console.url}/jobs/{job_id}")
        page.get_by_role("link", name="Show all of it, on the record").click()
        confirm(page, "Show it, on the record")
        expect(page.get_by_role("region", name="Result", exact=True)).to_contain_text("ann@example.org")
        expect(page.get_by_text("is on the record: ticket 17")).to_be_visible()
        is_well_made(page)
    assert audited(connection, job_id) == [("unmask", "paula (token)", "ticket 17")]


def test_an_act_works_with_keys_alone_and_a_session_that_ended_meanwhile_does_nothing(
    operator: Page, console: Console, connection: Db
) -> None:
    """Fails when a mouse is needed, or a form of a session that is over acts, or says nothing."""
    job_id, kept = accepted(connection), accepted(connection)
    operator.goto(f"{console.url}/jobs?type=reports.ReportRequest&until=2100-01-01")
    operator.locator("#main").focus()
    operator.keyboard.press("n")
    operator.keyboard.press("n")
    operator.keyboard.press("Enter")
    operator.wait_for_url(f"**/jobs/{job_id}")
    link = operator.get_by_role("link", name="Cancel", exact=True)
    link.focus()
    operator.keyboard.press("Enter")
    operator.wait_for_url("**/cancel")
    operator.get_by_label("Why", exact=True).focus()
    operator.keyboard.type("by keys")
    operator.keyboard.press("Enter")
    expect(stands(operator)).to_have_text("Cancelled at once")
    operator.goto(f"{console.url}/jobs/{kept}/cancel")
    connection.execute("DELETE FROM packhorse.operator")
    with refused(operator, 401):
        confirm(operator, "Cancel the job")
        expect(operator.get_by_role("alert")).to_be_visible()
    assert one(connection, "SELECT state FROM packhorse.job WHERE id = %s", kept) == "accepted"
