"""A stack of one's own: up, asked, hurt, down, reset; as a normal user and as root."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from tests.support.people import as_normal_user, cache_for_normal_user, give_to_normal_user, link_or_copy
from tests.support.stack import stack_settings, temporary_folder
from tests.support.wait import eventually

from packhorse.core.errors import SettingsError
from packhorse.local import places, postgres
from packhorse.local.artifacts import ensure_all
from packhorse.local.errors import NotRunning, StackFailed
from packhorse.local.maven import fetch
from packhorse.local.postgres import packaged_binaries
from packhorse.local.processes import Identity, is_alive, kill
from packhorse.local.progress import Silence
from packhorse.local.stack import Stack, held_stack
from packhorse.local.state import load, save

SETPRIV_NEEDED = os.geteuid() == 0 and shutil.which("setpriv") is None


@dataclass(frozen=True)
class Person:
    """A normal user at a shell in a folder of their own."""

    home: Path
    cache: Path

    @property
    def folder(self) -> Path:
        return self.home / ".packhorse"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**kept, "HOME": str(self.home), "PACKHORSE_CACHE_DIR": str(self.cache), "COLUMNS": "200"}

    def argv(self, *arguments: str) -> list[str]:
        return as_normal_user([sys.executable, "-m", "packhorse.cli.main", "dev", *arguments])

    def dev(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*arguments),
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
        )

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv(*arguments), env=self.environment, cwd=self.home, stderr=subprocess.PIPE, text=True
        )

    def processes(self) -> dict[str, Identity]:
        return dict(load(self.folder).processes)

    def states(self) -> tuple[int, dict[str, str]]:
        status = self.dev("status", "--json")
        return status.returncode, {each["service"]: each["state"] for each in json.loads(status.stdout)}


@pytest.fixture(scope="module")
def person() -> Iterator[Person]:
    if SETPRIV_NEEDED:
        pytest.skip("root needs setpriv to become a normal user")
    with temporary_folder() as home:
        cache = stack_settings(home).cache
        ensure_all(cache, fetch, Silence())
        give_to_normal_user(home)
        person = Person(home=home, cache=cache_for_normal_user(cache, home))
        yield person
        person.dev("down")


@pytest.fixture
def folder() -> Iterator[Path]:
    with temporary_folder() as folder:
        yield folder / "stack"


@pytest.fixture(scope="module")
def seasoned() -> Iterator[Stack]:
    """Provide a stack with a Postgres alone that was up before and is down now; tests leave it so."""
    with temporary_folder() as folder:
        with held_stack(stack_settings(folder, services=("postgres",))) as stack:
            pass
        yield stack


def data_of(stack: Stack) -> Path:
    return Path(load(stack.folder).postgres_home or "") / "data"


def leftovers(folder: Path) -> list[str]:
    """Return the command lines of processes that work in *folder*."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to hand Postgres to another account")
needs_proc = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for orphans in /proc")


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_start_that_is_broken_off_leaves_nothing_running(person: Person, number: signal.Signals) -> None:
    """Fails when services are started detached, or when only KeyboardInterrupt is thought of."""
    with person.begin("up") as starting:
        eventually(
            lambda: person.folder.exists() and person.processes(), what="a first service runs", timeout=30
        )
        starting.send_signal(number)
        starting.communicate(timeout=60)
    assert starting.returncode != 0
    eventually(lambda: not leftovers(person.folder), what="no process of the stack is left", timeout=30)


def test_a_day_with_a_stack(person: Person) -> None:
    first = person.dev("up")
    assert first.returncode == 0, first.stderr
    assert 'eval "$(packhorse dev env)"' in first.stdout
    assert person.states() == (0, {"postgres": "running", "kafka": "running", "registry": "running"})

    before = person.processes()
    second = person.dev("up")
    assert second.returncode == 0
    assert "All of it is up already" in second.stdout
    assert person.processes() == before

    variables = json.loads(person.dev("env", "--json").stdout)
    exported = person.dev("env").stdout.splitlines()
    assert exported == [f"export {name}={value}" for name, value in variables.items()]
    with psycopg.connect(variables["PACKHORSE_DATABASE_URL"], autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        settings = "SELECT current_setting('fsync'), current_setting('wal_level')"
        assert connection.execute(settings).fetchone() == ("on", "logical")
    admin = AdminClient({"bootstrap.servers": variables["PACKHORSE_KAFKA_BOOTSTRAP_SERVERS"]})
    assert len(admin.list_topics(timeout=10).brokers) == 1
    assert "ready to accept connections" in person.dev("logs", "postgres").stdout

    kill(before["postgres"])
    assert person.states() == (1, {"postgres": "dead", "kafka": "running", "registry": "running"})
    assert person.dev("env").returncode == 3
    mended = person.dev("up")
    assert mended.returncode == 0, mended.stderr
    assert f"postgres (pid {before['postgres'].pid}) is gone without having been stopped" in mended.stderr
    after = person.processes()
    assert {name for name in before if before[name] != after[name]} == {"postgres"}
    with psycopg.connect(variables["PACKHORSE_DATABASE_URL"]) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)

    assert person.dev("down").returncode == 0
    assert person.states() == (3, dict.fromkeys(before, "stopped"))
    assert not any(is_alive(process) for process in after.values())
    assert "Nothing runs" in person.dev("down").stdout

    assert person.dev("reset", "--yes").returncode == 0
    assert sorted(path.name for path in person.folder.iterdir()) == [".gitignore", "lock"]


