"""The examples of the page on writing run, each in turn, on a real database."""

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from tests.support.accounts import AmountMoved
from tests.support.writers import alchemy

PAGE = Path(__file__).parents[3] / "docs/how-to/write-messages.md"


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
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for block in blocks:
        exec(block, names)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT balance FROM account WHERE name = 'a'").fetchone() == (-10,)
        assert connection.execute("SELECT count(*) FROM packhorse.outbox").fetchone() == (10,)
        tenants = "SELECT DISTINCT tenant FROM packhorse.outbox WHERE tenant IS NOT NULL"
        assert connection.execute(tenants).fetchall() == [("north",)]


@pytest.mark.parametrize("word", ["queue", "exactly-once", "DLQ", "dead letter"])
def test_the_page_uses_the_words_of_the_glossary(word: str) -> None:
    assert word not in PAGE.read_text(encoding="utf-8")
