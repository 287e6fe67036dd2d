"""A connector's configuration: what may be chosen, what is refused, and that no password is in it."""

import json
from typing import Any

import pytest
from tests.support.cli import packhorse

from packhorse.core.errors import SettingsError
from packhorse.core.message import HEADER_COLUMNS
from packhorse.relay.debezium import config as debezium
from packhorse.relay.debezium.config import Connector, Source

SOURCE = Source(host="db", port=5432, database="app", user="reader")
GIVEN: dict[str, Any] = {
    "name": "n",
    "schema": "packhorse",
    "namespace": "airline",
    "slot": "debezium_packhorse",
    "publication": "packhorse_packhorse",
}


def test_every_header_of_the_contract_is_placed_in_its_order() -> None:
    """Fails when core's HEADER_COLUMNS and the router's placement drift apart."""
    config = debezium.configuration(Connector(**GIVEN), SOURCE)
    placed = config["transforms.outbox.table.fields.additional.placement"].split(",")
    assert [("id", "id"), *[(one.split(":")[2], one.split(":")[0]) for one in placed]] == list(HEADER_COLUMNS)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": "a b"}, "--name 'a b' is not allowed"),
        ({"slot": "Debezium"}, "slot 'Debezium' is not allowed"),
        ({"slot": "packhorse_packhorse_0_5"}, "are those of the relay's own slots"),
        ({"publication": "p;"}, "publication 'p;' is not allowed"),
        ({"password": "s3cret"}, "--password-from is no reference"),
        ({"password": "${s3cret}"}, "--password-from is no reference"),
        ({"heartbeat": 0.01}, "--heartbeat 0.01 is not allowed: 0 for none, or 0.1 to 3600"),
        ({"heartbeat": float("nan")}, "--heartbeat nan is not allowed"),
    ],
)
def test_what_is_not_allowed_is_named_and_no_secret_told(change: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Connector(**{**GIVEN, **change})
    assert told in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_without_heartbeats_the_driver_does_not_switch_them_on_again() -> None:
    """Fails when `connector_and_driver` stays: it makes heartbeats of its own, and their topic is not there."""
    connector = Connector(**GIVEN, heartbeat=0)
    config = debezium.configuration(connector, SOURCE)
    assert (config["heartbeat.interval.ms"], config["lsn.flush.mode"]) == ("0", "connector")
    assert connector.heartbeat_topic is None


def printed(url: str, *arguments: str) -> Any:
    return packhorse(
        "relay", "debezium-config", "--namespace", "airline", *arguments, PACKHORSE_DATABASE_URL=url
    )


@pytest.mark.case("X-08")
@pytest.mark.parametrize("form", ["json", "properties", "sql"])
def test_the_password_is_printed_in_no_form(form: str) -> None:
    """Fails when the database's URL, and not a reference, fills in the password."""
    ran = printed(
        "postgresql://reader:s3cret@db:5433/app?sslmode=verify-full&sslrootcert=/ca.pem", "--format", form
    )
    assert ran.code == 0
    assert "s3cret" not in ran.out + ran.err
    if form == "json":
        config = json.loads(ran.out)["config"]
        assert config["database.password"] == "${env:PACKHORSE_DATABASE_PASSWORD}"
        assert (config["database.hostname"], config["database.port"]) == ("db", "5433")
        assert (config["database.sslmode"], config["database.sslrootcert"]) == ("verify-full", "/ca.pem")
        assert "__debezium-heartbeat.packhorse-outbox" in ran.err


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql:///app?user=reader", "the database's URL names none"),
        ("postgresql://reader@a,b/app", "the database's URL names 'a,b'"),
        ("host=/var/run user=reader dbname=app", "the database's URL names '/var/run'"),
        ("postgresql://reader@db", "names no database"),
        ("postgresql://db/app", "names no user"),
    ],
)
def test_a_url_that_a_java_client_can_not_use_is_refused(url: str, told: str) -> None:
    ran = printed(url)
    assert ran.code == 2
    assert told in ran.err