def test_two_stacks_stand_side_by_side_and_end_with_their_block(seasoned: Stack, folder: Path) -> None:
    remembered = seasoned.ports["postgres"]
    with (
        held_stack(seasoned.settings) as one,
        held_stack(stack_settings(folder, services=("postgres",))) as other,
    ):
        assert one.ports["postgres"] == remembered != other.ports["postgres"]
        assert Stack(seasoned.settings).up() == [], "up when it is up does nothing"
        process = one.process("postgres")
    assert not is_alive(process)
    with pytest.raises(NotRunning, match=r"postgres does not run in .*; start it with `packhorse dev up`"):
        one.process("postgres")


def test_a_failed_start_shows_the_end_of_the_log_and_leaves_nothing(folder: Path) -> None:
    settings = stack_settings(folder, services=("postgres",), postgres={"shared_buffers": "'a lot'"})
    with pytest.raises(
        StackFailed, match=r"postgres ended during its start(.|\n)*invalid value .*shared_buffers"
    ):
        Stack(settings).up()
    assert load(folder).processes == {}
    assert not leftovers(folder)


def test_a_port_that_somebody_took_is_left_to_them(seasoned: Stack) -> None:
    port = seasoned.ports["postgres"]
    with socket.create_server(("127.0.0.1", port)), held_stack(seasoned.settings) as stack:
        assert stack.ports["postgres"] != port


def test_a_pid_that_another_program_has_by_now_is_not_taken_for_ours(seasoned: Stack) -> None:
    """Fails when the state file's pid alone says that a service runs."""
    ours = Identity(pid=os.getpid(), born="before the reboot")
    save(seasoned.folder, load(seasoned.folder).with_process("postgres", ours))
    (data_of(seasoned) / "postmaster.pid").write_text(f"{os.getpid()}\n")
    with held_stack(seasoned.settings) as stack:
        assert stack.process("postgres").pid != os.getpid()


def test_a_folder_without_a_postgres_is_named(folder: Path) -> None:
    settings = stack_settings(folder, services=("postgres",), postgres_binaries=folder)
    with pytest.raises(SettingsError, match=r"--postgres-bin .*: no initdb there"):
        Stack(settings).up()


def test_data_of_another_version_is_named_with_the_way_out(seasoned: Stack) -> None:
    version = data_of(seasoned) / "PG_VERSION"
    ours = version.read_text()
    version.write_text("15\n")
    try:
        with pytest.raises(
            StackFailed, match=r"is of Postgres 15, and the programs in .* are of \d+; name the right"
        ):
            seasoned.up()
    finally:
        version.write_text(ours)


@only_root
def test_root_lends_out_the_packaged_postgres_when_it_lies_in_a_closed_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = folder / "closed"
    package = packaged_binaries().parent.parent
    closed.mkdir(parents=True, mode=0o700)
    for part in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, closed / part.name, symlinks=True, copy_function=link_or_copy)
    monkeypatch.setattr(places, "SHARED", folder / "shared")
    monkeypatch.setattr(postgres, "packaged_binaries", lambda: closed / package.name / "pginstall" / "bin")
    with held_stack(stack_settings(folder / "stack", services=("postgres",))) as stack:
        assert Path(f"/proc/{stack.process('postgres').pid}/exe").resolve().is_relative_to(folder / "shared")


@only_root
def test_root_puts_postgres_elsewhere_when_its_folder_is_closed(folder: Path) -> None:
    folder.parent.chmod(0o700)
    settings = stack_settings(folder, services=("postgres",))
    with held_stack(settings) as stack:
        home = Path(load(folder).postgres_home or "")
        assert not home.is_relative_to(folder)
        assert home.is_dir()
    stack.reset()
    assert not home.exists()
