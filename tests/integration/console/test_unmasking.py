"""One quarantined message, whole: what stands around it, what of it is masked, and that unmasking is on the record."""

import base64
from typing import Any

import psycopg
import pytest
from tests.support.cli import packhorse_started
from tests.support.console_rows import handled, rested
from tests.support.roles import Roles
from tests.support.wait import eventually

from packhorse.core.ids import derived_id

ACTOR = base64.b64encode(b"ann@example.org").decode()
TAIL = base64.b64encode(b'{"x-customer": "Ann Private"}').decode()
HEADERS = (("type", "c2hvcC5Y"), ("actor", ACTOR), ("headers", TAIL), ("x-foreign", ACTOR))
SECRETS = ("ann@example.org", "Ann Private")


def unmasked(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    query = "SELECT act, why, detail::text, message_id FROM packhorse.audit ORDER BY id"
    return connection.execute(query).fetchall()


@pytest.mark.case("X-07")
@pytest.mark.case("O-14")
def test_what_may_name_a_person_is_masked_until_it_is_asked_for_on_the_record(
    run: Any, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a header's value is shown as it is, or unmasked without an audit row, or with a value in that row."""
    message_id = rested(connection, headers=HEADERS, key=b"ann@example.org")
    for form in ((), ("--json",), ("--payload",)):
        found = run("quarantine", "show", message_id, *form)
        assert not [secret for secret in SECRETS if secret in found.out]
    assert dict(run("quarantine", "show", message_id, "--json").json()["headers"]) == {
        "type": "shop.X",
        "actor": "***",
        "headers": "***",
        "x-foreign": "***",
    }
    assert unmasked(connection) == []
    for form in ((), ("--json",)):
        found = run("quarantine", "show", message_id, "--unmask", "--why", "ticket 17", *form)
        assert all(secret in found.out for secret in SECRETS)
    assert unmasked(connection) == [("unmask", "ticket 17", "{}", message_id)] * 2
    assert run("quarantine", "show", message_id, "--unmask").code == 2
    assert run("quarantine", "show", message_id, "--why", "x").code == 2


@pytest.mark.case("O-13")
@pytest.mark.parametrize("purpose", ["viewer", "operator", "admin"])
def test_no_role_may_unmask_that_was_not_given_the_right_by_name(
    roles: Roles, run: Any, connection: psycopg.Connection[Any], purpose: str
) -> None:
    """Fails when a role brings the right to personal fields along, or something is shown before the right is checked."""
    message_id = rested(connection, headers=HEADERS)
    role = roles.make(purpose)
    url = roles.url(role)
    arguments = ("quarantine", "show", message_id, "--unmask", "--why", "x")
    found = run(*arguments, PACKHORSE_DATABASE_URL=url)
    assert found.code == 8
    assert not [secret for secret in SECRETS if secret in found.out + found.err]
    assert unmasked(connection) == []
    connection.execute("UPDATE packhorse.operator SET personal = true WHERE name = %s", (role,))
    assert run(*arguments, PACKHORSE_DATABASE_URL=url).code == 0
    assert len(unmasked(connection)) == 1


@pytest.mark.case("O-14")
def test_nothing_is_shown_whose_record_is_not_committed(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the message is printed before the transaction of its audit row is over."""
    message_id = rested(connection, headers=HEADERS)
    arguments = ("quarantine", "show", message_id, "--unmask", "--why", "x")
    killed = packhorse_started(*arguments, PACKHORSE_DATABASE_URL=database, PACKHORSE_CONSOLE_TIMEOUT="60")
    with psycopg.connect(database) as holder:
        holder.execute("LOCK TABLE packhorse.audit IN SHARE MODE")
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'packhorse.audit'::regclass"
        with killed as process:
            eventually(
                lambda: connection.execute(waits).fetchone() == (1,),
                what="it waits to record that it shows",
                timeout=30,
            )
            process.kill()
            assert process.stdout is not None
            assert process.stdout.read() == ""
    eventually(lambda: connection.execute(waits).fetchone() == (0,), what="its session is gone")
    assert unmasked(connection) == []


@pytest.mark.case("O-09")
def test_what_stands_around_a_message_is_shown(run: Any, connection: psycopg.Connection[Any]) -> None:
    """Fails when followers, follow-ups, redrives of sets or the note of its group are left out, or another's are shown."""
    head = rested(connection)
    connection.execute(
        "INSERT INTO packhorse.parked_key (group_id, topic, key_hash, partition, head_id)"
        " VALUES ('figures', 'airline.aircraft', repeat('0', 32), 0, %s)",
        (head,),
    )
    waiting = [handled(connection, outcome="parked") for _ in range(22)]
    for offset, message_id in enumerate(waiting):
        connection.execute(
            "INSERT INTO packhorse.parked_message (group_id, topic, message_id, key_hash, topic_age, topic_id, partition,"
            " \"offset\", headers) VALUES ('figures', 'airline.aircraft', %s, repeat('0', 32), 0, gen_random_uuid(), 0, %s, '[]')",
            (message_id, offset),
        )
    caused = derived_id(head, "figures", 1)
    for message_id, cause in ((caused, head), (derived_id(head, "figures", 2), waiting[0])):
        connection.execute(
            "INSERT INTO packhorse.outbox (id, aggregatetype, type, schema_version, causation_id)"
            " VALUES (%s, 'figures', 'airline.Figure', '1', %s)",
            (message_id, str(cause)),
        )
    connection.execute(
        "INSERT INTO packhorse.redrive (wanted, rate, stages, previewed_by, expires_at) VALUES ('{}', 1, '{1}', 'ann', now())"
    )
    connection.execute(
        'INSERT INTO packhorse.redrive_member (redrive_id, ordinal, group_id, topic, message_id, partition, "offset", attempt,'
        " redrives, quarantined_at, state, said) VALUES (1, 1, 'figures', 'airline.aircraft', %s, 0, 1, 1, 0, now(), 'left',"
        " 'halted')",
        (head,),
    )
    assert run("quarantine", "note", head, "known").code == 0
    around = run("quarantine", "show", head, "--json").json()["around"]
    assert (around["behind"], around["followers"]) == (22, [str(one) for one in waiting[:20]])
    assert [one["id"] for one in around["caused"]] == [str(caused)]
    assert [(one["redrive"], one["state"], one["said"]) for one in around["in_redrives"]] == [
        (1, "left", "halted")
    ]
    assert around["known"]["notes"] == 1
    people = run("quarantine", "show", head).out
    for text in ("22 messages wait", "and 2 more", str(caused), "halted", "1 note:"):
        assert text in people
    alone = run("quarantine", "show", rested(connection), "--json").json()["around"]
    assert (alone["behind"], alone["followers"], alone["caused"]) == (0, [], [])
    assert "not known" in alone["caused_said"]
