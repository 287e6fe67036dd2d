"""A second broker beside a private one, to be killed alone: partitions without leader, and with too few replicas."""

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from rich.console import Console
from tests.support.proxy import free_port
from tests.support.stack import QUICK_JAVA, QUICK_RESTART, PrivateBroker, temporary_folder
from tests.support.wait import eventually

from packhorse.local.artifacts import ensure_jars, kafka_jars
from packhorse.local.java import find_java
from packhorse.local.kafka import Broker, broker_count
from packhorse.local.launcher import Command, Launcher
from packhorse.local.maven import fetch
from packhorse.local.places import cache_folder
from packhorse.local.ports import LOOPBACK
from packhorse.local.processes import identity_of, kill
from packhorse.local.show import TerminalProgress

_FORMAT_WITHIN = 60.0


class SecondBroker:
    """Broker 2 of the cluster whose only controller is *first*; every method returns when it is done."""

    def __init__(self, first: PrivateBroker, folder: Path, launcher: Launcher) -> None:
        self._launcher = launcher
        self._pid = 0
        self.port = free_port()
        listener = f"PLAINTEXT://{LOOPBACK}:{self.port}"
        cache = cache_folder(os.environ, Path.home())
        with TerminalProgress(Console(stderr=True)) as progress:
            jars = ensure_jars(kafka_jars(), cache, fetch, progress)
        (folder / "logs").mkdir()
        self._broker = Broker(
            folder=folder,
            ports={"kafka": self.port, "kafka_controller": 0},
            java=find_java(os.environ),
            jars=jars,
            cluster_id=_cluster_of(first),
            settings={
                **QUICK_RESTART,
                "process.roles": "broker",
                "node.id": "2",
                "controller.quorum.voters": f"1@{LOOPBACK}:{first.stack.ports['kafka_controller']}",
                "listeners": listener,
                "advertised.listeners": listener,
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            },
            java_options=QUICK_JAVA,
        )

    def start(self) -> None:
        """Start it on the same data."""
        self._broker.prepare(self._run)
        self._pid = self._launcher.start(self._broker.command())
        eventually(lambda: broker_count(LOOPBACK, self.port) == 2, what="both brokers are there", timeout=60)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        process = identity_of(self._pid)
        assert process is not None
        kill(process)

    def _run(self, command: Command) -> None:
        assert self._launcher.run(command, within=_FORMAT_WITHIN) == 0


def _cluster_of(first: PrivateBroker) -> UUID:
    text = (first.stack.folder / "kafka/data/meta.properties").read_text()
    identity = next(line.partition("=")[2] for line in text.splitlines() if line.startswith("cluster.id="))
    return UUID(bytes=base64.urlsafe_b64decode(f"{identity}=="))


@contextmanager
def second_broker(first: PrivateBroker) -> Iterator[SecondBroker]:
    """Run a second broker beside *first* until the block ends; it ends with this process too."""
    with temporary_folder() as folder:
        launcher = Launcher(folder / "guard.log")
        try:
            broker = SecondBroker(first, folder, launcher)
            broker.start()
            yield broker
        finally:
            launcher.end()
