"""Apicurio Registry, through its Confluent API."""

import http.client
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packhorse.local.launcher import Command
from packhorse.local.places import log_file
from packhorse.local.ports import LOOPBACK
from packhorse.local.service import Run

API = "/apis/ccompat/v7"
_ASK_WITHIN = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """
    The schema registry of one stack.

    Attributes:
        folder: The stack's folder.
        ports: Port numbers by name: `registry`, `registry_management`.
        java: The runtime.
        home: The unpacked application.
        settings: Environment variables of the caller; they win.
    """

    folder: Path
    ports: Mapping[str, int]
    java: Path
    home: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    name = "registry"
    port_names = ("registry", "registry_management")
    stop_signal = signal.SIGTERM

    @property
    def log(self) -> Path:
        """Where it writes."""
        return log_file(self.folder, self.name)

    def prepare(self, run: Run) -> None:  # noqa: ARG002 - nothing has to run beforehand
        """Make the folder of its store."""
        (self.folder / "registry").mkdir(parents=True, exist_ok=True)

    def environment(self) -> dict[str, str]:
        """
        Return its settings, which are environment variables.

        Its store is a file: ids must outlive a restart, since outbox rows and topics carry them. WRITE_DELAY=0 makes
        a registered schema survive a kill; by default the store flushes half a second later.
        """
        return {
            "LANG": "C.UTF-8",
            "QUARKUS_HTTP_HOST": LOOPBACK,
            "QUARKUS_HTTP_PORT": str(self.ports["registry"]),
            "QUARKUS_MANAGEMENT_HOST": LOOPBACK,
            "QUARKUS_MANAGEMENT_PORT": str(self.ports["registry_management"]),
            "APICURIO_RULES_GLOBAL_COMPATIBILITY": "BACKWARD",
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{self.folder / 'registry' / 'store'};WRITE_DELAY=0",
            "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "false",
            "QUARKUS_LOG_CONSOLE_FORMAT": "%d{yyyy-MM-dd HH:mm:ss.SSS} %-5p %c{1}: %s%e%n",
            **self.settings,
        }

    def command(self) -> Command:
        """Return how to start it."""
        options = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        return Command(
            argv=(str(self.java), *options, "-jar", str(self.home / "quarkus-run.jar")),
            env=self.environment(),
            cwd=self.folder / "registry",
            log=self.log,
            stop=self.stop_signal,
        )

    def answers(self) -> bool:
        """Ask for the list of subjects."""
        return lists_subjects(LOOPBACK, self.ports["registry"])


def lists_subjects(host: str, port: int) -> bool:
    """Ask the registry for its subjects; False also when it does not answer in two seconds."""
    connection = http.client.HTTPConnection(host, port, timeout=_ASK_WITHIN)
    try:
        connection.request("GET", f"{API}/subjects")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
