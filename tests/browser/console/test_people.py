"""What people did, and who may do what."""

from typing import Any

import psycopg
import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import refused
from tests.browser.console.conftest import is_well_made, signed_in
from tests.support.console_api import Console, token_for

EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script>\x1b[2J\u202e'


@pytest.mark.case("O-14")
def test_the_record_is_read_in_pages_and_nothing_in_it_runs(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when an act is left out between two pages, or something that somebody wrote becomes an element."""
    viewer.goto(f"{console.url}/audit")
    expect(viewer.get_by_text("Nothing on the record")).to_be_visible()
    connection.execute(
        "INSERT INTO packhorse.audit (actor, act, group_id, detail, why) SELECT 'olga (token)', 'redrive', %s,"
        " jsonb_build_object('n', n, 'x', %s::text), %s FROM generate_series(1, 230) AS n",
        (EVIL, EVIL.replace("\x1b", ""), EVIL),
    )
    seen = 0
    viewer.goto(f"{console.url}/audit?act=redr")
    is_well_made(viewer)
    expect(viewer.locator("tbody").get_by_text("\\x1b[2J\\u202e").first).to_be_visible()
    while True:
        seen += viewer.locator("tbody tr").count()
        if not (more := viewer.get_by_role("link", name="More")).count():
            break
        with viewer.expect_navigation():
            more.click()
    assert seen == 230
    with refused(viewer, 400):
        viewer.goto(f"{console.url}/audit?since=yesterday")
    expect(viewer.get_by_role("alert")).to_contain_text("yesterday")
    with refused(viewer, 422):
        viewer.goto(f"{console.url}/audit?aktor=olga")
    expect(viewer.get_by_role("alert")).to_contain_text("aktor")


@pytest.mark.case("O-13")
def test_an_admin_gives_rights_and_takes_them_away(
    page: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when rights are given without a record, or stay when they are taken away."""
    signed_in(page, console, token_for(connection, "admin", name="ada"))
    page.goto(f"{console.url}/people")
    is_well_made(page)
    page.get_by_label("Name", exact=True).fill("ann@example.org")
    page.get_by_label("May", exact=True).select_option("operator")
    page.get_by_label("Why").fill("on call from May on")
    page.get_by_role("button", name="Give these rights").click()
    expect(page.get_by_role("row", name="ann@example.org")).to_contain_text("operator")
    page.get_by_role("link", name="Take away… the rights of ann@example.org").click()
    is_well_made(page)
    page.get_by_label("Why").fill("left the team")
    page.get_by_role("button", name="Take the rights of ann@example.org away").click()
    page.wait_for_url("**/people")
    expect(page.get_by_role("row", name="ann@example.org")).to_have_count(0)
    acts = connection.execute("SELECT act, why, actor FROM packhorse.audit ORDER BY id").fetchall()
    assert acts == [
        ("operators-add", "on call from May on", "ada (token)"),
        ("operators-remove", "left the team", "ada (token)"),
    ]
    page.goto("about:blank")


def test_who_may_not_administer_sees_who_may(viewer: Page, console: Console) -> None:
    """Fails when forms are offered to somebody who may not, or what one may is hidden."""
    viewer.goto(f"{console.url}/people")
    expect(viewer.get_by_text("vera (token)")).to_be_visible()
    expect(viewer.get_by_role("button", name="Give these rights")).to_have_count(0)
    is_well_made(viewer)
