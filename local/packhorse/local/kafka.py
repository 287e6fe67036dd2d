"""Apache Kafka, one broker that is its own controller (KRaft)."""

import base64
import shutil
import signal
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from packhorse.local.launcher import Command
from packhorse.local.places import log_file
from packhorse.local.ports import LOOPBACK
from packhorse.local.service import Run

_ASK_WITHIN = 2.0
_METADATA_KEY, _METADATA_VERSION = 3, 1

BASE_SETTINGS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "num.partitions": "4",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    # A killed member's partitions are taken over after six seconds instead of 45.
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
}

# A program of a second does not live to see the optimizing compiler pay off: half the processor time without it.
_BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

LOGGING = """\
status = WARN
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %-5p %c{1}: %m%n%throwable
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
logger.started.name = kafka.server.KafkaRaftServer
logger.started.level = INFO
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """
    The broker of one stack.

    Attributes:
        folder: The stack's folder.
        ports: Port numbers by name: `kafka`, `kafka_controller`, and `kafka_advertised` when there is such a listener.
        java: The runtime.
        jars: The class path.
        cluster_id: Used once, when the data folder is formatted.
        settings: Broker settings of the caller; they win.
        java_options: Of the Java runtime: heap, compiler.
        advertised_port: When set, a further listener tells its clients that it stands at this port of the
            loopback address: the place for a proxy. The plain listener stays, for readers that go around the proxy.
    """

    folder: Path
    ports: Mapping[str, int]
    java: Path
    jars: Sequence[Path]
    cluster_id: UUID
    settings: Mapping[str, str] = field(default_factory=dict)
    java_options: Sequence[str] = ("-Xmx1g",)
    advertised_port: int | None = None

    name = "kafka"
    stop_signal = signal.SIGTERM

    @property
    def port_names(self) -> tuple[str, ...]:
        """The names of its ports."""
        return port_names(advertised=self.advertised_port is not None)

    @property
    def log(self) -> Path:
        """Where it writes."""
        return log_file(self.folder, self.name)

    @property
    def _home(self) -> Path:
        return self.folder / "kafka"

    def prepare(self, run: Run) -> None:
        """Render the settings; on the first start also format the data folder, in one step as others see it."""
        self._home.mkdir(parents=True, exist_ok=True)
        data, partial = self._home / "data", self._home / "data.partial"
        settings = self._home / "server.properties"
        (self._home / "log4j2.properties").write_text(LOGGING)
        if not data.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
            settings.write_text(render(self.properties(data=partial)))
            identity = cluster_id_text(self.cluster_id)
            run(self._java(_BRIEF, "kafka.tools.StorageTool", "format", "-t", identity, "-c", str(settings)))
            partial.rename(data)
        settings.write_text(render(self.properties(data=data)))

    def properties(self, *, data: Path) -> dict[str, str]:
        """Return the broker's settings."""
        listeners = {"PLAINTEXT": self.ports["kafka"], "CONTROLLER": self.ports["kafka_controller"]}
        advertised = {"PLAINTEXT": self.ports["kafka"]}
        if self.advertised_port is not None:
            listeners["ADVERTISED"] = self.ports["kafka_advertised"]
            advertised["ADVERTISED"] = self.advertised_port
        return {
            **BASE_SETTINGS,
            "controller.quorum.voters": f"1@{LOOPBACK}:{self.ports['kafka_controller']}",
            "listeners": _addresses(listeners),
            "advertised.listeners": _addresses(advertised),
            "listener.security.protocol.map": ",".join(f"{listener}:PLAINTEXT" for listener in listeners),
            "log.dirs": str(data),
            **self.settings,
        }

    def command(self) -> Command:
        """Return how to start it."""
        return self._java(self.java_options, "kafka.Kafka", str(self._home / "server.properties"))

    def answers(self) -> bool:
        """Ask for the cluster's metadata; it can do its work when it names itself as a broker."""
        return broker_count(LOOPBACK, self.ports["kafka"]) > 0

    def _java(self, java_options: Sequence[str], main: str, *arguments: str) -> Command:
        options = (
            *java_options,
            "-Djava.net.preferIPv4Stack=true",
            f"-Dlog4j2.configurationFile={self._home / 'log4j2.properties'}",
        )
        class_path = ":".join(str(jar) for jar in self.jars)
        return Command(
            argv=(str(self.java), *options, "-cp", class_path, main, *arguments),
            env={"LANG": "C.UTF-8"},
            cwd=self._home,
            log=self.log,
            stop=self.stop_signal,
        )


def port_names(*, advertised: bool) -> tuple[str, ...]:
    """Return the names of a broker's ports; the one that clients use first."""
    return ("kafka", "kafka_controller", "kafka_advertised") if advertised else ("kafka", "kafka_controller")


def render(properties: Mapping[str, str]) -> str:
    r"""
    Write Java properties.

    >>> render({"log.dirs": "/a b\\c"})
    'log.dirs=/a b\\\\c\n'
    """
    lines = (f"{name}={value.replace(chr(92), chr(92) * 2)}" for name, value in properties.items())
    return "".join(f"{line}\n" for line in lines)


def cluster_id_text(cluster_id: UUID) -> str:
    """
    Write a cluster id as Kafka does: 22 characters of url-safe base64, never a dash first, which would read as a flag.

    >>> cluster_id_text(UUID(int=0)), cluster_id_text(UUID(int=0xFB << 120))
    ('AAAAAAAAAAAAAAAAAAAAAA', 'AwAAAAAAAAAAAAAAAAAAAA')
    """
    text = base64.urlsafe_b64encode(cluster_id.bytes).decode().rstrip("=")
    return text if not text.startswith("-") else "A" + text[1:]


def broker_count(host: str, port: int) -> int:
    """Ask the broker at *host*:*port* how many brokers the cluster has; 0 when it does not answer in two seconds."""
    try:
        with socket.create_connection((host, port), timeout=_ASK_WITHIN) as connection:
            connection.sendall(metadata_request())
            return brokers_in(_receive(connection))
    except (OSError, struct.error):
        return 0


def metadata_request() -> bytes:
    """Return Kafka's Metadata request, version 1, for no topic at all."""
    client = b"packhorse-dev"
    header = struct.pack(">hhih", _METADATA_KEY, _METADATA_VERSION, 0, len(client)) + client
    body = struct.pack(">i", 0)
    return struct.pack(">i", len(header) + len(body)) + header + body


def brokers_in(response: bytes) -> int:
    """Return the number of brokers in a Metadata response: after the correlation id comes the list of them."""
    _, brokers = struct.unpack_from(">ii", response)
    return int(brokers)


def _receive(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as stream:
        (size,) = struct.unpack(">i", stream.read(4))
        return stream.read(size)


def _addresses(listeners: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in listeners.items())
