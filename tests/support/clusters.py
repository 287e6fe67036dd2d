"""
Database servers to dump, copy, promote and upgrade; each has a system identifier of its own, unless it is a copy.

    with clusters() as new:
        old = new()                  # made by initdb, running
        other = new(clone_of=old)    # the files of a stopped one
        standby = new(standby_of=old)

Programs are those of the `dev` extra: pg_dump, pg_basebackup, pg_upgrade and all others beside the server.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.support.proxy import free_port
from tests.support.stack import temporary_folder
from tests.support.wait import eventually

from packhorse.local.postgres import packaged_binaries
from packhorse.local.users import Account, unprivileged_account

SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
wal_level = logical
max_connections = 40
shared_buffers = '32MB'
timezone = 'UTC'
fsync = off
"""
"""Processes are killed here, not machines: nothing is lost without fsync, and making a server takes half the time."""

NewCluster = Callable[..., "Cluster"]


class Cluster:
    """One server: its files below *folder*, its port, and the programs that work on it."""

    def __init__(self, folder: Path, account: Account | None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self._account = account
        folder.mkdir()
        self._own(folder)

    def url(self, database: str = "postgres") -> str:
        """Return the URL of one of its databases."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def make(self) -> None:
        """Make the files."""
        self.run(
            "initdb",
            "-D",
            self.data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        )
        self._configure(SETTINGS)

    def copy(self, other: "Cluster") -> None:
        """Take over the files of *other*, which is stopped."""
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.copytree(other.data, self.data, symlinks=True)
        self.data.chmod(0o700)
        for path in (self.data, *self.data.rglob("*")):
            self._own(path)

    def follow(self, other: "Cluster") -> None:
        """Become a streaming standby of *other*, which runs."""
        self.run(
            "pg_basebackup",
            "-D",
            self.data,
            "-R",
            "-c",
            "fast",
            "--no-sync",
            "-X",
            "stream",
            "-d",
            other.url(),
        )

    def start(self) -> None:
        """Start it; returns when it answers."""
        self.run("pg_ctl", "-w", "-D", self.data, "-l", self.folder / "log", "-o", f"-p {self.port}", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: fast, or immediate, which is a crash."""
        self.run("pg_ctl", "-w", "-D", self.data, "-m", mode, "stop")

    def promote(self) -> None:
        """End recovery; returns when it takes writes."""
        self.run("pg_ctl", "-w", "-D", self.data, "promote")

    def end(self) -> None:
        """Kill it if it runs; its files are not needed any more."""
        pid_file = self.data / "postmaster.pid"
        if pid_file.exists():
            os.kill(int(pid_file.read_text().split()[0]), signal.SIGQUIT)
            eventually(lambda: not pid_file.exists(), what=f"the server in {self.data} ends")

    def run(self, program: str, *arguments: object) -> str:
        """Run one of its programs as its account; return what it wrote."""
        who: dict[str, Any] = {}
        if self._account is not None:
            who = {"user": self._account.user, "group": self._account.group, "extra_groups": []}
        done = subprocess.run(
            [str(packaged_binaries() / program), *map(str, arguments)],
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "LANG": "C", "TZ": "UTC"},
            stdout=subprocess.DEVNULL if program == "pg_ctl" else subprocess.PIPE,  # the server keeps it open
            stderr=subprocess.DEVNULL if program == "pg_ctl" else subprocess.PIPE,
            text=True,
            check=False,
            **who,
        )
        assert done.returncode == 0, f"{program} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout or ""

    def _configure(self, text: str) -> None:
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(text)

    def _own(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, self._account.user, self._account.group, follow_symlinks=False)


@contextmanager
def clusters() -> Iterator[NewCluster]:
    """Provide a way to make servers; all end with the block."""
    account = unprivileged_account()
    with temporary_folder() as folder, ExitStack() as running:
        made: list[Cluster] = []

        def new(
            *, clone_of: Cluster | None = None, standby_of: Cluster | None = None, start: bool = True
        ) -> Cluster:
            cluster = Cluster(folder / f"cluster-{len(made)}", account)
            made.append(cluster)
            running.callback(cluster.end)
            if clone_of is not None:
                cluster.copy(clone_of)
            elif standby_of is not None:
                cluster.follow(standby_of)
            else:
                cluster.make()
            if start:
                cluster.start()
            return cluster

        yield new
