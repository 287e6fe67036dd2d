import subprocess
import sys

import pytest
from tests.support.accounts import AmountMoved

from packhorse.core.errors import SettingsError, UsageError
from packhorse.core.message import MAX_TEXT
from packhorse.producer import Outbox

MOVED = AmountMoved(account="a", amount=1)


@pytest.mark.parametrize(
    ("line", "absent"),
    [
        ("import packhorse.producer", "fastavro psycopg sqlalchemy alembic opentelemetry"),
        ("from packhorse.producer import Outbox; Outbox()", "psycopg sqlalchemy alembic opentelemetry"),
        ("import packhorse.producer.postgres", "sqlalchemy alembic opentelemetry"),
        ("import packhorse.producer.cli", "fastavro psycopg sqlalchemy alembic opentelemetry pydantic"),
    ],
)
def test_nothing_is_imported_that_is_not_used(line: str, absent: str) -> None:
    code = f"import sys\n{line}\nprint(*sorted(set({absent.split()!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_every_name_of_the_part_is_there_and_no_other() -> None:
    import packhorse.producer

    for name in packhorse.producer.__all__:
        assert getattr(packhorse.producer, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Outboxes'"):
        _ = packhorse.producer.Outboxes


def test_an_outbox_is_a_value_and_shows_no_more_than_its_settings() -> None:
    assert Outbox(origin="a") == Outbox(origin="a") != Outbox(origin="b")
    assert "_writer" not in repr(Outbox())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"schema": "Public"}, "database schema 'Public'"),
        ({"max_payload_bytes": 0}, "max_payload_bytes=0"),
        ({"origin": ""}, "origin of 0"),
        ({"origin": "x" * (MAX_TEXT + 1)}, "origin of 513"),
    ],
)
def test_an_outbox_that_could_not_write_can_not_be_made(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Outbox(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, "postgresql://localhost/db", object()])
def test_what_is_no_connection_is_refused(wrong: object) -> None:
    with pytest.raises(
        UsageError, match=f"{type(wrong).__name__} is not allowed here; pass a psycopg Connection"
    ):
        Outbox().emit(wrong, MOVED, key="a")  # type: ignore[arg-type]


def test_an_engine_is_no_connection() -> None:
    import sqlalchemy

    engine = sqlalchemy.create_engine("postgresql+psycopg://")
    with pytest.raises(UsageError, match="Engine is not allowed here"):
        Outbox().emit(engine, MOVED, key="a")  # type: ignore[arg-type]


def test_nothing_to_write_needs_no_connection() -> None:
    assert Outbox().emit_many(None, []) == []  # type: ignore[arg-type]
    Outbox().lock_keys(None, [])  # type: ignore[arg-type]
