"""The examples of the pages on writing and submitting run, each in turn, on a real database."""

import asyncio
import re
from dataclasses import dataclass
from inspect import getsource, signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import httpx
import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from tests.support.accounts import AmountMoved
from tests.support.writers import alchemy

from packhorse.core.jobs import JobState
from packhorse.core.message import MessageType
from packhorse.producer import Cancelling
from packhorse.producer.jobs.drafts import JobExtra
from packhorse.producer.jobs.web import JobsApp
from packhorse.producer.jobs.web.showing import shown_job
from packhorse.testing import register_for_tests

PAGES = Path(__file__).parents[3] / "docs/how-to"
PAGE, JOBS_PAGE = PAGES / "write-messages.md", PAGES / "submit-jobs.md"
HTTP_PAGE = PAGES / "serve-jobs-over-http.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """The input of the page's jobs."""

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="reports.ReportRequest",
        version=1,
        namespace="reports",
        aggregatetype="report",
        schema='{"type":"record","name":"reports.ReportRequest","fields":[{"name":"customer","type":"string"},'
        '{"name":"month","type":"string"}]}',
    )
    customer: str
    month: str


class Base(DeclarativeBase):
    """Root of the page's tables."""


class Account(Base):
    """An account of the page."""

    __tablename__ = "account"
    name: Mapped[str] = mapped_column(primary_key=True)
    balance: Mapped[int]


def test_the_examples_of_the_page_on_writing_run(url: str) -> None:
    engine = sa.create_engine(alchemy(url), poolclass=sa.NullPool)
    names: dict[str, Any] = {
        "url": url,
        "engine": engine,
        "Account": Account,
        "AmountMoved": AmountMoved,
    }
    for block in blocks_of(PAGE):
        exec(block, names)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT balance FROM account WHERE name = 'a'").fetchone() == (-10,)
        assert connection.execute("SELECT count(*) FROM packhorse.outbox").fetchone() == (10,)
        tenants = "SELECT DISTINCT tenant FROM packhorse.outbox WHERE tenant IS NOT NULL"
        assert connection.execute(tenants).fetchall() == [("north",)]


def test_the_examples_of_the_page_on_jobs_run(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with psycopg.connect(url) as connection:
        register_for_tests(connection, ReportRequest)
    names: dict[str, Any] = {"url": url, "ReportRequest": ReportRequest}
    for block in blocks_of(JOBS_PAGE):
        exec(block, names)
    assert names["outcome"] is Cancelling.CANCELLED
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith(" True")
    assert said[1].startswith("cancelled None None None ")
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM packhorse.job").fetchone() == (3,)


def test_the_examples_of_the_page_on_http_run(url: str) -> None:
    names: dict[str, Any] = {"url": url, "ReportRequest": ReportRequest}
    with psycopg.connect(url) as connection:
        register_for_tests(connection, ReportRequest)
    for block in blocks_of(HTTP_PAGE):
        exec(block, names)
    user = SimpleNamespace(name="ann", tenant="north")

    async def signed(scope: Any, receive: Any, send: Any) -> None:
        await names["jobs"]({**scope, "user": user}, receive, send)

    async def asked() -> tuple[httpx.Response, httpx.Response]:
        transport = httpx.ASGITransport(app=signed)
        async with names["jobs"], httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            sent = await client.post("/reports", json={"month": "2026-07"})
            return sent, await client.get(sent.headers["location"])

    sent, job = asyncio.run(asked())
    assert (sent.status_code, job.json()["state"]) == (202, "accepted")
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT n FROM business").fetchone() == (18,)
        assert connection.execute("SELECT actor, tenant FROM packhorse.job").fetchone() == ("ann", "north")


def test_the_page_on_http_names_every_field_of_a_job() -> None:
    text = HTTP_PAGE.read_text(encoding="utf-8")
    for word in (*signature(JobsApp).parameters, *shown_names()):
        if word not in {"database_url", "submit", "clock", "chance", "outbox", "id", "type"}:
            assert word in text, word


def shown_names() -> list[str]:
    return re.findall(r'^        "(\w+)": ', getsource(shown_job), re.MULTILINE)


def test_the_page_on_jobs_names_every_state_and_argument() -> None:
    text = JOBS_PAGE.read_text(encoding="utf-8")
    for word in (*JobState, *JobExtra.__annotations__):
        assert f"`{word}" in text, word


@pytest.mark.parametrize("page", [PAGE, JOBS_PAGE, HTTP_PAGE], ids=["writing", "jobs", "http"])
@pytest.mark.parametrize("word", ["queue", "exactly-once", "DLQ", "dead letter"])
def test_the_page_uses_the_words_of_the_glossary(page: Path, word: str) -> None:
    assert word not in page.read_text(encoding="utf-8")


def blocks_of(page: Path) -> list[str]:
    """Return the examples of *page*, in their order."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
