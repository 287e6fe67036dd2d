"""
The same three services as containers, through testcontainers.

The ports are chosen before the start, because Kafka has to advertise its own; the settings are those of the local stack.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import docker  # type: ignore[import-untyped]
from testcontainers.core.container import DockerContainer
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.local.artifacts import KAFKA_VERSION, REGISTRY_VERSION
from packhorse.local.asking import answers
from packhorse.local.kafka import BASE_SETTINGS
from packhorse.local.ports import LOOPBACK, assign, candidates, is_free
from packhorse.local.postgres import SUPERUSER
from packhorse.local.settings import SERVICES, Endpoints, endpoints

KAFKA_IMAGE = f"apache/kafka:{KAFKA_VERSION}"
POSTGRES_IMAGE = "postgres:18"
REGISTRY_IMAGE = f"apicurio/apicurio-registry:{REGISTRY_VERSION}"
_KAFKA_INSIDE, _CONTROLLER_INSIDE, _POSTGRES_INSIDE, _REGISTRY_INSIDE = 9092, 9093, 5432, 8080
_START_WITHIN = 120.0


def docker_answers() -> bool:
    """Tell whether a Docker daemon answers."""
    try:
        client = docker.from_env(timeout=5)
    except docker.errors.DockerException:
        return False
    with client:
        return bool(client.ping())


@contextmanager
def container_stack() -> Iterator[Endpoints]:
    """Run the three containers for the block."""
    ports = assign(SERVICES, {}, candidates(Path(str(SYSTEM_CHANCE.token()))), is_free)
    with ExitStack() as containers:
        for container in (_postgres(ports["postgres"]), _kafka(ports["kafka"]), _registry(ports["registry"])):
            containers.enter_context(container)
        for service in SERVICES:
            eventually(
                partial(answers, service, ports[service]),
                what=f"the container of {service} answers",
                timeout=_START_WITHIN,
            )
        yield endpoints(ports)


def kafka_environment(settings: dict[str, str]) -> dict[str, str]:
    """
    Write broker settings as the image's environment takes them.

    >>> kafka_environment({"process.roles": "broker"})
    {'KAFKA_PROCESS_ROLES': 'broker'}
    """
    return {f"KAFKA_{name.replace('.', '_').upper()}": value for name, value in settings.items()}


def _kafka(port: int) -> DockerContainer:
    environment = kafka_environment(
        {
            **BASE_SETTINGS,
            "controller.quorum.voters": f"1@localhost:{_CONTROLLER_INSIDE}",
            "listeners": f"PLAINTEXT://:{_KAFKA_INSIDE},CONTROLLER://:{_CONTROLLER_INSIDE}",
            "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
    )
    return DockerContainer(KAFKA_IMAGE).with_bind_ports(_KAFKA_INSIDE, port).with_envs(**environment)


def _postgres(port: int) -> DockerContainer:
    return (
        DockerContainer(POSTGRES_IMAGE)
        .with_bind_ports(_POSTGRES_INSIDE, port)
        .with_envs(POSTGRES_USER=SUPERUSER, POSTGRES_HOST_AUTH_METHOD="trust", POSTGRES_DB="packhorse")
        .with_command(["postgres", "-c", "wal_level=logical", "-c", "max_connections=200"])
    )


def _registry(port: int) -> DockerContainer:
    return (
        DockerContainer(REGISTRY_IMAGE)
        .with_bind_ports(_REGISTRY_INSIDE, port)
        .with_envs(APICURIO_RULES_GLOBAL_COMPATIBILITY="BACKWARD")
    )
