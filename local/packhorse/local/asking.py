"""Ask a service how it stands."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from packhorse.local.kafka import broker_count
from packhorse.local.places import log_file
from packhorse.local.ports import LOOPBACK
from packhorse.local.postgres import takes_connections
from packhorse.local.processes import is_alive
from packhorse.local.registry import lists_subjects
from packhorse.local.state import State

_QUESTIONS: Mapping[str, Callable[[int], bool]] = {
    "kafka": lambda port: broker_count(LOOPBACK, port) > 0,
    "postgres": lambda port: takes_connections(LOOPBACK, port),
    "registry": lambda port: lists_subjects(LOOPBACK, port),
}


class Standing(StrEnum):
    """How a service stands."""

    RUNNING = "running"  # it answers
    SILENT = "silent"  # its process lives and does not answer
    DEAD = "dead"  # its process ended without being asked to
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """
    How one service stands.

    Attributes:
        pid: Its process; None when it has none.
        port: The port that clients use; None before the first start.
        log: Where it writes.
    """

    name: str
    standing: Standing
    pid: int | None
    port: int | None
    log: Path


def answers(service: str, port: int) -> bool:
    """Ask, within about two seconds, whether the service can do its work."""
    return _QUESTIONS[service](port)


def status_of(service: str, state: State, folder: Path) -> ServiceStatus:
    """Find out how a service of the stack in *folder* stands."""
    process, port = state.processes.get(service), state.ports.get(service)
    if process is None or port is None:
        standing = Standing.STOPPED
    elif not is_alive(process):
        standing = Standing.DEAD
    else:
        standing = Standing.RUNNING if answers(service, port) else Standing.SILENT
    lives = standing in {Standing.RUNNING, Standing.SILENT}
    pid = process.pid if process is not None and lives else None
    return ServiceStatus(name=service, standing=standing, pid=pid, port=port, log=log_file(folder, service))
