"""
A real PgBouncer in transaction mode before a database server.

    with pgbouncer(server_url) as pooler:
        url = pooler.url(database_url)      # the same database, through the pooler

It is looked for on the path, then in the cache of downloads. Where it is on neither, Debian's package and the libraries that
it needs are fetched and unpacked into that cache, which takes no rights; root may have to fetch the lists of packages first.
`find_pgbouncer` raises `NoPgBouncer`, which says how to get it, where none of that goes.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
from tests.support.proxy import free_port
from tests.support.stack import temporary_folder
from tests.support.wait import eventually

from packhorse.local.places import cache_folder
from packhorse.local.users import unprivileged_account

HOW = "install PgBouncer (Debian, Ubuntu: `apt-get install pgbouncer`; macOS: `brew install pgbouncer`)"
HARSH = {
    "pool_mode": "transaction",
    "default_pool_size": "2",
    "server_round_robin": "1",  # each transaction is on the other one than the last
}
"""PgBouncer's own settings, but for those that make it lend another server each time."""


class NoPgBouncer(Exception):
    """There is none on this machine; the text says how to get it."""


def find_pgbouncer() -> Path:
    """
    Return the program; fetch it when it isn't there.

    Raises:
        NoPgBouncer: It is not there and can't be fetched.
    """
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is not None:
        return Path(found)
    folder = cache_folder(os.environ, Path.home()) / "pgbouncer"
    program = folder / "usr/sbin/pgbouncer"
    if not program.exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
            raise NoPgBouncer(HOW)
        try:
            _fetch(folder)
        except (OSError, subprocess.SubprocessError) as error:
            raise NoPgBouncer(f"Debian's package can't be fetched ({error}); {HOW}") from error
    return program


def _fetch(folder: Path) -> None:
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _unpack(partial, "pgbouncer")
    except subprocess.CalledProcessError:
        if os.geteuid() != 0:
            raise
        _run("apt-get", "update", "-qq")
        _unpack(partial, "pgbouncer")
    depends = _run("apt-cache", "depends", "--important", "pgbouncer").split()
    _unpack(partial, *(name for name in depends if name.startswith("lib") and name != "libc6"))
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def _unpack(folder: Path, *packages: str) -> None:
    _run("apt-get", "download", *packages, cwd=folder)
    for package in folder.glob("*.deb"):
        _run("dpkg", "-x", str(package), str(folder))
        package.unlink()


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


class Pooler:
    """A PgBouncer that runs."""

    def __init__(self, folder: Path, program: Path, target: str, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self._program = program
        self._target = urlsplit(target)
        self._settings = {**HARSH, **settings}
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        user = unquote(self._target.username or "postgres")
        self._users = {user: unquote(self._target.password or "")}
        self._admin = user

    def url(self, database_url: str) -> str:
        """Return *database_url* through the pooler."""
        parts = urlsplit(database_url)
        user, _, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}@127.0.0.1:{self.port}").geturl()

    def admit(self, user: str) -> None:
        """Let another database role in."""
        self._users[user] = ""
        self._write()
        self.command("RELOAD")

    def command(self, text: str) -> list[tuple[Any, ...]]:
        """Run a command of the pooler's own console."""
        url = f"postgresql://{self._admin}@127.0.0.1:{self.port}/pgbouncer"
        with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as console:
            cursor = console.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

    def lend_both(self, url: str) -> None:
        """Make the pooler hold both of its server connections to the database of *url*, by borrowing them at once."""
        with psycopg.connect(self.url(url)) as one, psycopg.connect(self.url(url)) as other:
            pids = {pid for each in (one, other) for (pid,) in each.execute("SELECT pg_backend_pid()")}
            assert len(pids) == 2

    def cut_clients(self, url: str) -> None:
        """Drop all connections to the database of *url*, the clients' and the servers', and take new ones."""
        name = urlsplit(url).path.strip("/")
        self.command(f"KILL {name}")
        self.command(f"RESUME {name}")

    def start(self) -> None:
        """Start it; returns when it answers."""
        self._write()
        account = unprivileged_account()
        who: dict[str, Any] = {}
        if account is not None:
            who = {"user": account.user, "group": account.group, "extra_groups": []}
            os.chown(self._folder, account.user, account.group)
        libraries = ":".join(str(path) for path in self._program.parents[2].glob("**/lib/*-linux-*"))
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._program), "-q", str(self._folder / "pgbouncer.ini")],
                env={"LD_LIBRARY_PATH": libraries} if self._program.is_relative_to(self._folder) else {},
                stdout=log,
                stderr=log,
                **who,
            )
        eventually(self._answers, what=f"PgBouncer answers; {self._folder / 'log'}")

    def kill(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError((self._folder / "log").read_text())
        try:
            return bool(self.command("SHOW VERSION"))
        except psycopg.OperationalError as error:
            raise AssertionError(str(error)) from error

    def _write(self) -> None:
        users = "".join(f'"{name}" "{password}"\n' for name, password in self._users.items())
        (self._folder / "users.txt").write_text(users)
        lines = [
            "[databases]",
            f"* = host={self._target.hostname} port={self._target.port or 5432}",
            "[pgbouncer]",
            "listen_addr = 127.0.0.1",
            f"listen_port = {self.port}",
            "unix_socket_dir =",
            "auth_type = trust",
            f"auth_file = {self._folder / 'users.txt'}",
            f"admin_users = {self._admin}",
            *(f"{name} = {value}" for name, value in self._settings.items()),
        ]
        (self._folder / "pgbouncer.ini").write_text("\n".join(lines) + "\n")


@contextmanager
def pgbouncer(server_url: str, **settings: str) -> Iterator[Pooler]:
    """
    Run a PgBouncer before the server of *server_url*; *settings* are its own, over those of HARSH.

    Raises:
        NoPgBouncer: There is none on this machine.
    """
    program = find_pgbouncer()
    with temporary_folder() as folder:
        if program.parts[-3:-1] == ("usr", "sbin") and program.parents[2] != Path("/"):
            shutil.copytree(program.parents[2], folder / "program")  # root's own cache is closed to others
            program = folder / "program/usr/sbin/pgbouncer"
        pooler = Pooler(folder, program, server_url, settings)
        try:
            pooler.start()
            yield pooler
        finally:
            pooler.kill()
