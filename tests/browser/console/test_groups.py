"""Pages of groups: what is wrong with one stands first, and a pause is seen until somebody ends it."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import refused
from tests.browser.console.conftest import another, is_well_made
from tests.support.console_api import Console, token_for
from tests.support.console_rows import handled, rested
from tests.support.console_stages import GROUP, TOPIC, Stages

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp\x1b[2J"


def place(partition: int, **more: object) -> dict[str, object]:
    return {"topic": TOPIC, "partition": partition, "pending": 2, "in_flight": 1, "paused": None, **more}


def says(connection: psycopg.Connection[Any], paused: str) -> None:
    """Let the processes write anew that their partitions are paused, or not."""
    connection.execute(
        "UPDATE packhorse.processor_member SET seen_at = clock_timestamp(), status = jsonb_set(jsonb_set(status,"
        " '{partitions,0,paused}', %s::jsonb), '{partitions,0,in_flight}', '0')",
        (paused,),
    )


@pytest.mark.case("X-03")
def test_a_group_shows_what_is_wrong_first_and_what_waits(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a partition that stands still, a tier, a parked key or what a process says of itself can't be seen."""
    viewer.goto(f"{console.url}/groups")
    expect(viewer.get_by_text("No group works in this database yet")).to_be_visible()
    is_well_made(viewer)
    stages = Stages(connection)
    stages.watermark(7)
    stall = {
        "topic": TOPIC,
        "partition": 2,
        "offset": 7,
        "cause": "unexplained",
        "seconds": 540,
        "text": EVIL,
    }
    stages.process(
        {
            "version": "1.2",
            "partitions": [place(2, trouble=EVIL)],
            "stalls": [stall],
            "stopped handlers": [EVIL],
        }
    )
    head = rested(connection, error=EVIL)
    stages.parked(head)
    stages.waits(handled(connection, outcome="retry"), due_in=timedelta(minutes=-5), sent=False)
    viewer.goto(f"{console.url}/groups")
    expect(viewer.get_by_role("heading", level=1)).to_contain_text("to look at")
    viewer.get_by_role("link", name=GROUP, exact=True).click()
    expect(viewer.get_by_role("heading", level=1)).to_contain_text(f"{GROUP}: 3 things to look at")
    expect(viewer.get_by_text(f"does not move: {TOPIC}[2], unexplained")).to_be_visible()
    expect(viewer.get_by_role("region", name="Processes")).to_contain_text(
        "at offset 7 for 9 min, unexplained"
    )
    expect(viewer.get_by_role("region", name="Waits for another attempt")).to_contain_text(
        "1 without a confirmed copy"
    )
    expect(viewer.get_by_role("region", name="Processes")).to_contain_text("\\u202e")
    is_well_made(viewer)
    viewer.get_by_role("link", name="All parked keys").click()
    expect(viewer.get_by_role("link", name=str(head))).to_be_visible()
    assert "/keys?group=figures&topic=airline.aircraft&key_hash=" in viewer.content().replace("&amp;", "&")
    is_well_made(viewer)
    viewer.goto(f"{console.url}/groups/{GROUP}/offsets?topic={TOPIC}")
    expect(viewer.get_by_text(f"packhorse offsets reset --group {GROUP}")).to_be_visible()
    is_well_made(viewer)


