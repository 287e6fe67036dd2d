"""Redrives of sets and replays, from the preview to the proof."""

import re
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import refused
from tests.browser.console.conftest import another, is_well_made
from tests.support.console_api import Console, token_for
from tests.support.console_rows import rested
from tests.support.console_services import service_over
from tests.support.console_world import World
from tests.support.played_group import Group, shell_of

from packhorse.console.acting.postgres import opened
from packhorse.console.redriving.wanted import How, Wanted

EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script>\x1b[2J\u202e'


def frozen(database: str) -> int:
    with opened(database, schema="packhorse", timeout=10) as tables:
        return service_over(tables).redrives.preview(Wanted(group="figures"), How(rate=100_000)).redrive.id


def confirm(page: Page, why: str = "fixed in 1.4.2") -> None:
    page.get_by_label("Why").fill(why)
    page.get_by_role("button", name=re.compile("^(Redrive|Replay|Pause|Resume|Abort|Stop)")).click()


@pytest.mark.case("O-01", "O-07")
def test_a_set_is_confirmed_and_asked_sent_and_proved_are_told_apart(
    operator: Page, console: Console, database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the page calls done what is only asked for, takes in what came later, or stands still."""
    for key in range(3):
        rested(connection, key=b"%d" % key, error=EVIL)
    number = frozen(database)
    rested(connection, key=b"later")
    operator.goto(f"{console.url}/runs")
    is_well_made(operator)
    operator.get_by_role("link", name=str(number), exact=True).click()
    expect(operator.get_by_role("heading", level=1)).to_contain_text("previewed")
    is_well_made(operator)
    operator.get_by_role("link", name="Confirm and redrive").click()
    is_well_made(operator)
    expect(operator.get_by_text("Exactly these 3 messages are redriven")).to_be_visible()
    confirm(operator)
    operator.wait_for_url(f"{console.url}/redrives/{number}")
    way = operator.get_by_label("How far it is").first
    expect(way).to_contain_text("by olga (token): fixed in 1.4.2", ignore_case=True)
    expect(way).to_contain_text("Asked: not yet")
    with opened(database, schema="packhorse", timeout=10) as tables:
        shell = shell_of(tables, number)
        group, now = Group(connection), 1_000.0
        shell.step(now)
        expect(way).to_contain_text("1 of 3: ordered in the tables")
        expect(way).to_contain_text("Proved: not yet")
        while not shell.step(now := now + 1).over:
            group.run()
    expect(operator.get_by_role("heading", level=1)).to_contain_text("ended")
    expect(way).to_contain_text("3 done by an outcome, 0 failed again")
    is_well_made(operator)


@pytest.mark.case("O-02")
def test_of_two_browsers_that_confirm_one_set_the_later_is_told_who_was_first(
    operator: Page,
    chromium: Browser,
    console: Console,
    database: str,
    connection: psycopg.Connection[Any],
) -> None:
    """Fails when both believe that they did it, or the later one is left without a way on."""
    rested(connection)
    number = frozen(database)
    with another(chromium, console, token_for(connection, "operator", name="oskar")) as other:
        for page in (operator, other):
            page.goto(f"{console.url}/redrives/{number}/run")
        confirm(operator)
        operator.wait_for_url(f"{console.url}/redrives/{number}")
        with refused(other, 409):
            confirm(other)
            expect(other.get_by_role("alert")).to_contain_text("olga")
        is_well_made(other)
        other.get_by_role("link", name="See how it stands now").click()
        other.wait_for_url(f"{console.url}/redrives/{number}")
        other.goto("about:blank")


@pytest.mark.case("O-13")
def test_somebody_who_may_only_look_sees_the_preview_and_is_refused_by_the_server(
    viewer: Page, console: Console, database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the server rests on a hidden button."""
    rested(connection)
    number = frozen(database)
    viewer.goto(f"{console.url}/redrives/{number}/run")
    expect(viewer.get_by_role("button", name="Redrive")).to_have_count(0)
    expect(viewer.get_by_text("It needs the right to act", exact=False)).to_be_visible(visible=True)
    viewer.evaluate(
        """() => {
            const form = document.createElement("form");
            form.method = "post";
            form.innerHTML = document.querySelector("input[name=mark]").outerHTML + '<input name="why" value="because">';
            document.body.append(form);
            window.forged = form;
        }"""
    )
    with refused(viewer, 403):
        viewer.evaluate("window.forged.submit()")
        expect(viewer.get_by_role("alert")).to_contain_text("needs the right to act")
    row = connection.execute("SELECT state FROM packhorse.redrive WHERE id = %s", (number,)).fetchone()
    assert row == ("previewed",)


def test_a_session_that_is_over_in_the_middle_of_an_act_says_that_nothing_was_done(
    operator: Page, console: Console, database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the act is done, or the person is left to guess."""
    rested(connection)
    number = frozen(database)
    operator.goto(f"{console.url}/redrives/{number}/run")
    operator.context.clear_cookies()
    with refused(operator, 401):
        confirm(operator)
        expect(operator.get_by_role("alert")).to_contain_text("nothing was done")
    operator.get_by_role("link", name="Sign in").click()
    row = connection.execute("SELECT state FROM packhorse.redrive WHERE id = %s", (number,)).fetchone()
    assert row == ("previewed",)


def test_runs_are_paused_resumed_and_ended_with_a_reason(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when an act of a run is not on the page, or is not what the service did."""
    world = World(connection=connection, reader=None)  # type: ignore[arg-type]  # nobody is asked
    redrive, replay = world.redrive("running"), world.replay("running")
    for path, steps in (
        (f"redrives/{redrive}", ("Pause", "Resume", "Abort")),
        (f"replays/{replay}", ("Pause", "Resume", "Stop")),
    ):
        for step, state in zip(steps, ("paused", "running", ("aborted", "stopped")), strict=True):
            operator.goto(f"{console.url}/{path}")
            operator.get_by_role("link", name=step).click()
            confirm(operator, f"{step} it")
            operator.wait_for_url(f"{console.url}/{path}")
            wanted = state if isinstance(state, str) else "|".join(state)
            expect(operator.get_by_role("heading", level=1)).to_contain_text(re.compile(wanted))
        is_well_made(operator)
    operator.goto(f"{console.url}/audit?actor=olga")
    expect(operator.locator("tbody tr")).to_have_count(6)


def test_what_is_not_there_and_what_is_no_number_is_a_page_that_teaches(
    viewer: Page, console: Console
) -> None:
    """Fails when a number that nothing has is an error of ours."""
    for path in ("redrives/999", "replays/999", "redrives/0", "redrives/x", "replays/1/fly", "runs?before=x"):
        status = viewer.request.get(f"{console.url}/{path}").status
        assert status in {404, 422}, path
    with refused(viewer, 404):
        viewer.goto(f"{console.url}/redrives/999")
    expect(viewer.get_by_role("alert")).to_contain_text("999")
    is_well_made(viewer)


def test_a_plan_that_can_t_be_made_says_why(operator: Page, console: Console) -> None:
    """Fails when a form that is filled in wrongly is lost without a word."""
    operator.goto(f"{console.url}/replays/new")
    is_well_made(operator)
    operator.get_by_label("Group", exact=True).fill("figures")
    operator.get_by_label("Source topic").fill("airline.aircraft")
    with refused(operator, 400):
        operator.get_by_role("button", name="Read the range and plan").click()
        expect(operator.get_by_role("alert")).to_contain_text("range")
    is_well_made(operator)
