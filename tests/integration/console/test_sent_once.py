"""A form that was sent and got no answer: the record tells whether it was done, and to send it again does nothing twice."""

import re
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from tests.support.console_api import Console, console_on, token_for
from tests.support.console_grounds import world_on
from tests.support.console_rows import one
from tests.support.console_world import World
from tests.support.lost_commit import commit_without_answer
from tests.support.page_acts import ACTS, LEADS_ON, count
from tests.support.sitting import Sitter
from tests.support.stack import PrivateDatabase
from tests.support.wait import eventually

from packhorse.console.pages.fastapi.app import ROOMS
from packhorse.local.settings import Endpoints

ONE_OF_EACH_ROOM = (
    "redrive",
    "edit",
    "note",
    "pause a replay",
    "pause a key",
    "release",
    "cancel a job",
    "give rights",
)


@pytest.fixture
def world(
    database: str, stack: Endpoints, topic_prefix: str, connection: psycopg.Connection[Any]
) -> Iterator[tuple[Console, World]]:
    """Provide a console with broker and registry, and what its pages can act on."""
    with world_on(database, stack, connection, topic_prefix) as found:
        connection.execute("DELETE FROM packhorse.operator")
        yield found


def admin(console: Console, connection: psycopg.Connection[Any]) -> Sitter:
    return Sitter(console, token_for(connection, "admin", name="ada", personal=True, edit=True))


def test_every_form_of_the_pages_is_tried_below() -> None:
    """Fails when a form that acts is added and nobody tries what becomes of it without an answer."""
    routes = {
        route.path
        for room in ROOMS
        for route in room.router.routes
        if "POST" in getattr(route, "methods", ())
    }
    assert routes - LEADS_ON == {act.route for act in ACTS.values()}


@pytest.mark.case("O-02")
@pytest.mark.case("O-07")
def test_each_act_is_done_once_however_often_its_form_is_sent_and_the_record_tells_so(
    world: tuple[Console, World],
) -> None:
    """
    Fails when an act is done by the same form a second time, its form has no number, or whoever got no answer can't find out
    whether it was done and how it stands.
    """
    console, made = world
    with admin(console, made.connection) as ada:
        for name, act in ACTS.items():
            sheet = act.offered(ada, made)
            asked = f"/sent/{sheet.once}"
            before = count(made)
            assert "It was not done" in ada.get(asked).text, name
            first = ada.send(sheet)
            assert first.status_code == (200 if act.shows else 303), (name, first.text)
            done = count(made)
            assert done > before, name
            again = ada.send(sheet)
            assert (again.status_code, again.headers["location"]) == (303, asked), (name, again.text)
            assert count(made) == done, name
            told = ada.get(asked).text
            assert "It was done" in told, name
            lead = re.search(r'href="([^"]+)">See how it stands now', told)
            assert lead is not None, name
            assert ada.get(lead[1].replace("&amp;", "&")).status_code == 200, (name, lead[1])
            if not act.shows and name != "redrive a job":  # on record as the redrive of its message
                assert _room(lead[1]) == _room(first.headers["location"]), name


def _room(address: str) -> str:
    return urlsplit(address).path.split("/")[1]


