"""`packhorse schemas` as a user runs it, on a real registry and a real database."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.databases import unique_name
from tests.support.schemas import SHOP, record, write_folder

from packhorse.local.settings import Endpoints
from packhorse.producer.jobs.rows import REFERENCE

ROOT = Path(__file__).parents[3]
Done = subprocess.CompletedProcess[str]


def packhorse(*arguments: str, environ: dict[str, str] | None = None, cwd: Path | None = None) -> Done:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PACKHORSE_")}
    return subprocess.run(
        [sys.executable, "-m", "packhorse.cli.main", "schemas", *arguments],
        env={**clean, **(environ or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def shop_of_its_own(root: Path) -> tuple[Path, str]:
    """Write the shop's folder below *root* in a namespace that nobody else has; return it and the namespace."""
    name = unique_name("shop")
    for file in SHOP.rglob("*.avsc"):
        subject = file.parent.name.replace("shop.", f"{name}.")
        text = (
            file.read_text()
            .replace("shop.Money", f"{name}.Money")
            .replace('"namespace": "shop"', f'"namespace": "{name}"')
        )
        (root / subject).mkdir(parents=True, exist_ok=True)
        (root / subject / file.name).write_text(text)
    return root, name


def environ_of(stack: Endpoints, database: str) -> dict[str, str]:
    return {"PACKHORSE_REGISTRY_URL": stack.registry_url, "PACKHORSE_DATABASE_URL": database}


def table(database: str) -> dict[tuple[str, int], tuple[int, str]]:
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT subject, version, schema_id, schema FROM packhorse.schema_version"
        ).fetchall()
    return {(subject, version): (schema_id, schema) for subject, version, schema_id, schema in rows}


@pytest.mark.case("S-02")
def test_register_puts_registry_and_table_in_step_and_can_be_repeated(
    tmp_path: Path, stack: Endpoints, database: str
) -> None:
    """Fails when references are registered after what refers to them, or a version of our folder is taken for the registry's."""
    folder, name = shop_of_its_own(tmp_path)
    environ = environ_of(stack, database)
    first = packhorse("register", "--avro-dir", str(folder), environ=environ)
    assert first.returncode == 0, first.stderr
    assert f"registered {name}.orders-{name}.OrderPlaced v2 → id " in first.stdout
    kept = table(database)
    assert len(kept) == 7
    assert len({schema_id for schema_id, _ in kept.values()}) == 7
    assert (REFERENCE.subject, 1) in kept, "that of every job's message"
    assert f"{name}.Money" in kept[f"{name}.orders-{name}.OrderPlaced", 2][1], (
        "the table's text needs no other"
    )
    again = packhorse("register", "--avro-dir", str(folder), "--json", environ=environ)
    assert again.returncode == 0, again.stderr
    outcomes = json.loads(again.stdout)["schemas"]
    assert {one["done"] for one in outcomes} == {"unchanged"}
    assert {(one["subject"], one["version"]): one["id"] for one in outcomes} == {
        key: row[0] for key, row in kept.items()
    }
    listed = packhorse("list", "--avro-dir", str(folder), "--ids", "--json", environ=environ)
    assert {(one["subject"], one["version"]): one["id"] for one in json.loads(listed.stdout)["schemas"]} == {
        key: row[0] for key, row in kept.items() if key[0] != REFERENCE.subject
    }


