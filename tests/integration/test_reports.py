"""The example of reports over HTTP: what its pages and its JSON answer, to whom, and what they never do."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from tests.support import job_rows
from tests.support.serving import served

from examples.reports import tables
from examples.reports.messages import ReportRequest
from examples.reports.web import application
from packhorse.testing import register_for_tests

EVIL = '"><script>alert(1)</script>$id'


@pytest.fixture
def person(database: str) -> Iterator[httpx.Client]:
    """Provide Ann, signed in."""
    with psycopg.connect(database) as connection:
        connection.execute(tables.REPORTS)
        register_for_tests(connection, ReportRequest)
    with served(application(database)) as address, httpx.Client(base_url=address) as client:
        client.post("/sign-in", data={"person": "ann"})
        yield client


def form(person: httpx.Client, **given: str) -> dict[str, str]:
    key = re.search(r'name="request_key" value="(\w+)"', person.get("/").text)
    assert key is not None
    return {"title": "Sales", "year": "2025", "shows": "USUAL", "request_key": key[1], **given}


def rows(connection: psycopg.Connection[Any]) -> tuple[int, int]:
    found = connection.execute(
        "SELECT (SELECT count(*) FROM report), (SELECT count(*) FROM packhorse.job)"
    ).fetchone()
    assert found is not None
    return found[0], found[1]


def test_a_form_that_is_sent_twice_is_one_report(
    person: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a button that is pressed twice makes two reports, or the row and the job are two transactions."""
    filled = form(person)
    first, again = person.post("/", data=filled), person.post("/", data=filled)
    assert (first.status_code, again.status_code) == (303, 303)
    assert first.headers["location"] == again.headers["location"]
    assert rows(connection) == (1, 1)
    other = person.post("/", data={**filled, "title": "Other"})
    assert other.status_code == 422
    assert "this form was sent before" in other.text
    assert rows(connection) == (1, 1)


@pytest.mark.parametrize(
    "given",
    [
        {"title": ""},
        {"title": "x" * 81},
        {"title": "a\0b"},
        {"title": "a\nb"},
        {"year": "1999"},
        {"year": "9" * 50},
        {"year": "x"},
        {"shows": "ALL"},
    ],
)
def test_a_form_that_is_not_filled_in_is_shown_again(
    person: httpx.Client, connection: psycopg.Connection[Any], given: dict[str, str]
) -> None:
    """Fails when a person is told nothing of what is wrong, or half of it is written."""
    answer = person.post("/", data=form(person, **given))
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert rows(connection) == (0, 0)


def test_the_same_is_asked_for_over_json(person: httpx.Client, connection: psycopg.Connection[Any]) -> None:
    """Fails when a program may say who asks, or is answered with something else than the page shows."""
    asked = person.post(
        "/jobs/reports", json={"title": "Sales", "year": 2025}, headers={"Idempotency-Key": "r-1"}
    )
    assert asked.status_code == 202
    job = person.get(asked.headers["location"]).json()
    assert (job["state"], job["late"]) == ("accepted", False)
    assert "is on its way" in person.get(f"/reports/{job['id']}").text
    forged = person.post("/jobs/reports", json={"title": "Sales", "year": 2025, "person": "ben"})
    assert (forged.status_code, forged.json()["errors"][0]["field"]) == (422, "person")
    assert person.post("/jobs/reports", json={"title": "Sales", "year": 1}).status_code == 422
    assert rows(connection) == (1, 1)


def test_what_is_typed_stays_text(person: httpx.Client) -> None:
    """Fails when a title or an error is put into a page as it is, or a page may run what is in it."""
    address = person.post("/", data=form(person, title=EVIL)).headers["location"]
    for page in ("/", address):
        answer = person.get(page)
        assert "<script>alert" not in answer.text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;$id" in answer.text
        assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_nobody_sees_or_cancels_what_is_somebody_elses(person: httpx.Client) -> None:
    """Fails when an address is enough to see a report, or to stop it."""
    address = person.post("/", data=form(person)).headers["location"]
    job = address.rpartition("/")[2]
    for cookies, status in ((person.cookies, 200), (None, 303)):
        answer = httpx.get(f"{person.base_url}{address}", cookies=cookies)
        assert answer.status_code == status
    with httpx.Client(base_url=person.base_url) as other:
        other.post("/sign-in", data={"person": "ben"})
        assert other.get(address).status_code == 404
        assert other.get(f"{address}.csv").status_code == 404
        assert other.post(f"{address}/cancel").status_code == 404
        assert other.get(f"/jobs/{job}").status_code == 404
        assert other.post(f"/jobs/{job}/cancel", json={}).status_code == 404
    assert httpx.get(f"{person.base_url}/jobs/{job}").status_code == 401
    assert person.get(f"/jobs/{job}").json()["state"] == "accepted"


def test_the_form_of_another_site_does_nothing(
    person: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a page elsewhere can let a signed-in person ask for a report, or cancel one."""
    address = person.post("/", data=form(person)).headers["location"]
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert person.post("/", data=form(person), headers=foreign).status_code == 403
    assert person.post(f"{address}/cancel", headers=foreign).status_code == 403
    job = address.rpartition("/")[2]
    assert person.post(f"/jobs/{job}/cancel", data={"why": "x"}).status_code == 415
    assert rows(connection) == (1, 1)
    assert person.get(f"/jobs/{job}").json()["state"] == "accepted"


def test_a_report_is_there_once_it_is_ready(
    person: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a report can be had before its job has succeeded."""
    address = person.post("/", data=form(person)).headers["location"]
    job = address.rpartition("/")[2]
    assert person.get(f"{address}.csv").status_code == 404
    job_rows.begin(connection, UUID(job))
    connection.execute(tables.FILL, ("month\r\n", job))
    job_rows.end(connection, UUID(job), "succeeded", result={"lines": 0})
    assert person.get(f"/jobs/{job}").json()["links"]["result"] == f"{address}.csv"
    assert person.get(f"{address}.csv").text == "month\r\n"
