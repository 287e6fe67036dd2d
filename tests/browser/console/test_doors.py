"""Coming in and going out: nothing is open, a link is good once, and no page of somebody else can act."""

import re
from typing import Any

import httpx
import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import refused
from tests.browser.console.conftest import another, is_well_made
from tests.support.console_api import Console, console_on, token_for


def test_a_page_asks_who_is_there_and_then_leads_back_to_where_one_wanted_to_go(
    page: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a page shows anything to somebody who is not signed in, or signing in forgets where they wanted to go."""
    page.goto(f"{console.url}/?x=%2F%2Fevil")
    page.wait_for_url(f"{console.url}/sign-in?next=*")
    expect(page.get_by_role("navigation")).to_have_count(0)
    is_well_made(page)
    page.get_by_label("Your token").fill(token_for(connection, "viewer"))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{console.url}/?x=%2F%2Fevil")


def test_a_token_that_nobody_holds_is_refused_in_words(page: Page, console: Console) -> None:
    """Fails when a refused token brings somebody in, or is shown again."""
    page.goto(f"{console.url}/sign-in")
    page.get_by_label("Your token").fill("phk_" + "x" * 43)
    with refused(page, 401):
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("the token is not known")
    assert "xxxx" not in page.content()


def test_a_link_signs_in_once(
    page: Page, console: Console, chromium: Browser, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a link is used up by a look at it, can be used twice, or gives no rights."""
    link = console.link()
    for _ in range(2):
        httpx.get(link, trust_env=False)  # what a program does that looks at links before people do
    page.goto(link)
    is_well_made(page)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{console.url}/")
    expect(page.get_by_role("heading", level=1)).to_have_text("All is well")
    again = httpx.post(
        f"{console.url}/sign-in/link",
        data={"word": link.rpartition("=")[2]},
        headers={"Sec-Fetch-Site": "same-origin"},
        trust_env=False,
    )
    assert (again.status_code, "set-cookie" in again.headers) == (401, False)


def test_whoever_signs_out_is_out_though_the_cookie_was_copied(viewer: Page, console: Console) -> None:
    """Fails when a session goes on after its person has ended it."""
    cookies = {each["name"]: each["value"] for each in viewer.context.cookies()}
    assert httpx.get(console.url, cookies=cookies, trust_env=False).status_code == 200
    viewer.locator("details.me summary").click()
    viewer.get_by_role("button", name="Sign out").click()
    viewer.wait_for_url(f"{console.url}/sign-in")
    assert httpx.get(console.url, cookies=cookies, trust_env=False).status_code == 303


def test_a_right_that_is_withdrawn_is_gone_at_the_next_look(
    viewer: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a cookie is worth more than the rights of its person."""
    cookies = {each["name"]: each["value"] for each in viewer.context.cookies()}
    connection.execute("DELETE FROM packhorse.operator")
    answer = httpx.get(console.url, cookies=cookies, trust_env=False)
    assert (answer.status_code, "All is well" in answer.text) == (401, False)
    assert "Max-Age=0" in answer.headers["set-cookie"]
    viewer.goto("about:blank")


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-site", "Origin": "https://other.example"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
    ],
)
def test_a_form_of_another_page_does_nothing(viewer: Page, console: Console, headers: dict[str, str]) -> None:
    """Fails when a page of somebody else can act for whoever is signed in, even one that knows the mark."""
    mark = viewer.locator("input[name=mark]").first.get_attribute("value")
    cookies = {each["name"]: each["value"] for each in viewer.context.cookies()}
    answer = httpx.post(
        f"{console.url}/sign-out", data={"mark": mark}, cookies=cookies, headers=headers, trust_env=False
    )
    assert answer.status_code == 403
    assert httpx.get(console.url, cookies=cookies, trust_env=False).status_code == 200


@pytest.mark.parametrize("mark", ["", "x", "AAAA", "ü", None])
def test_a_form_without_the_mark_of_its_session_does_nothing(
    viewer: Page, console: Console, mark: str | None
) -> None:
    """Fails when a form is believed for its cookie alone."""
    cookies = {each["name"]: each["value"] for each in viewer.context.cookies()}
    answer = httpx.post(
        f"{console.url}/sign-out",
        data={} if mark is None else {"mark": mark},
        cookies=cookies,
        headers={"Sec-Fetch-Site": "same-origin"},
        trust_env=False,
    )
    assert answer.status_code in {403, 422}
    assert httpx.get(console.url, cookies=cookies, trust_env=False).status_code == 200


@pytest.mark.parametrize("cookie", ["x", "a.b", "eyJpZCI6IjEifQ.AAAA", "x" * 5_000, "\x7f", "=", ".." * 100])
def test_a_cookie_that_is_none_of_ours_is_nobodys(console: Console, cookie: str) -> None:
    """Fails when rubbish in a cookie is an error, or is somebody."""
    answer = httpx.get(
        console.url,
        headers={"Cookie": f"packhorse-{console.url.rpartition(':')[2]}={cookie}"},
        trust_env=False,
    )
    assert answer.status_code == 303


def test_every_answer_forbids_what_no_page_needs(console: Console) -> None:
    """Fails when a page may run what it did not bring, be framed, or be kept by a cache."""
    for path in ("/sign-in", "/nothing", "/assets/x/style.css"):
        answer = httpx.get(console.url + path, trust_env=False)
        policy = answer.headers["content-security-policy"]
        assert {"default-src 'none'", "frame-ancestors 'none'"} <= set(policy.split("; ")), path
        assert not re.search("unsafe|http|data:", policy)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
    assert httpx.get(f"{console.url}/sign-in", trust_env=False).headers["cache-control"] == "no-store"


def test_nobody_is_sent_elsewhere(page: Page, console: Console, connection: psycopg.Connection[Any]) -> None:
    """Fails when the way back after signing in leads to another host."""
    token = token_for(connection, "viewer")
    for onto in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"):
        page.context.clear_cookies()
        page.goto(f"{console.url}/sign-in?next={onto}")
        page.get_by_label("Your token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{console.url}/")


def test_a_proxy_says_who_is_there_and_nobody_else_can(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when anybody but the proxy is believed, a header twice is, or a session outlives the proxy's word."""
    connection.execute(
        "INSERT INTO packhorse.operator (kind, name, role, made_by) VALUES ('user', 'ann@example.org', 'viewer', 'a test')"
    )
    ann = {"X-User": "ann@example.org"}
    with console_on(database, proxies="127.0.0.1", user_header="X-User") as console:
        known = httpx.get(console.url, headers=ann, trust_env=False)
        assert (known.status_code, "ann@example.org" in known.text) == (200, True)
        cookies = dict(known.cookies)
        assert httpx.get(console.url, headers=ann, cookies=cookies, trust_env=False).status_code == 200
        assert httpx.get(console.url, cookies=cookies, trust_env=False).status_code == 303
        assert httpx.get(console.url, headers={"X-User": "eve"}, trust_env=False).status_code == 403
        twice = [("X-User", "ann@example.org"), ("X-User", "ann@example.org")]
        assert httpx.get(console.url, headers=twice, trust_env=False).status_code == 303
    with console_on(database, proxies="192.0.2.1", user_header="X-User") as console:
        assert httpx.get(console.url, headers=ann, trust_env=False).status_code == 303


def test_two_people_in_two_browsers_are_two(
    operator: Page, chromium: Browser, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when sessions are mixed up."""
    with another(chromium, console, token_for(connection, "viewer", name="vera")) as other:
        expect(other.locator("details.me summary")).to_contain_text("vera")
        expect(operator.locator("details.me summary")).to_contain_text("olga")
    cookie = operator.context.cookies()[0]
    name = f"packhorse-{console.url.rpartition(':')[2]}"
    assert (cookie["sameSite"], cookie["httpOnly"], cookie["name"]) == ("Lax", True, name)
