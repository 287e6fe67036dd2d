"""What requests ask for, when it is worth while to ask again, and how the application lives in a server; without any I/O."""

import asyncio
import datetime as dt
from collections.abc import MutableMapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from packhorse.core.errors import PackhorseError, SettingsError, ValueMismatch
from packhorse.core.jobs import JobState
from packhorse.producer.jobs.reading import JOB_COLUMNS, Job, job_of
from packhorse.producer.jobs.web import Act, JobsApp
from packhorse.producer.jobs.web.answers import Refused, answer_of, json_answer
from packhorse.producer.jobs.web.requests import Target, checked_kind, seconds_of, target_of
from packhorse.producer.jobs.web.serving import answered
from packhorse.producer.jobs.web.showing import is_late, links_of, retry_after
from packhorse.producer.jobs.web.waiting import until

ID = UUID("019b76da-a800-7000-8000-000000000000")
NOW = dt.datetime(2026, 8, 1, 12, tzinfo=dt.UTC)
Message = MutableMapping[str, Any]


def job(**given: Any) -> Job:
    """Return a job that was accepted at NOW."""
    values: dict[str, Any] = dict.fromkeys(JOB_COLUMNS)
    values |= {
        "id": ID,
        "type": "reports.Request",
        "version": 1,
        "topic": "reports.requests",
        "state": "accepted",
        "attempt": 0,
        "priority": "normal",
        "accepted_at": NOW,
        "changed_at": NOW,
        "changed_by": "app",
    }
    return job_of(list((values | given).values()))


def scope(path: str, root: str = "", method: str = "GET", query: bytes = b"") -> dict[str, Any]:
    return {"path": path, "root_path": root, "method": method, "query_string": query, "headers": []}


@pytest.mark.parametrize(
    ("path", "root"),
    [
        (f"/api/jobs/{ID}", "/api/jobs"),  # as the standard has it
        (f"/{ID}", "/api/jobs"),  # whoever mounts has taken its part away
        (f"/api/jobs/{ID}", "/api/jobs/"),
    ],
)
def test_an_address_is_read_wherever_the_application_is_mounted(path: str, root: str) -> None:
    """Fails when only one way of mounting is understood, or addresses that are given out lead nowhere."""
    assert target_of(scope(path, root)) == Target(act=Act.READ, base="/api/jobs", job_id=ID)


def test_what_is_mounted_beside_is_not_taken_for_ours() -> None:
    """Fails when a prefix is cut off in the middle of a name."""
    with pytest.raises(Refused):
        target_of(scope(f"/jobsmore/{ID}", "/jobs"))
    assert target_of(scope("/a b/report", "/a b", "POST")).base == "/a%20b"


def test_a_wait_has_a_bound() -> None:
    """Fails when more than the bound is waited."""
    assert seconds_of(scope("/", query=b"wait=2.5"), most=30) == 2.5
    assert seconds_of(scope("/", query=b"wait=99999"), most=30) == 30
    assert seconds_of(scope("/", query=b"other=1"), most=30) == 0
    with pytest.raises(Refused):
        seconds_of(scope("/", query=b"wait=1&wait=2"), most=30)


@pytest.mark.parametrize(
    "name", ["", "Report", "1report", "a_b", "a/b", "a" * 65, "a\n", str(ID).replace("0", "a")]
)
def test_a_kind_that_no_address_can_have_is_refused_at_the_start(name: str) -> None:
    """Fails when a kind is named so that it can't be submitted, or looks like an id."""
    with pytest.raises(SettingsError, match="is not allowed"):
        checked_kind(name)


@pytest.mark.parametrize(
    ("given", "age", "seconds"),
    [
        ({}, 0, 1),
        ({}, 60, 6),
        ({"state": "running"}, 3600, 30),
        ({"state": "quarantined"}, 0, 60),
        ({"state": "succeeded", "finished_at": NOW}, 0, None),
        ({"state": "cancelled", "finished_at": NOW}, 0, None),
        ({"not_before": NOW + dt.timedelta(seconds=90.5)}, 0, 91),
        ({"not_before": NOW + dt.timedelta(days=9)}, 0, 3600),
    ],
)
def test_it_is_said_when_to_ask_again(given: dict[str, Any], age: float, seconds: int | None) -> None:
    """Fails when who waits asks all the time, or is told to ask for what is over."""
    assert retry_after(job(**given), now=NOW + dt.timedelta(seconds=age)) == seconds


