"""
Kafka Connect in standalone mode with the real Debezium connector, for the session's broker and database.

One process for a whole test file; a test brings and takes away its own connectors through the REST interface. The jars
are those that Maven resolves for Connect 4.3.0 (Debezium 3.6.1 does not run on 4.4.0) and the Postgres connector, pinned
by checksum in `data/`, fetched once into the user's cache like the broker's.
"""

import http.client
import json
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from tests.support.wait import eventually

from packhorse.local.artifacts import Artifact, ensure_jars, parse_list
from packhorse.local.java import find_java
from packhorse.local.kafka import LOGGING, render
from packhorse.local.launcher import Command, Launcher
from packhorse.local.maven import fetch
from packhorse.local.places import cache_folder, tail
from packhorse.local.ports import LOOPBACK
from packhorse.local.show import TerminalProgress

CONNECT_VERSION, DEBEZIUM_VERSION = "4.3.0", "3.6.1"
WHAT = f"Kafka Connect {CONNECT_VERSION} and Debezium {DEBEZIUM_VERSION}"
PASSWORD_VARIABLE = "PACKHORSE_CONNECT_PASSWORD"
PASSWORD = "read-the-outbox"
"""The password of the connectors' roles; it stands in the environment of Connect alone."""
_MEMORY = ("-Xms64m", "-Xmx512m", "-XX:MaxMetaspaceSize=192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_UP_WITHIN = 60.0
_ASK_WITHIN = 90.0  # Connect validates a configuration, with a connection to the database, before it answers


def connect_jars() -> list[Artifact]:
    """Return all that the class path needs."""
    name = f"connect-{CONNECT_VERSION}-debezium-{DEBEZIUM_VERSION}.jars.txt"
    return parse_list(Path(__file__).with_name("data").joinpath(name).read_text())


def fetch_connect() -> list[Path]:
    """Return the jars in the user's cache, fetching what is missing, and show that on standard error."""
    cache = cache_folder(os.environ, Path.home())
    cache.mkdir(parents=True, exist_ok=True)
    with TerminalProgress(Console(stderr=True)) as progress:
        return ensure_jars(connect_jars(), cache, fetch, progress, what=WHAT)


@dataclass(frozen=True, slots=True)
class Connect:
    """One running process; the methods speak with its REST interface."""

    port: int
    log: Path

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create the connector, or change it."""
        self._ask("PUT", f"/connectors/{name}/config", dict(config))

    def await_running(self, name: str, *, timeout: float = 60) -> None:
        """Wait until the connector's task runs; its own trouble ends the wait with the trace."""
        eventually(lambda: self._runs(name), what=f"connector {name} runs", timeout=timeout)

    def _runs(self, name: str) -> bool:
        status = self._ask("GET", f"/connectors/{name}/status")
        for part in (status["connector"], *status["tasks"]):
            if part["state"] == "FAILED":
                raise RuntimeError(part.get("trace"))
        return [task["state"] for task in status["tasks"]] == ["RUNNING"]

    def failure(self, name: str) -> str | None:
        """Return the trace of a task that failed."""
        status = self._ask("GET", f"/connectors/{name}/status")
        return next((task["trace"] for task in status["tasks"] if task["state"] == "FAILED"), None)

    def stop(self, name: str) -> None:
        """Stop the connector; its configuration and offsets stay. Returns when its task is gone."""
        self._ask("PUT", f"/connectors/{name}/stop")
        eventually(
            lambda: self._ask("GET", f"/connectors/{name}/status")["connector"]["state"] == "STOPPED",
            what=f"connector {name} has stopped",
            timeout=30,
        )

    def resume(self, name: str) -> None:
        """Let a stopped connector go on."""
        self._ask("PUT", f"/connectors/{name}/resume")

    def forget_offsets(self, name: str) -> None:
        """Delete the offsets of a stopped connector."""
        self._ask("DELETE", f"/connectors/{name}/offsets")

    def delete(self, name: str) -> None:
        """Delete the connector; nothing when there is none."""
        if name in self._ask("GET", "/connectors"):
            self._ask("DELETE", f"/connectors/{name}")

    def answers(self) -> bool:
        """Ask whether it serves."""
        try:
            return "version" in self._ask("GET", "/")
        except (OSError, http.client.HTTPException, RuntimeError):
            return False

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=_ASK_WITHIN)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read().decode()
        finally:
            connection.close()
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise RuntimeError(f"{method} {path}: {response.status} {answer}")
        return json.loads(answer) if answer else None


@contextmanager
def running_connect(folder: Path, *, bootstrap: str) -> Iterator[Connect]:
    """
    Run Kafka Connect until the block ends; it ends with this process, however that ends.

    Connectors find the password of their role as `${env:PACKHORSE_CONNECT_PASSWORD}`.
    """
    jars = fetch_connect()
    port, log = _free_port(), folder / "connect.log"
    (folder / "worker.properties").write_text(render(_worker(folder, bootstrap, port)))
    (folder / "log4j2.properties").write_text(LOGGING)
    launcher = Launcher(folder / "guard.log")
    try:
        pid = launcher.start(_command(folder, jars, log))
        connect = Connect(port, log)

        def up() -> bool:
            if launcher.exit_code(pid) is not None:
                raise RuntimeError("Connect ended:\n" + "\n".join(tail(log, 30)))
            return connect.answers()

        eventually(up, what=f"Connect answers; its log is {log}", timeout=_UP_WITHIN)
        yield connect
    finally:
        launcher.end()


def _command(folder: Path, jars: list[Path], log: Path) -> Command:
    options = (
        *_MEMORY,
        "-Djava.net.preferIPv4Stack=true",
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
    )
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    class_path = ":".join(str(jar) for jar in jars)
    return Command(
        argv=(
            str(find_java(os.environ)),
            *options,
            "-cp",
            class_path,
            main,
            str(folder / "worker.properties"),
        ),
        env={"LANG": "C.UTF-8", PASSWORD_VARIABLE: PASSWORD},
        cwd=folder,
        log=log,
        stop=signal.SIGTERM,
    )


def _worker(folder: Path, bootstrap: str, port: int) -> dict[str, str]:
    """Return the worker's settings; converters are deliberately not ours, so that a connector must name its own."""
    return {
        "bootstrap.servers": bootstrap,
        "listeners": f"http://{LOOPBACK}:{port}",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "offset.storage.file.filename": str(folder / "offsets.dat"),
        "offset.flush.interval.ms": "500",
        "plugin.discovery": "service_load",
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "task.shutdown.graceful.timeout.ms": "5000",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