@pytest.mark.case("O-02")
def test_a_form_that_is_sent_twice_at_the_same_moment_acts_once(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when two requests with one number both find that nothing was done yet."""
    with console_on(database) as console, admin(console, connection) as ada:
        for _ in range(5):
            sheet = ACTS["note"].offered(ada, World(connection=connection, reader=None))  # type: ignore[arg-type]
            start, told = threading.Barrier(4), list[str]()

            def press(sheet: Any = sheet, start: Any = start, told: Any = told) -> None:
                start.wait()
                told.append(ada.send(sheet).headers["location"])

            threads = [threading.Thread(target=press) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=30)
            assert sorted(where.startswith("/sent/") for where in told) == [False, True, True, True], told
    assert one(connection, "SELECT count(*) FROM packhorse.failure_note") == 5


@pytest.mark.parametrize("name", ["redrive", "pause a redrive", "note"])
def test_a_database_that_is_away_when_an_act_is_confirmed_leaves_it_undone_and_the_form_good(
    private_database: PrivateDatabase, name: str
) -> None:
    """Fails when the page leaves open what to do, the record is silent later, or the form can't be sent again."""
    with (
        psycopg.connect(private_database.direct_url, autocommit=True) as connection,
        console_on(private_database.url, timeout=1) as console,
        admin(console, connection) as ada,
    ):
        sheet = ACTS[name].offered(ada, World(connection=connection, reader=None))  # type: ignore[arg-type]
        private_database.proxy.cut()
        away = ada.send(sheet)
        assert away.status_code == 503
        assert "does not answer" in away.text
        private_database.proxy.resume()
        eventually(lambda: ada.get("/").status_code == 200, what="the console answers again", timeout=20)
        assert "It was not done" in ada.get(f"/sent/{sheet.once}").text
        assert ada.send(sheet).headers["location"] != f"/sent/{sheet.once}"
        assert ada.send(sheet).headers["location"] == f"/sent/{sheet.once}"
        assert one(connection, "SELECT count(*) FROM packhorse.audit") == 1


def test_an_act_whose_commit_got_no_answer_is_told_by_the_record_and_not_done_twice(
    private_database: PrivateDatabase,
) -> None:
    """Fails when the answer that got lost between database and console is all that could tell whether it was done."""
    with (
        psycopg.connect(private_database.direct_url, autocommit=True) as connection,
        console_on(private_database.url, timeout=30) as console,
        admin(console, connection) as ada,
    ):
        sheet = ACTS["note"].offered(ada, World(connection=connection, reader=None))  # type: ignore[arg-type]
        answer = commit_without_answer(private_database, lambda: ada.send(sheet))
        assert answer.status_code == 503
        assert f'href="/sent/{sheet.once}">Was it done?' in answer.text
        assert "It was done" in ada.get(f"/sent/{sheet.once}").text
        assert ada.send(sheet).headers["location"] == f"/sent/{sheet.once}"
        assert one(connection, "SELECT count(*) FROM packhorse.failure_note") == 1


def test_whoever_signs_in_again_in_the_middle_of_an_act_is_led_back_to_what_was_to_be_done(
    world: tuple[Console, World],
) -> None:
    """Fails when an act of a session that is over is done, or after signing in again one has to look for it."""
    console, made = world
    token = token_for(made.connection, "admin", name="ada", personal=True, edit=True)
    with Sitter(console, token) as ada:
        for name in ONE_OF_EACH_ROOM:
            sheet = ACTS[name].offered(ada, made)
            before = count(made)
            ada.forget()
            over = ada.send(sheet)
            assert (over.status_code, count(made)) == (401, before), name
            assert "nothing was done" in over.text, name
            link = re.search(r'href="/sign-in\?next=([^"]+)">Sign in', over.text)
            assert link is not None, name
            onto = ada.sign_in(token, str(httpx.QueryParams(f"next={link[1]}")["next"]))
            assert onto == sheet.page, name
            assert ada.form(onto).action == ada.form(sheet.page).action, name
            assert ada.send(sheet).status_code == 403, name
            assert count(made) == before, name


@pytest.mark.parametrize(
    "text", ["", "x", "7", "00000000-0000-4000-8000-000000000000", "f" * 12 + "7" + "f" * 19]
)
def test_a_number_that_no_form_has_is_refused(
    database: str, connection: psycopg.Connection[Any], text: str
) -> None:
    """Fails when a made-up number is an error of ours, lets a form pass without one, or is looked for everywhere."""
    with console_on(database) as console, admin(console, connection) as ada:
        sheet = ACTS["give rights"].offered(ada, World(connection=connection, reader=None))  # type: ignore[arg-type]
        status = (
            303 if text == "" else 422
        )  # browsers leave nothing of an empty field: fences alone stand before the act
        assert ada.send(sheet, once=text).status_code == status
        assert ada.get(f"/sent/{text}").status_code == 404
    assert one(connection, "SELECT count(*) FROM packhorse.audit") == (1 if text == "" else 0)


def test_what_a_form_has_done_is_shown_to_those_alone_who_may_look(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the record of an act is open to whoever knows a number."""
    with console_on(database) as console, admin(console, connection) as ada:
        sheet = ACTS["note"].offered(ada, World(connection=connection, reader=None))  # type: ignore[arg-type]
        ada.send(sheet)
        ada.forget()
        assert ada.get(f"/sent/{sheet.once}").headers["location"].startswith("/sign-in?next=")