def test_a_job_that_waits_for_its_time_is_not_late() -> None:
    """Fails when the time before a job is due counts."""
    later = NOW + dt.timedelta(hours=1)
    waiting = job(not_before=later)
    assert not is_late(waiting, after=10, now=later + dt.timedelta(seconds=10))
    assert is_late(waiting, after=10, now=later + dt.timedelta(seconds=11))
    assert not is_late(waiting, after=None, now=later + dt.timedelta(days=1))


@pytest.mark.parametrize("state", list(JobState))
def test_cancelling_is_offered_where_it_can_be_done(state: JobState) -> None:
    """Fails when a job that is over, or waits for a person, shows a way to cancel it."""
    found = replace(job(), state=state)
    assert ("cancel" in links_of(found, "/jobs", {})) is (state in {"accepted", "running", "retrying"})
    asked = replace(found, cancel_asked_at=NOW)
    assert ("cancel" in links_of(asked, "/jobs", {})) is (state in {"accepted", "retrying"})


def test_only_errors_of_the_callers_are_told_to_them() -> None:
    """Fails when an error of ours, whose text may name tables and roles, is sent as it is."""
    answer = answer_of(ValueMismatch("x, n: given str 's3cr3t'; allowed: int", path="n", allowed="int"))
    assert answer is not None
    assert b"s3cr3t" not in answer.body
    assert answer_of(PackhorseError("role writer may not")) is None


class Numbers:
    def token(self) -> UUID:
        return ID


def test_what_nobody_expected_is_answered_with_a_number() -> None:
    """Fails when a program's error ends a request without an answer, or its text is sent."""

    async def fails() -> Any:
        raise KeyError("s3cr3t")

    answer = asyncio.run(answered(fails, Numbers()))  # type: ignore[arg-type]
    assert answer.status == 500
    assert str(ID).encode() in answer.body
    assert b"s3cr3t" not in answer.body


def test_a_header_is_sent_once() -> None:
    """Fails when a problem is sent with the headers of two kinds of bodies."""
    answer = json_answer(200, {"a": 1}, retry_after="3")
    names = [name for name, _ in answer.raw_headers()]
    assert len(names) == len(set(names))
    assert (b"retry-after", b"3") in answer.raw_headers()


def test_whoever_has_gone_is_waited_for_no_longer() -> None:
    """Fails when a job is asked for every second on behalf of nobody."""
    messages = [{"type": "http.request"}, {"type": "http.disconnect"}]
    looks = 0

    async def receive() -> Message:
        return messages.pop(0)

    async def look() -> Job:
        nonlocal looks
        looks += 1
        return job()

    class Stopped:
        def now(self) -> dt.datetime:
            return NOW

        def monotonic(self) -> float:
            return 0.0

    found = asyncio.run(until(lambda _: False, job(), look, receive, seconds=3600, clock=Stopped()))
    assert found.state == "accepted"
    assert looks == 1


def test_it_takes_part_in_the_life_of_a_server() -> None:
    """Fails when a server that serves it alone can't start, or never ends."""
    said: list[str] = []
    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        said.append(message["type"])

    async def run() -> None:
        app = JobsApp("postgresql://localhost/nothing", authorise=lambda _: None)
        await app({"type": "lifespan"}, receive, send)
        await app({"type": "websocket"}, receive, send)

    asyncio.run(run())
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]


@pytest.mark.parametrize(
    "given",
    [
        {"max_body_bytes": 0},
        {"max_wait": -1},
        {"max_waiting": -1},
        {"submit": {"A": object}},
        {"connections": 0},
    ],
)
def test_settings_that_can_not_be_meant_are_refused_at_the_start(given: dict[str, Any]) -> None:
    """Fails when a bound of nothing is found out by the first caller."""
    with pytest.raises(SettingsError):
        JobsApp("postgresql://localhost/nothing", **given)
