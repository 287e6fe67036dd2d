"""The doctor on real tables: runs that nobody works on, failures that nobody has seen, rights that end."""

import psycopg
import pytest
from tests.support.cli import packhorse
from tests.support.console_rows import rested
from tests.support.console_stages import Stages


@pytest.mark.case("O-04")
def test_the_doctor_names_what_people_began_and_nobody_sees_to(database: str) -> None:
    """Fails when the run of a killed runner looks like one at work, or a failure that nobody acknowledged is not counted."""
    with psycopg.connect(database, autocommit=True) as connection:
        stages = Stages(connection)
        message_id = rested(connection)
        live, dead = stages.redrive(message_id), stages.redrive(message_id)
        stages.set(
            "UPDATE packhorse.redrive SET lease_until = now() - interval '5 minutes', changed_at = now() - interval '5 minutes'"
            " WHERE id = %s",
            dead,
        )
        stages.set(
            "INSERT INTO packhorse.operator (kind, name, role, made_by, expires_at) VALUES"
            " ('role', 'ann', 'viewer', 'test', now() + interval '2 days'), ('role', 'bob', 'viewer', 'test', NULL)"
        )
        stages.set("SELECT packhorse.fold_quarantine()")
    found = {
        each["check"]: each
        for each in packhorse("doctor", "--json", PACKHORSE_DATABASE_URL=database).json()["checks"]
    }
    assert found[f"redrive {dead}"]["verdict"] == "failed"
    assert f"packhorse redrive resume {dead}" in found[f"redrive {dead}"]["next_step"]
    assert f"redrive {live}" not in found
    assert found["failures"]["found"].startswith("1 groups of failures")
    assert found["operators"]["found"] == "rights that end: role ann in 47 h"
    assert "upkeep" not in found, "the question itself went well"
