"""The command line's frame: what the help shows, what it imports, how errors end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cli import packhorse
from typer.testing import CliRunner

from packhorse.cli.exits import ExitCode, code_of, secrets_around, told
from packhorse.cli.main import app
from packhorse.cli.mounts import MOUNTS, Panel
from packhorse.core.errors import (
    BrokerUnavailable,
    KeysLocked,
    NotReady,
    OwnershipLost,
    PackhorseError,
    SettingsError,
    UnknownId,
)

PARTS = (
    "packhorse.schemas",
    "packhorse.producer",
    "packhorse.relay",
    "packhorse.processor",
    "packhorse.console",
    "packhorse.local",
)
DRIVERS = (
    "confluent_kafka",
    "psycopg",
    "sqlalchemy",
    "httpx",
    "fastavro",
    "opentelemetry",
    "pydantic_settings",
)


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from packhorse.cli.main import run; run()", *arguments],
        env={**os.environ, "COLUMNS": "100", **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_help_imports_no_part_and_no_driver() -> None:
    script = (
        "import sys; sys.argv = ['packhorse', '--help']\n"
        "from packhorse.cli.main import run\n"
        "try: run()\nexcept SystemExit: pass\n"
        "print('MODULES', *sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    modules = set(found.stdout.partition("MODULES")[2].split())
    assert "packhorse.cli.main" in modules
    assert modules.isdisjoint(PARTS)
    assert modules.isdisjoint(DRIVERS)


def test_the_help_is_a_table_of_contents() -> None:
    help_text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "120"}).output
    places = [help_text.index(f"─ {panel.value} ─") for panel in Panel]
    assert places == sorted(places)
    for mount in MOUNTS:
        assert f"│ {mount.name} " in help_text
    for code in ExitCode:
        assert f"{code.value:>3}  {code.meaning}" in help_text


def test_a_mistyped_command_is_a_usage_error_that_suggests_one() -> None:
    found = run("quarantin")
    assert found.returncode == ExitCode.USAGE
    assert "quarantine" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_settings_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    found = packhorse("--config", tmp_path / "nope.toml", "quarantine", "list")
    assert found.code == ExitCode.USAGE
    assert "nope.toml" in found.err


def test_the_settings_file_that_is_named_is_read(tmp_path: Path) -> None:
    (file := tmp_path / "mine.toml").write_text('database_url = "postgresql://app@127.0.0.1:1/app"\n')
    found = packhorse("--config", file, "quarantine", "list")
    assert found.code == ExitCode.AWAY
    assert "127.0.0.1" in found.err


def test_the_version_is_shown() -> None:
    found = run("--version")
    assert (found.returncode, found.stdout) == (0, "packhorse 0.1.0\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("x"), 2),
        (NotReady("x"), 3),
        (UnknownId("x"), 6),
        (BrokerUnavailable("x"), 4),
        (OwnershipLost("x"), 5),
        (KeysLocked("x"), 1),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: PackhorseError, code: int) -> None:
    assert code_of(error) == code


def test_an_error_is_told_on_inert_lines_without_secrets() -> None:
    text = told(SettingsError("url postgresql://a:s3cr3t@h/d\nand \x1b[2J and hunter2"), ["hunter2"])
    assert text == "packhorse: url postgresql://a:***@h/d\n  and \\x1b[2J and ***"


def test_an_unexpected_error_shows_a_traceback_without_secrets() -> None:
    text = told(ValueError("connect password=hunter2 failed"), [])
    assert "ValueError" in text
    assert "hunter2" not in text


@pytest.mark.case("X-08")
@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("PACKHORSE_DATABASE_URL", "postgresql://app:hun%40ter2@db/app", "hun@ter2"),
        ("PACKHORSE_DATABASE_URL", "postgresql://app:hun@ter2@db/app", "ter2"),
        ("PACKHORSE_DATABASE_URL", "host=db user=app password='hunter two'", "hunter two"),
        ("PACKHORSE_REGISTRY_PASSWORD", "hunter2", "hunter2"),
        ("PACKHORSE_KAFKA_PROPERTIES", '{"ssl.key.password": "hunter2"}', "hunter2"),
    ],
)
def test_a_secret_of_the_environment_is_in_no_error_text(name: str, value: str, hidden: str) -> None:
    """Fails when the handler stops taking the environment's own secrets out of what a driver quotes."""
    secrets = secrets_around({name: value, "PATH": "/bin"})
    assert hidden not in told(SettingsError(f"could not resolve {hidden}"), secrets)


@pytest.mark.case("X-08")
def test_a_secret_of_the_settings_file_is_in_no_error_text(tmp_path: Path) -> None:
    """Fails when the settings file is not read for its secrets."""
    path = tmp_path / "packhorse.toml"
    path.write_text('database_url = "postgresql://app:hun@ter2@db/app"\n')
    secrets = secrets_around({"PACKHORSE_CONFIG": str(path)})
    assert told(SettingsError("no host ter2@db"), secrets) == "packhorse: no host ***@db"


@pytest.mark.case("X-08")
def test_a_secret_from_a_file_is_in_no_error_text(tmp_path: Path) -> None:
    """Fails when the files that PACKHORSE_…_FILE names are not read for their secrets."""
    path = tmp_path / "password"
    path.write_text("hunter2\n")
    secrets = secrets_around({"PACKHORSE_KAFKA_SASL_PASSWORD_FILE": str(path)})
    assert told(SettingsError("login hunter2"), secrets) == "packhorse: login ***"


def in_a_shell(redirection: str, **environ: str) -> "subprocess.CompletedProcess[bytes]":
    """Return how `packhorse --help` ended with its streams as *redirection* has them."""
    command = f'"$0" -m packhorse.cli.main --help {redirection}'
    return subprocess.run(
        ["/bin/sh", "-c", command, sys.executable], capture_output=True, env=os.environ | environ, check=False
    )


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_is_no_reason_to_fail(redirection: str) -> None:
    """Fails when something asks a stream that is None what it is."""
    done = in_a_shell(redirection)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_told_in_one_line() -> None:
    """Fails when the error of a write shows its traceback."""
    done = in_a_shell("> /dev/full")
    assert done.returncode == ExitCode.FAILED
    assert done.stderr == b"packhorse: No space left on device; what was printed or written is not complete\n"


@pytest.mark.parametrize(
    "arguments", [["status", "\udcff"], ["quarantine", "list", "--group", "a\udcff"], ["--config", "\udcff"]]
)
def test_an_argument_that_is_no_text_is_refused_and_shown_inert(arguments: list[str]) -> None:
    """Fails when such bytes go on to a driver, which can't carry them."""
    found = packhorse(*arguments)
    assert found.code == ExitCode.USAGE
    assert found.err.startswith(f"packhorse: argument {len(arguments)}, '")
    assert "\\udcff', is no UTF-8 text" in found.err


def test_a_locale_without_our_letters_gets_escapes() -> None:
    """Fails when a tick or an ellipsis ends the command with a UnicodeEncodeError."""
    done = in_a_shell("", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"PACKHORSE_\\u2026" in done.stdout


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "from packhorse.cli.main import run; run()", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) == ExitCode.FAILED
    assert error == ""
