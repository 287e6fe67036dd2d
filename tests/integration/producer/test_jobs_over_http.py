"""Jobs over HTTP, as a client meets them: every answer of the application, on a real database."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import httpx
import psycopg
import pytest
from tests.support import job_rows
from tests.support.accounts import AccountOpened, AmountMoved

from packhorse.core.errors import Forbidden, InvalidMessage, NotSignedIn
from packhorse.producer import Job, JobHandle, Outbox
from packhorse.producer.jobs.web import Act, Asked, Caller, JobsApp, Order

T = TypeVar("T")
Client = httpx.AsyncClient
Make: TypeAlias = Callable[[], JobsApp]
BODY = {"account": "a", "amount": 5}
UNKNOWN = "019b76da-a800-7000-8000-000000000000"


def authorise(asked: Asked) -> Caller | None:
    """Let in whoever names a tenant; `reader` may look alone, and nobody is not signed in."""
    said = asked.header("x-tenant")
    if said is None:
        raise NotSignedIn("no tenant")
    tenant, _, role = said.partition(":")
    if role == "nobody" or (role == "reader" and asked.act is not Act.READ):
        return None
    return Caller(actor=f"{tenant}-ann", tenant=tenant)


async def open_account(order: Order) -> JobHandle[AccountOpened]:
    """Open an account of the caller's, with a row of the application's in the same transaction."""
    await order.connection.execute("INSERT INTO business VALUES (1)")
    if order.body.get("limit") == 666:
        raise InvalidMessage("this limit is not given")
    if order.body.get("limit") == 403:
        raise Forbidden("accounts are opened by the bank alone")
    if order.body.get("limit") == 500:
        raise ValueError("a secret value")
    return await order.submit(order.read(AccountOpened, owner=order.caller.actor), priority="high")


def make(url: str, **given: Any) -> "Make":
    """Return what makes the application anew for each client: once it is closed it stays so."""
    named = {
        "submit": {"moves": AmountMoved, "accounts": open_account},
        "authorise": authorise,
        "outbox": Outbox(origin="bank"),
    }
    return partial(JobsApp, url, **{**named, **given})


def ask(app: Make, calls: Callable[[Client], Awaitable[T]], *, tenant: str | None = "north") -> T:
    """Run *calls* with a client of the mounted application."""

    async def run() -> T:
        made = app()
        transport = httpx.ASGITransport(app=made, root_path="/api/jobs", raise_app_exceptions=True)
        headers = {} if tenant is None else {"x-tenant": tenant}
        async with (
            made,
            httpx.AsyncClient(
                transport=transport, base_url="http://bank.test/api/jobs", headers=headers
            ) as client,
        ):
            return await calls(client)

    return asyncio.run(run())


def once(app: Make, method: str, path: str, *, tenant: str | None = "north", **given: Any) -> httpx.Response:
    return ask(app, lambda client: client.request(method, path, **given), tenant=tenant)


@pytest.fixture
def database_connection(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SET session_replication_role = replica; DELETE FROM packhorse.job; DELETE FROM packhorse.job_request; "
            "DELETE FROM packhorse.quarantined_message; SET session_replication_role = DEFAULT"
        )
        yield connection


@pytest.fixture
def app(url: str, database_connection: psycopg.Connection[Any]) -> Make:
    return make(url)


def submitted(app: Make, **given: Any) -> UUID:
    return UUID(once(app, "POST", "/moves", json=BODY, **given).json()["id"])


def problem_of(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    said: dict[str, Any] = answer.json()
    assert (said["status"], said["code"]) == (status, code)
    return said


def test_a_request_becomes_a_job_that_is_accepted_and_not_done(
    app: Make, database_connection: psycopg.Connection[Any]
) -> None:
    """Fails when the answer says more than that the job is on record, or the caller is not on it."""
    answer = once(app, "POST", "/moves", json=BODY)
    assert answer.status_code == 202
    said = answer.json()
    assert said == {
        "id": said["id"],
        "type": "bank.AmountMoved",
        "state": "accepted",
        "over": False,
        "links": {"self": f"/api/jobs/{said['id']}", "cancel": f"/api/jobs/{said['id']}/cancel"},
    }
    assert answer.headers["location"] == f"/api/jobs/{said['id']}"
    assert int(answer.headers["retry-after"]) >= 1
    row = database_connection.execute("SELECT state, tenant, actor, origin FROM packhorse.job").fetchall()
    assert row == [("accepted", "north", "north-ann", "bank")]
    assert database_connection.execute("SELECT count(*) FROM packhorse.outbox").fetchone() == (1,)


def test_the_same_key_gives_the_same_job_and_another_input_is_a_conflict(app: Make) -> None:
    """Fails when a request that is sent again makes a second job, or another request is taken for the first."""

    async def calls(client: Client) -> list[httpx.Response]:
        key = {"Idempotency-Key": '"k-1"'}
        first = await client.post("/moves", json=BODY, headers=key)
        again = await client.post("/moves", json=BODY, headers={"Idempotency-Key": "k-1"})
        other = await client.post("/moves", json={**BODY, "amount": 6}, headers=key)
        south = await client.post("/moves", json=BODY, headers={**key, "x-tenant": "south"})
        return [first, again, other, south]

    first, again, other, south = ask(app, calls)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]
    assert problem_of(other, 409, "conflict")["links"] == {"existing": first.headers["location"]}
    assert south.json()["id"] != first.json()["id"]


def test_a_key_says_nothing_of_a_job_that_its_sender_may_not_see(url: str, app: Make) -> None:
    """Fails when who may not read a job learns its address by guessing its request key."""

    def careful(asked: Asked) -> Caller | None:
        return None if asked.act is Act.READ else Caller(actor="bob", tenant="north")

    key = {"Idempotency-Key": "k-1"}
    job_id = submitted(app, headers=key)
    for body in (BODY, {**BODY, "amount": 6}):
        answer = once(make(url, authorise=careful), "POST", "/moves", json=body, headers=key)
        assert str(job_id) not in json.dumps(problem_of(answer, 409, "conflict"))


def test_a_job_is_shown_at_every_stage_of_its_way(
    app: Make, database_connection: psycopg.Connection[Any]
) -> None:
    """Fails when a state is called over that is not, or a result, an error or progress is shown where there is none."""
    job_id = submitted(app)

    def shown() -> dict[str, Any]:
        answer = once(app, "GET", f"/{job_id}")
        assert answer.status_code == 200
        assert ("retry-after" in answer.headers) is not answer.json()["over"]
        found: dict[str, Any] = answer.json()
        return found

    accepted = shown()
    assert (accepted["state"], accepted["over"], accepted["result"], accepted["progress"]) == (
        "accepted",
        False,
        None,
        None,
    )
    assert "amount" not in accepted  # the input stays inside
    job_rows.begin(database_connection, job_id)
    database_connection.execute(
        "UPDATE packhorse.job SET progress_done = 3, progress_total = 10, progress_text = %s, progress_at = now()",
        ("page 3\u202e",),
    )
    running = shown()
    assert (running["state"], running["attempt"]) == ("running", 1)
    assert running["progress"] | {"at": None} == {
        "done": 3,
        "total": 10,
        "text": "page 3\\u202e",
        "at": None,
    }
    job_rows.end(database_connection, job_id, "succeeded", result={"rows": 7})
    over = shown()
    assert (over["state"], over["over"], over["result"]) == ("succeeded", True, {"rows": 7})
    assert over["finished_at"].endswith("Z")
    assert over["links"] == {"self": f"/api/jobs/{job_id}"}


def test_a_job_that_failed_shows_a_code_and_what_was_declared_safe(
    app: Make, database_connection: psycopg.Connection[Any]
) -> None:
    """Fails when a job in quarantine counts as over, or what a person wrote about it gets out."""
    job_id = job_rows.stopped(database_connection, tenant="north", reason="attempts-exhausted")
    said = once(app, "GET", f"/{job_id}").json()
    assert (said["state"], said["over"], said["needs_person"]) == ("quarantined", False, True)
    assert (said["reason"], said["error"]) == ("attempts-exhausted", None)
    told = "UPDATE packhorse.job SET error = %s WHERE id = %s"
    for error, safe in (
        ("reports.NotClosed at work.py:7 in report: March is not closed", "March is not closed"),
        ("packhorse.core.errors.NotReady at work.py:7 in report: role writer may not", None),
        ("psycopg.errors.UniqueViolation (23505) at work.py:7 in report", None),
    ):
        database_connection.execute(told, (error, job_id))
        assert once(app, "GET", f"/{job_id}").json()["error"] == safe
    waiting = job_rows.accepted(database_connection, tenant="north")
    database_connection.execute("SELECT packhorse.cancel_job(%s, 'ops', 'Ann Smith wanted it')", (waiting,))
    answer = once(app, "GET", f"/{waiting}")
    assert (answer.json()["state"], answer.json()["reason"]) == ("cancelled", None)
    assert "Smith" not in answer.text
    assert "ops" not in answer.text


@pytest.mark.case("X-01")
def test_an_unknown_job_and_somebody_elses_are_answered_alike(app: Make) -> None:
    """Fails when an id that never existed looks like a job, or a job of another tenant can be told from none."""
    job_id = submitted(app)
    unknown = once(app, "GET", f"/{UNKNOWN}", tenant="south")
    problem_of(unknown, 404, "not-found")
    requests: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("GET", f"/{job_id}", {}),
        ("POST", f"/{job_id}/cancel", {"json": {}}),
        ("POST", f"/{UNKNOWN}/cancel", {"json": {}}),
    )
    for method, path, given in requests:
        answer = once(app, method, path, tenant="south", **given)
        assert (answer.status_code, answer.content) == (404, unknown.content)
        assert set(answer.headers) == set(unknown.headers)
    assert once(app, "GET", f"/{job_id}", tenant="north:nobody").content == unknown.content
    for path in (f"/{job_id}", f"/{UNKNOWN}"):
        problem_of(once(app, "GET", path, tenant=None), 401, "not-signed-in")


def test_nothing_is_answered_before_somebody_says_who_may(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """Fails when an application that forgot authorise serves jobs to everybody."""
    with caplog.at_level(logging.WARNING, logger="packhorse.jobs"):
        closed = make(url, authorise=None)
        closed()
    assert "no authorise was given" in caplog.text
    for method, path in (
        ("POST", "/moves"),
        ("GET", f"/{UNKNOWN}"),
        ("POST", f"/{UNKNOWN}/cancel"),
        ("GET", "/"),
    ):
        problem_of(once(closed, method, path), 403, "forbidden")
    problem_of(once(make(url), "POST", "/moves", json=BODY, tenant="north:reader"), 403, "forbidden")


def test_an_unchanged_job_is_not_sent_again(app: Make, database_connection: psycopg.Connection[Any]) -> None:
    """Fails when the tag of a job does not follow what is shown of it."""
    job_id = submitted(app)
    first = once(app, "GET", f"/{job_id}")
    known = {"If-None-Match": f'"other", W/{first.headers["etag"]}'}
    same = once(app, "GET", f"/{job_id}", headers=known)
    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["etag"] == first.headers["etag"]
    job_rows.begin(database_connection, job_id)
    changed = once(app, "GET", f"/{job_id}", headers=known)
    assert (changed.status_code, changed.json()["state"]) == (200, "running")
    head = once(app, "HEAD", f"/{job_id}")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == changed.headers["etag"]
    assert head.headers["content-length"] == changed.headers["content-length"]


def test_a_request_waits_for_a_change_and_for_the_end(
    url: str, app: Make, database_connection: psycopg.Connection[Any]
) -> None:
    """Fails when `wait` is not waited, or a change is heard of only when the time is over."""
    job_id = submitted(app)
    tag = once(app, "GET", f"/{job_id}").headers["etag"]

    def asked_while(act: Callable[[], object], wait: str, **headers: str) -> httpx.Response:
        looked = asyncio.Event()

        def signal(asked: Asked) -> Caller | None:
            looked.set()  # the job was read before
            return authorise(asked)

        async def calls(client: Client) -> httpx.Response:
            going = asyncio.ensure_future(client.get(f"/{job_id}", params={"wait": wait}, headers=headers))
            await looked.wait()
            assert not going.done()
            await asyncio.to_thread(act)
            return await going

        return ask(make(url, authorise=signal), calls)

    begun = asked_while(lambda: job_rows.begin(database_connection, job_id), "20", **{"If-None-Match": tag})
    assert begun.json()["state"] == "running"
    ended = asked_while(lambda: job_rows.end(database_connection, job_id, "succeeded", result=1), "20")
    assert ended.json()["state"] == "succeeded"


def test_a_wait_is_bounded(url: str, app: Make) -> None:
    """Fails when a caller can hold a request for longer than the application allows, or more than it allows."""
    job_id = submitted(app)
    for bounds in ({"max_wait": 0.05}, {"max_waiting": 0}):
        answer = once(make(url, **bounds), "GET", f"/{job_id}", params={"wait": "999"})
        assert (answer.status_code, answer.json()["state"]) == (200, "accepted")
    for said in ("soon", "-1", "1e9", "", "nan"):
        problem_of(once(app, "GET", f"/{job_id}", params={"wait": said}), 400, "malformed")


def test_a_job_is_cancelled_or_its_worker_is_asked(
    app: Make, database_connection: psycopg.Connection[Any]
) -> None:
    """Fails when a job that runs is called cancelled, or one that ended can be cancelled once more."""
    waiting, running = submitted(app), submitted(app)
    job_rows.begin(database_connection, running)
    stopped = once(app, "POST", f"/{waiting}/cancel", json={"why": "not needed"})
    assert (stopped.status_code, stopped.json()["state"], stopped.json()["over"]) == (200, "cancelled", True)
    asked = once(app, "POST", f"/{running}/cancel", json={})
    assert (asked.status_code, asked.json()["state"]) == (202, "running")
    assert (asked.json()["cancel_asked"], asked.json()["over"]) == (True, False)
    job_rows.end(database_connection, running, "succeeded")
    said = problem_of(once(app, "POST", f"/{running}/cancel", json={}), 409, "conflict")
    assert said["detail"] == "the job is succeeded; there is nothing to cancel"
    row = database_connection.execute(
        "SELECT cancel_asked_by, cancel_why FROM packhorse.job WHERE id = %s", (waiting,)
    )
    assert row.fetchone() == ("north-ann", "not needed")
    for body in ({"why": ""}, {"why": "x" * 501}, {"why": 7}, {"reason": "x"}):
        problem_of(once(app, "POST", f"/{running}/cancel", json=body), 422, "invalid")
    problem_of(once(app, "POST", f"/{running}/cancel", json={}, tenant="north:reader"), 403, "forbidden")


def test_a_function_of_the_applications_makes_the_job_in_its_transaction(
    app: Make, database_connection: psycopg.Connection[Any]
) -> None:
    """Fails when what the function writes is committed apart from the job, or its caller may say what it says."""
    business = "SELECT count(*) FROM business"
    assert once(app, "POST", "/accounts", json={"account": "a", "limit": 1}).status_code == 202
    assert database_connection.execute(business).fetchone() == (1,)
    mine = once(app, "POST", "/accounts", json={"account": "a", "limit": 1, "owner": "mallory"})
    assert problem_of(mine, 422, "invalid")["errors"][0]["field"] == "owner"
    for limit, status, code in ((666, 422, "invalid"), (403, 403, "forbidden"), (500, 500, "unexpected")):
        answer = once(app, "POST", "/accounts", json={"account": "a", "limit": limit})
        assert "secret" not in str(problem_of(answer, status, code))
    assert database_connection.execute(business).fetchone() == (1,)


@pytest.mark.parametrize(
    ("body", "field", "allowed"),
    [
        ({"account": "a"}, "amount", "a value: the field is missing"),
        ({"account": "a", "amount": "s3cr3t"}, "amount", "int from"),
        ({"account": "a", "amount": 2**70}, "amount", "int from"),
        ({"account": "\ud800", "amount": 1}, "account", "text"),
        ({"account": "a", "amount": 1, "more": "s3cr3t"}, "more", "no such field: account, amount"),
    ],
)
def test_a_body_that_does_not_fit_is_told_by_field_and_limit(
    app: Make, body: dict[str, Any], field: str, allowed: str
) -> None:
    """Fails when a value that does not fit is refused without its place, or is sent back."""
    answer = once(
        app,
        "POST",
        "/moves",
        content=json.dumps(body).encode("ascii"),
        headers={"content-type": "application/json"},
    )
    (error,) = problem_of(answer, 422, "invalid")["errors"]
    assert error["field"] == field
    assert error["allowed"].startswith(allowed)
    assert "s3cr3t" not in answer.text


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b"{", JSON, 400, "malformed"),
        (b"\xff\xfe", JSON, 400, "malformed"),
        (b"[1]", JSON, 400, "malformed"),
        (b'{"a": 1, "a": 2}', JSON, 400, "malformed"),
        (b'{"a": NaN}', JSON, 400, "malformed"),
        (b"[" * 100_000, JSON, 400, "malformed"),
        (b'{"a": ' + b"9" * 10_000 + b"}", JSON, 400, "malformed"),
        (b"", JSON, 400, "malformed"),
        (b"{}", {}, 415, "no-json"),
        (b"a=1", {"content-type": "application/x-www-form-urlencoded"}, 415, "no-json"),
        (b"{}", {"content-type": "application/json; charset=latin-1"}, 415, "no-json"),
        (b"{}", JSON | {"content-encoding": "gzip"}, 415, "no-json"),
        (b"x" * 1001, JSON, 413, "too-large"),
        (b"{}", JSON | {"Idempotency-Key": ""}, 400, "malformed"),
        (b"{}", JSON | {"Idempotency-Key": "x" * 201}, 400, "malformed"),
        (b"{}", JSON | {"Idempotency-Key": "caf\u00e9"}, 400, "malformed"),
    ],
)
def test_a_body_that_can_not_be_read_is_refused(
    url: str, content: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    """Fails when a body that is no JSON object of a bounded size gets as far as the database, or takes the server down."""
    raw = {name: value.encode("latin-1") for name, value in headers.items()}
    answer = once(
        make(url, max_body_bytes=1000 if status == 413 else 1 << 20),
        "POST",
        "/moves",
        content=content,
        headers=raw,
    )
    problem_of(answer, status, code)


def test_a_body_without_a_length_is_counted_as_it_comes(url: str) -> None:
    """Fails when only what a client says of its body's size is looked at."""

    async def parts() -> Any:
        for _ in range(10):
            yield b"x" * 500
        raise AssertionError("more was read than is allowed")

    answer = once(make(url, max_body_bytes=1000), "POST", "/moves", content=parts(), headers=JSON)
    problem_of(answer, 413, "too-large")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/moves", "POST"),
        ("DELETE", f"/{UNKNOWN}", "GET, HEAD"),
        ("POST", f"/{UNKNOWN}", "GET, HEAD"),
        ("GET", f"/{UNKNOWN}/cancel", "POST"),
        ("PROPFIND", "/moves", "POST"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(app: Make, method: str, path: str, allow: str) -> None:
    """Fails when a method that an address has not is taken for another one."""
    answer = once(app, method, path)
    problem_of(answer, 405, "no-such-method")
    assert answer.headers["allow"] == allow


@pytest.mark.parametrize("path", ["/", "/Moves", "/moves/1", "/../x", "/%00", f"/{UNKNOWN}/x", "/019b"])
def test_an_address_that_is_none_of_ours_is_not_found(app: Make, path: str) -> None:
    """Fails when an address that stands for nothing is answered as if it did."""
    problem_of(once(app, "GET", path), 404, "not-found")


def test_a_kind_that_is_not_submitted_here_is_not_found(app: Make) -> None:
    """Fails when a kind that nobody named is submitted."""
    said = problem_of(once(app, "POST", "/payments", json=BODY), 404, "not-found")
    assert "moves, accounts" in said["detail"]


def test_a_job_is_late_once_its_time_is_over(
    url: str, app: Make, database_connection: psycopg.Connection[Any]
) -> None:
    """Fails when a job that takes too long looks like one that does not, or one that is over is called late."""
    job_id = submitted(app)
    late = make(url, late_after={AmountMoved: 0.000001})
    assert once(app, "GET", f"/{job_id}").json()["late"] is False
    assert once(late, "GET", f"/{job_id}").json()["late"] is True
    assert once(make(url, late_after={AmountMoved: 600}), "GET", f"/{job_id}").json()["late"] is False
    job_rows.end(database_connection, job_rows.begin(database_connection, job_id), "succeeded")
    assert once(late, "GET", f"/{job_id}").json()["late"] is False


def test_the_application_names_where_the_result_is(
    url: str, app: Make, database_connection: psycopg.Connection[Any]
) -> None:
    """Fails when a result's address is given before there is a result."""

    def links(job: Job) -> dict[str, str]:
        return {"result": f"/reports/{job.id}.csv", "request": f"/orders/{job.correlation_id}"}

    linked = make(url, links=links)
    job_id = submitted(app)
    assert set(once(linked, "GET", f"/{job_id}").json()["links"]) == {"self", "cancel", "request"}
    job_rows.end(database_connection, job_rows.begin(database_connection, job_id), "succeeded")
    assert set(once(linked, "GET", f"/{job_id}").json()["links"]) == {"self", "result", "request"}


def test_a_database_that_is_away_is_no_fault_of_the_callers(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Fails when trouble with the database looks like a bad request, or its text gets out."""
    away = make("postgresql://someone:s3cr3t@127.0.0.1:1/nothing", timeout=0.2)
    for method, path in (("POST", "/moves"), ("GET", f"/{UNKNOWN}")):
        answer = once(away, method, path, json=BODY if method == "POST" else None)
        problem_of(answer, 503, "away")
        assert int(answer.headers["retry-after"]) >= 1
        assert "127.0.0.1" not in answer.text
    assert "s3cr3t" not in caplog.text


def test_two_that_race_with_one_key_are_given_one_job(app: Make) -> None:
    """Fails when requests that come at once with one key make two jobs."""

    async def calls(client: Client) -> list[httpx.Response]:
        key = {"Idempotency-Key": "k-race"}
        return await asyncio.gather(*(client.post("/moves", json=BODY, headers=key) for _ in range(8)))

    answers = ask(app, calls)
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
