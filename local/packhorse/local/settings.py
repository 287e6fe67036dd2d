"""What a caller may say about a stack, and what it gets back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packhorse.core.errors import SettingsError
from packhorse.local.ports import LOOPBACK
from packhorse.local.postgres import DATABASE, SUPERUSER
from packhorse.local.registry import API

SERVICES = ("postgres", "kafka", "registry")

DATABASE_VARIABLE = "PACKHORSE_DATABASE_URL"
KAFKA_VARIABLE = "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS"
REGISTRY_VARIABLE = "PACKHORSE_REGISTRY_URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSettings:
    """
    One stack.

    Attributes:
        folder: Absolute; all it keeps lies below, but for a Postgres that root has to put elsewhere.
        cache: Absolute; where downloads of all stacks lie.
        services: Which of the three it has.
        kafka: Broker settings on top of ours.
        postgres: Server settings on top of ours, written as postgresql.conf wants them.
        postgres_binaries: Folder of another Postgres's programs; None takes the packaged ones.
        kafka_java_options: Options of the Java runtime that the broker runs on.
        advertised_port: A further Kafka listener that tells its clients it stands at this port: for a proxy.
        start_within: Seconds that a service may take until it answers.

    Raises:
        SettingsError: A service has another name, or a path is relative.
    """

    folder: Path
    cache: Path
    services: tuple[str, ...] = SERVICES
    kafka: Mapping[str, str] = field(default_factory=dict)
    postgres: Mapping[str, str] = field(default_factory=dict)
    postgres_binaries: Path | None = None
    kafka_java_options: tuple[str, ...] = ("-Xmx1g",)
    advertised_port: int | None = None
    start_within: float = 90.0

    def __post_init__(self) -> None:
        if unknown := [name for name in self.services if name not in SERVICES]:
            raise SettingsError(f"service {unknown[0]!r}: the stack has {', '.join(SERVICES)}")
        for path in (self.folder, self.cache):
            if not path.is_absolute():
                raise SettingsError(f"folder {str(path)!r}: an absolute path is needed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Where the three services of a stack stand, in the words of the settings that clients take."""

    kafka_bootstrap: str
    database_url: str
    registry_url: str

    def variables(self) -> dict[str, str]:
        """Return them as the environment variables that every part reads."""
        return {
            DATABASE_VARIABLE: self.database_url,
            KAFKA_VARIABLE: self.kafka_bootstrap,
            REGISTRY_VARIABLE: self.registry_url,
        }


def kafka_bootstrap(ports: Mapping[str, int]) -> str:
    """Return the broker's address for clients."""
    return f"{LOOPBACK}:{ports['kafka']}"


def database_url(ports: Mapping[str, int], database: str = DATABASE) -> str:
    """Return the URL of a database of the server."""
    return f"postgresql://{SUPERUSER}@{LOOPBACK}:{ports['postgres']}/{database}"


def registry_url(ports: Mapping[str, int]) -> str:
    """Return the URL of the registry's Confluent API."""
    return f"http://{LOOPBACK}:{ports['registry']}{API}"


def endpoints(ports: Mapping[str, int]) -> Endpoints:
    """Return the endpoints of a stack that has all three services."""
    return Endpoints(
        kafka_bootstrap=kafka_bootstrap(ports),
        database_url=database_url(ports),
        registry_url=registry_url(ports),
    )