@pytest.mark.case("O-10")
@pytest.mark.case("O-07")
def test_a_pause_goes_from_preview_to_what_the_processes_say_and_back(
    operator: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a pause that is on record counts as followed, can't be seen after a restart, or is ended unseen."""
    stages = Stages(connection)
    stages.watermark(7)
    stages.process({"partitions": [place(2)]})
    operator.goto(f"{console.url}/groups/{GROUP}")
    operator.get_by_role("link", name=f"Pause {TOPIC}[2]").focus()
    operator.keyboard.press("Enter")
    expect(operator.get_by_role("heading", level=1)).to_have_text(f"Pause {TOPIC}[2] of group {GROUP}")
    expect(
        operator.get_by_text("1 living process has 1 partition of it, with 1 chunk in work")
    ).to_be_visible()
    is_well_made(operator)
    operator.get_by_label("Why").fill("bad import")
    operator.keyboard.press("Enter")
    expect(operator.get_by_role("heading", level=1)).to_contain_text("is paused")
    way = operator.get_by_role("list", name="How far it is")
    expect(way).to_contain_text("Followed: not yet")
    is_well_made(operator)
    says(connection, '"airline.aircraft[2] paused by olga"')
    expect(way).not_to_contain_text("not yet")
    connection.execute("DELETE FROM packhorse.processor_member")
    operator.goto(f"{console.url}/groups/{GROUP}")
    expect(operator.get_by_text(f"{TOPIC}[2] paused by olga (token)")).to_be_visible()
    expect(operator.get_by_text("bad import")).to_be_visible()
    is_well_made(operator)
    operator.get_by_role("link", name=f"Resume {TOPIC}[2]").click()
    operator.get_by_label("Why").fill("mended")
    operator.get_by_role("button", name=f"Resume {TOPIC}[2]").click()
    expect(operator.get_by_role("heading", level=1)).to_contain_text("is not paused")
    expect(way).to_contain_text("Recorded")
    expect(way).to_contain_text("no process of the group is alive", ignore_case=True)
    assert connection.execute(
        "SELECT act, why FROM packhorse.audit WHERE act IN ('pause', 'resume') ORDER BY id"
    ).fetchall() == [
        ("pause", "bad import"),
        ("resume", "mended"),
    ]


@pytest.mark.case("O-02")
def test_of_two_who_pause_and_resume_the_later_is_told_what_is_true(
    operator: Page, console: Console, chromium: Browser, connection: psycopg.Connection[Any]
) -> None:
    """Fails when both are told that they did it, or a page ends another pause than it showed."""
    Stages(connection).watermark(7)
    path = f"{console.url}/groups/{GROUP}"
    with another(chromium, console, token_for(connection, name="otto")) as other:
        for one in (operator, other):
            one.goto(f"{path}/pause")
            one.get_by_label("Why").fill("bad import")
        other.get_by_role("button", name="Pause the group").click()
        expect(other.get_by_role("heading", level=1)).to_contain_text("is paused")
        with refused(operator, 409):
            operator.get_by_role("button", name="Pause the group").click()
            expect(operator.get_by_role("alert")).to_contain_text("was paused already; nothing was done now")
        is_well_made(operator)
        operator.get_by_role("link", name="See how it stands now").click()
        expect(operator.get_by_text("otto (token)").first).to_be_visible()
        operator.goto(f"{path}/resume")
        operator.get_by_label("Why").fill("mended")
        connection.execute("UPDATE packhorse.pause SET paused_at = clock_timestamp(), why = 'another reason'")
        with refused(operator, 409):
            operator.get_by_role("button", name="Resume the group").click()
            expect(operator.get_by_role("alert")).to_contain_text("is paused anew since then, by otto")
        assert connection.execute("SELECT count(*) FROM packhorse.pause").fetchone() == (1,)
        other.goto("about:blank")


@pytest.mark.case("O-13")
def test_who_may_only_look_sees_the_preview_and_can_do_nothing(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the right is a matter of a hidden button, or an unknown name is paused or shown as well."""
    Stages(connection).watermark(7)
    viewer.goto(f"{console.url}/groups/{GROUP}/pause")
    expect(viewer.get_by_text("it needs the right to act")).to_be_visible()
    expect(viewer.get_by_role("button", name="Pause the group")).to_have_count(0)
    is_well_made(viewer)
    mark = viewer.locator("input[name=mark]").first.get_attribute("value")
    with refused(viewer, 403):
        status = viewer.evaluate(
            "async ([url, mark]) => (await fetch(url, {method: 'POST', body: new URLSearchParams({mark, why: 'x'})})).status",
            [f"{console.url}/groups/{GROUP}/pause", mark],
        )
    assert status == 403
    assert connection.execute("SELECT count(*) FROM packhorse.pause").fetchone() == (0,)
    for path in (
        "/groups/figurse",
        "/groups/figurse/pause",
        f"/groups/{GROUP}/pause?topic=nosuch",
        f"/groups/{GROUP}/pause?topic={TOPIC}&partition=9",
    ):
        with refused(viewer, 404):
            viewer.goto(console.url + path)
            expect(viewer.get_by_role("alert")).to_be_visible()
    is_well_made(viewer)
    for path in (f"/groups/{GROUP}/pause?partition=1", f"/groups/{GROUP}/parked?after=x"):
        with refused(viewer, 400):
            viewer.goto(console.url + path)
    with refused(viewer, 422):
        viewer.goto(f"{console.url}/groups/{GROUP}?what=1")
