"""The runbook's commands, as they are written, on a quarantine that grows: they find what stops, and what a person does holds."""

import shlex
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.support.cli import Ran, packhorse
from tests.support.console_rows import rested
from tests.support.pages import command

PAGE = "runbooks/quarantine-grows.md"
ID, PRINT = "019b76da-a800-7000-8000-000000000000", "3f9a1c02"


class Reader:
    """Somebody who types what the page says, with the id and the print of this ground in place of the page's."""

    def __init__(self, database: str) -> None:
        self._database = database
        self.id: UUID | None = None
        self.print = ""

    def types(self, block: str) -> list[Ran]:
        """Run each line of *block*."""
        text = command(PAGE, block).replace(ID, str(self.id)).replace(PRINT, self.print[:8])
        return [
            packhorse(*shlex.split(line)[1:], PACKHORSE_DATABASE_URL=self._database)
            for line in text.splitlines()
        ]


@pytest.mark.case("O-09")
def test_what_stops_is_found_known_and_decided(database: str) -> None:
    """Fails when a command of the page is not so any more, or shows another group or message."""
    reader = Reader(database)
    with psycopg.connect(database, autocommit=True) as connection:
        reader.id = rested(connection, error="ValueError at a.py:1 in f: customer 17", key=b"N14228")
        rested(connection, error="ValueError at a.py:1 in f", key=b"other", tenant="acme")
        rested(connection, reason="crashed", key=b"other")
        by_failure, by_day, by_tenant = reader.types("groups")
        assert [ran.code for ran in (by_failure, by_day, by_tenant)] == [0, 0, 0]
        assert "acme" in by_tenant.out
        reader.print = by_failure.out.splitlines()[1].split()[0]
        (whole,) = reader.types("group")
        assert str(reader.id) in whole.out
        failures, of_key, of_text = reader.types("list")
        assert failures.out.count("ValueError at a.py:1") == 2
        for found in (of_key, of_text):
            assert str(reader.id) in found.out
            assert found.out.count("figures") == 1
        (shown,) = reader.types("show")
        assert "customer 17" in shown.out
        assert [ran.code for ran in reader.types("ack")] == [0, 0]
        assert "acknowledged by" in reader.types("groups")[0].out
        (discarded,) = reader.types("discard")
        assert discarded.code == 0, discarded.err
        assert outcome(connection, reader.id) == "discarded"
        (restored,) = reader.types("restore")
        assert restored.code == 0, restored.err
        assert outcome(connection, reader.id) == "quarantine"


def outcome(connection: psycopg.Connection[Any], message_id: UUID) -> object:
    row = connection.execute(
        "SELECT outcome FROM packhorse.inbox WHERE message_id = %s", (message_id,)
    ).fetchone()
    return None if row is None else row[0]