def test_another_database_gets_the_same_ids(
    tmp_path: Path, stack: Endpoints, database: str, empty_database: str
) -> None:
    folder, _ = shop_of_its_own(tmp_path)
    assert (
        packhorse("register", "--avro-dir", str(folder), environ=environ_of(stack, database)).returncode == 0
    )
    with psycopg.connect(empty_database) as connection:
        connection.execute("CREATE SCHEMA other")
        connection.execute(
            "CREATE TABLE other.schema_version (subject text, version int, fingerprint text NOT NULL, schema_id int NOT NULL, "
            "schema text NOT NULL, registered_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (subject, version))"
        )
    environ = {**environ_of(stack, empty_database), "PACKHORSE_DATABASE_SCHEMA": "other"}
    done = packhorse("register", "--avro-dir", str(folder), environ=environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("recorded ") == 7
    with psycopg.connect(empty_database) as connection:
        rows = connection.execute("SELECT subject, version, schema_id FROM other.schema_version").fetchall()
    assert {(subject, version): schema_id for subject, version, schema_id in rows} == {
        key: row[0] for key, row in table(database).items()
    }


def test_register_says_what_is_missing_or_away(tmp_path: Path, stack: Endpoints, empty_database: str) -> None:
    folder, _ = shop_of_its_own(tmp_path)
    arguments = ("register", "--avro-dir", str(folder))
    no_table = packhorse(*arguments, environ=environ_of(stack, empty_database))
    assert (no_table.returncode, "run `packhorse migrate up`" in no_table.stderr) == (3, True)
    nothing = packhorse(*arguments)
    assert (nothing.returncode, "PACKHORSE_REGISTRY_URL is not set" in nothing.stderr) == (2, True)
    away = packhorse(*arguments, environ=environ_of(stack, "postgresql://app:s3cr3t@127.0.0.1:1/app"))
    assert (away.returncode, "the database did not answer" in away.stderr, "s3cr3t" in away.stderr) == (
        4,
        True,
        False,
    )
    wrong = packhorse(*arguments, environ=environ_of(stack, "nonsense"))
    assert (wrong.returncode, "PACKHORSE_DATABASE_URL" in wrong.stderr) == (
        2,
        True,
    )
    for done in (no_table, nothing, away, wrong):
        assert "Traceback" not in done.stderr


def test_a_registry_that_is_away_is_named_and_nothing_is_recorded(tmp_path: Path, database: str) -> None:
    folder, _ = shop_of_its_own(tmp_path)
    environ = {"PACKHORSE_REGISTRY_URL": "http://127.0.0.1:1", "PACKHORSE_DATABASE_URL": database}
    done = packhorse("register", "--avro-dir", str(folder), "--json", environ=environ)
    assert (done.returncode, json.loads(done.stdout)) == (4, {"schemas": []})
    assert "the registry at http://127.0.0.1:1 did not answer" in done.stderr
    assert table(database) == {}


@pytest.mark.case("S-04")
def test_check_and_register_stop_at_a_breaking_change(
    tmp_path: Path, stack: Endpoints, database: str
) -> None:
    """The release's build fails, and names field and rule. Fails when `register` does not check first."""
    name = unique_name("made")
    subject = f"test.{name}-test.Made"
    write_folder(tmp_path, {subject: [record(("a", "int")), record(("a", "string"), ("b", "int"))]})
    checked = packhorse("check", "--avro-dir", str(tmp_path))
    assert checked.returncode == 1
    assert (
        f"{subject}: v2 can't read what v1 wrote: a: int was written, string is read (rule type)"
        in checked.stderr
    )
    assert "b: field b was not written and has no default (rule missing-default)" in checked.stderr
    as_json = packhorse("check", "--avro-dir", str(tmp_path), "--json")
    assert as_json.returncode == 1
    found = json.loads(as_json.stdout)
    assert [
        (one["subject"], one["reader"], one["writer"], one["path"], one["rule"]) for one in found["findings"]
    ] == [
        (subject, 2, 1, "a", "type"),
        (subject, 2, 1, "b", "missing-default"),
    ]
    registered = packhorse("register", "--avro-dir", str(tmp_path), environ=environ_of(stack, database))
    assert registered.returncode == 1
    assert table(database) == {}


def test_check_is_quiet_about_what_is_well_and_names_a_broken_file(tmp_path: Path) -> None:
    good = packhorse("check", "--avro-dir", str(SHOP))
    assert (good.returncode, good.stdout) == (0, "6 versions of 4 subjects: all backward compatible\n")
    write_folder(tmp_path, {"test.things-test.Made": record(("a", "nonsense"))})
    broken = packhorse("check", "--avro-dir", str(tmp_path))
    assert broken.returncode == 1
    assert "v1.avsc: a: type 'nonsense' is not known" in broken.stderr
    missing = packhorse("check", "--avro-dir", str(tmp_path / "gone"))
    assert (missing.returncode, "avro_dir" in missing.stderr) == (2, True)
    forward = packhorse("check", "--avro-dir", str(SHOP), "--compatibility", "full")
    assert (forward.returncode, "v1 can't read what v2 wrote" in forward.stderr) == (1, True)


def test_generate_writes_checks_and_leaves_alone(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "messages.py"
    arguments: tuple[Any, ...] = ("generate", "--avro-dir", str(SHOP), "--messages-file", str(target))
    stale = packhorse(*arguments, "--check")
    assert (stale.returncode, target.exists(), f"{target} is stale" in stale.stderr) == (1, False, True)
    assert packhorse(*arguments).stdout == f"{target}: 3 message types, written\n"
    assert target.read_text() == (ROOT / "tests/support/shop.py").read_text()
    assert packhorse(*arguments, "--check").returncode == 0
    before = target.stat()
    assert packhorse(*arguments).stdout == f"{target}: 3 message types, unchanged\n"
    assert target.stat().st_mtime_ns == before.st_mtime_ns
    target.write_text(target.read_text() + "# by hand\n")
    assert packhorse(*arguments, "--check").returncode == 1
    assert [file.name for file in target.parent.iterdir()] == ["messages.py"]
    unnamed = packhorse("generate", "--avro-dir", str(SHOP), cwd=tmp_path)
    assert (unnamed.returncode, "pass --messages-file" in unnamed.stderr) == (2, True)


def test_the_settings_file_says_where_things_are(tmp_path: Path) -> None:
    (tmp_path / "packhorse.toml").write_text(
        f'[schemas]\navro_dir = "{SHOP}"\nmessages_file = "messages.py"\n'
    )
    assert packhorse("generate", cwd=tmp_path).returncode == 0
    assert (tmp_path / "messages.py").read_text() == (ROOT / "tests/support/shop.py").read_text()


def test_list_shows_what_is_personal_and_what_refers_to_what() -> None:
    done = packhorse("list", "--avro-dir", str(SHOP))
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["subject", "version", "personal", "fields", "refers", "to"]
    assert lines[-1].split(maxsplit=2) == [
        "shop.orders-shop.OrderPlaced",
        "2",
        "email, delivery.street, phone  shop.Money v2",
    ]
