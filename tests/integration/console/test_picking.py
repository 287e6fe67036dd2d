"""Messages that are ticked in a list and redriven as one frozen set: exactly those, without a script."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from tests.support.console_api import console_on, token_for
from tests.support.console_pages import pages_of, values_of
from tests.support.console_rows import new_id, rested

LIST = "/quarantine/messages"
MEMBERS = "SELECT message_id, group_id FROM packhorse.redrive_member ORDER BY group_id, message_id"


@pytest.fixture
def olga(database: str, connection: psycopg.Connection[Any]) -> Iterator[httpx.Client]:
    """Provide the pages to somebody who may act."""
    with console_on(database) as console, pages_of(console, token_for(connection, name="olga")) as client:
        yield client


def sent(client: httpx.Client, page: httpx.Response, *picked: str) -> httpx.Response:
    (mark,) = set(values_of(page, "mark"))
    form = {"mark": mark, "back": values_of(page, "back")[0], "picked": list(picked)}
    return client.post("/quarantine/redrive/picked", data=form)


@pytest.mark.case("O-04")
def test_exactly_what_is_ticked_is_frozen_also_of_an_id_that_rests_in_two_groups(
    olga: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a row that nobody has ticked is in the set, or one that was ticked is not."""
    shared = new_id()
    first = rested(connection, shared, group="billing")
    rested(connection, shared, group="figures")
    other, left = rested(connection), rested(connection)
    page = olga.get(LIST)
    assert page.text.count('type="checkbox" name="picked"') == 4
    ticked = [
        next(value for value in values_of(olga.get(f"{LIST}?id={each}&group={group}"), "picked"))
        for each, group in ((first, "billing"), (other, "figures"))
    ]
    assert set(ticked) <= set(values_of(page, "picked"))
    answer = sent(olga, page, *ticked)
    assert (answer.status_code, answer.headers["location"]) == (303, "/redrives/1")
    assert connection.execute(MEMBERS).fetchall() == [(first, "billing"), (other, "figures")]
    shown = olga.get("/redrives/1")
    assert ("picked 2" in shown.text, str(left) in shown.text) == (True, False)


def test_all_of_the_page_are_ticked_by_a_link_that_keeps_its_filters(
    olga: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    for _ in range(3):
        rested(connection)
    rested(connection, group="billing")
    page = olga.get(f"{LIST}?group=figures&tick=all")
    assert len(re.findall(r'name="picked"[^>]* checked>', page.text)) == 3
    assert 'href="/quarantine/messages?group=figures"' in page.text
    assert sent(olga, page, *values_of(page, "picked")).status_code == 303
    assert connection.execute("SELECT members FROM packhorse.redrive").fetchall() == [(3,)]


def test_what_was_ticked_and_has_left_meanwhile_is_named_and_nothing_is_frozen(
    olga: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a smaller set than was ticked is frozen without a word."""
    gone = rested(connection)
    rested(connection)
    page = olga.get(LIST)
    connection.execute(
        "UPDATE packhorse.quarantined_message SET state = 'discarded' WHERE message_id = %s", (gone,)
    )
    answer = sent(olga, page, *values_of(page, "picked"))
    assert (answer.status_code, "1 of the 2 messages that were picked" in answer.text) == (404, True)
    assert connection.execute("SELECT count(*) FROM packhorse.redrive").fetchone() == (0,)


@pytest.mark.parametrize("picked", [(), ("x",), ("bnVsbA",), ("WzEsMiwzXQ",)])
def test_no_tick_and_one_that_is_none_of_ours_freeze_nothing(
    olga: httpx.Client, connection: psycopg.Connection[Any], picked: tuple[str, ...]
) -> None:
    """Fails when a form without a tick is taken for one without a filter."""
    rested(connection)
    answer = sent(olga, olga.get(LIST), *picked)
    assert (answer.status_code, "nothing was done" in answer.text) == (400, True)
    assert 'href="/quarantine/messages"' in answer.text
    assert connection.execute("SELECT count(*) FROM packhorse.redrive").fetchone() == (0,)


def test_who_may_only_look_and_what_can_t_be_redriven_have_no_boxes(
    database: str, connection: psycopg.Connection[Any], olga: httpx.Client
) -> None:
    rested(connection)
    with console_on(database) as console, pages_of(console, token_for(connection, "viewer")) as vera:
        assert 'checkbox" name="picked' not in vera.get(LIST).text
    connection.execute("UPDATE packhorse.quarantined_message SET state = 'discarded'")
    assert 'checkbox" name="picked' not in olga.get(f"{LIST}?state=all").text
