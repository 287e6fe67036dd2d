"""Failed connections and refused settings, through every command: no password in anything that is printed."""

from pathlib import Path

import pytest
from tests.support.cli import Ran, packhorse
from tests.support.commands import NEEDED, commands

SECRET = "hunter2xyzzy"
CLOSED = "127.0.0.1:1"
AWAY = {
    "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": CLOSED,
    "PACKHORSE_REGISTRY_URL": f"http://{CLOSED}",
    "PACKHORSE_REGISTRY_USER": "app",
    "PACKHORSE_NAMESPACE": "airline",
    "PACKHORSE_CONSOLE_TIMEOUT": "1",
    "PACKHORSE_KAFKA_PROPERTIES": (
        '{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "app"}'
    ),
}
URLS = {
    "encoded": f"postgresql://app:{SECRET}@{CLOSED}/app",
    "at sign": f"postgresql://app:x@{SECRET}@{CLOSED}/app",
    "slash": f"postgresql://app:x/{SECRET}@{CLOSED}/app",
    "percent": f"postgresql://app:%{SECRET}@{CLOSED}/app",
    "keywords": f"host=127.0.0.1 port=1 user=app password={SECRET}",
    "broken": f"postgresqll://app:{SECRET}@{CLOSED}/app",
}
DATABASE_COMMANDS = [path for path, _ in commands() if path.split()[0] not in {"dev", "topics"}]


def run(path: str, environ: dict[str, str]) -> Ran:
    return packhorse(*path.split(), *NEEDED.get(path, ()), **environ)


def assert_silent(found: Ran) -> None:
    told = found.out + found.err
    assert SECRET not in told
    assert SECRET[:6] not in told
    assert "Traceback" not in told
    assert "unexpected error" not in told


@pytest.mark.case("X-08")
@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
@pytest.mark.parametrize("path", DATABASE_COMMANDS)
def test_no_command_tells_the_databases_password(path: str, url: str) -> None:
    """Fails when a command prints the driver's text, or its settings, as they are."""
    environ = AWAY | {"PACKHORSE_DATABASE_URL": url, "PACKHORSE_REGISTRY_PASSWORD": SECRET}
    assert_silent(run(path, environ))


@pytest.mark.case("X-08")
@pytest.mark.parametrize(
    "path", [path for path, _ in commands() if path.split()[0] != "dev" and path != "topics apply"]
)
def test_no_command_tells_a_secret_that_comes_from_a_file(path: str, tmp_path: Path) -> None:
    """Fails when what is read from a PACKHORSE_…_FILE is printed."""
    (url := tmp_path / "url").write_text(URLS["at sign"] + "\n")
    (password := tmp_path / "password").write_text(SECRET)
    files = {
        "PACKHORSE_DATABASE_URL_FILE": str(url),
        "PACKHORSE_REGISTRY_PASSWORD_FILE": str(password),
        "PACKHORSE_KAFKA_SASL_PASSWORD_FILE": str(password),
    }
    assert_silent(run(path, AWAY | files))


@pytest.mark.case("X-08")
@pytest.mark.parametrize(
    "refused",
    [
        {"PACKHORSE_KAFKA_PROPERTIES": f'{{"sasl.password": "{SECRET}"}}'},
        {"PACKHORSE_KAFKA_PROPERTIES": f'{{"sasl.password": "{SECRET}"'},
        {"PACKHORSE_REGISTRY_URL": f"http://app:{SECRET}@{CLOSED}"},
        {"PACKHORSE_DATABASE_SCHEMA": f"postgresql://app:{SECRET}@{CLOSED}/x"},
    ],
)
def test_a_setting_that_is_refused_does_not_tell_its_secret(refused: dict[str, str]) -> None:
    """Fails when an error about a setting quotes a value that holds a secret."""
    environ = AWAY | {"PACKHORSE_DATABASE_URL": "postgresql://app@127.0.0.1:1/app"} | refused
    for path in ("status", "relay run", "doctor"):
        found = run(path, environ)
        assert found.code != 0
        assert_silent(found)


def test_a_password_in_a_flag_is_refused() -> None:
    found = packhorse("quarantine", "list", "--database-url", URLS["encoded"])
    assert found.code == 2
    assert "holds a password" in found.err
    assert_silent(found)
