import json
import re
from datetime import date

import pytest
from typer.testing import CliRunner

from packhorse.core.errors import SettingsError
from packhorse.producer import migrate
from packhorse.producer.cli import app
from packhorse.producer.grants import PURPOSES, grants
from packhorse.producer.partitions import Day, days_from

TODAY = date(2026, 12, 30)


def test_days_follow_each_other_over_the_end_of_a_year() -> None:
    assert [day.name for day in days_from(TODAY, 3)] == [
        "outbox_20261230",
        "outbox_20261231",
        "outbox_20270101",
        "outbox_20270102",
    ]


def test_a_day_reaches_to_the_next_midnight() -> None:
    create, attach = Day(first=date(2026, 12, 31)).statements("packhorse")
    assert create.startswith('CREATE TABLE IF NOT EXISTS "packhorse".outbox_20261231')
    assert attach.endswith("FOR VALUES FROM ('2026-12-31') TO ('2027-01-01')")


def test_the_script_is_one_transaction_and_names_the_schema_asked_for() -> None:
    script = migrate.sql("shop", today=TODAY)
    lines = script.splitlines()
    assert lines[0] == "BEGIN;"
    assert lines[-1] == "COMMIT;"
    assert script.count("BEGIN;") == script.count("COMMIT;") == 1
    assert '"packhorse"' not in script
    assert 'PARTITION OF "shop".outbox DEFAULT' in script
    assert "INSERT INTO shop.alembic_version" in script
    assert "%%" not in script
    assert "%.%" in script


def test_without_roles_the_grants_are_comments() -> None:
    script = migrate.sql("packhorse", today=TODAY)
    assert '-- GRANT SELECT, UPDATE ON "packhorse".relay TO "packhorse_relay";' in script
    granted = [line for line in script.splitlines() if line.startswith("GRANT")]
    assert all(line.startswith("GRANT EXECUTE ON FUNCTION") and "TO PUBLIC;" in line for line in granted)


def test_grants_go_to_the_roles_named() -> None:
    text = "\n".join(grants("shop", [("writer", "app"), ("relay", "mover")]))
    assert 'ON "shop".outbox TO "app"' in text
    assert 'ON "shop".relay TO "mover"' in text
    assert "operator" not in text


def test_a_writer_may_set_neither_order_nor_time_nor_transaction() -> None:
    assert not {"xid", "seq", "created_at"} & set(PURPOSES["writer"].replace(",", " ").split())
    outbox = next(grant for grant in PURPOSES["writer"].split(";") if ".outbox " in grant)
    assert "UPDATE" not in outbox


def test_a_writer_accepts_jobs_and_sets_nothing_of_how_they_stand() -> None:
    job = next(grant for grant in PURPOSES["writer"].split(";") if ".job " in grant)
    inserted, selected = re.findall(r"(?:INSERT|SELECT) \(([^)]*)\)", job)
    words = [set(columns.replace(",", " ").split()) for columns in (inserted, selected)]
    assert (
        not {"state", "attempt", "worker", "token", "lease_until", "result", "accepted_at", "finished_at"}
        & words[0]
    )
    assert not {"input", "checkpoint", "token"} & words[1]
    assert "UPDATE" not in job
    assert "DELETE" not in PURPOSES["writer"]


@pytest.mark.parametrize(
    "roles", [[("reader", "app")], [("writer", "App")], [("writer", 'a" TO b; --')], [("", "")]]
)
def test_a_purpose_or_role_that_is_not_allowed_is_named(roles: list[tuple[str, str]]) -> None:
    with pytest.raises(SettingsError, match=r"allowed"):
        list(grants("packhorse", roles))


def test_sql_needs_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PACKHORSE_DATABASE_URL", raising=False)
    done = CliRunner().invoke(app, ["sql", "--database-schema", "shop", "--grants", "writer=app"])
    assert done.exit_code == 0, done.output
    assert 'CREATE SCHEMA IF NOT EXISTS "shop";' in done.output
    assert 'GRANT USAGE ON SCHEMA "shop" TO "app";' in done.output


def test_a_wrong_grant_names_what_is_allowed() -> None:
    done = CliRunner().invoke(app, ["sql", "--grants", "app"])
    assert isinstance(done.exception, SettingsError)
    assert "writer=app" in str(done.exception)


def test_status_as_json_is_one_object() -> None:
    found = migrate.MigrationStatus(
        schema="packhorse", current=None, head="0001", pending=("0001",), newer=False, partitions_until=None, default_rows=False
    )  # fmt: skip
    assert not found.ready
    assert json.loads(json.dumps(found.as_json())) == {
        "schema": "packhorse",
        "current": None,
        "head": "0001",
        "pending": ["0001"],
        "newer": False,
        "partitions_until": None,
        "default_rows": False,
        "ready": False,
    }
