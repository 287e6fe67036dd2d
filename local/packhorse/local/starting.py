"""Bring services up, all at once and all or none."""

import threading
from collections.abc import Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path

from packhorse.local import ports as port_choice
from packhorse.local.asking import answers
from packhorse.local.build import Factory, port_names
from packhorse.local.errors import StackFailed
from packhorse.local.launcher import Command, Launcher
from packhorse.local.memory import Memory
from packhorse.local.places import log_file, size_of, tail
from packhorse.local.processes import identity_of, wait_until
from packhorse.local.service import Service
from packhorse.local.settings import StackSettings

_PREPARE_WITHIN = 120.0
_TAIL = 15
_TRIES = 3
_ASK_EVERY = 0.1  # a service that starts logs each question it can't answer


class Starter:
    """One start of one or more services; it is thrown away afterwards."""

    def __init__(self, settings: StackSettings, memory: Memory, launcher: Launcher) -> None:
        self._settings = settings
        self._memory = memory
        self._launcher = launcher
        self._cancelled = threading.Event()
        self._log_began: dict[str, int] = {}  # where this start's lines begin in each log

    def start(self, factories: Mapping[str, Factory]) -> None:
        """
        Start the services and return when all answer.

        After a failure or an interruption no thread of this start goes on, but services may run: the caller stops
        them. Each is in the state file before it is waited for.

        Raises:
            StackFailed: The first of them that did not come up.
        """
        with ThreadPoolExecutor(len(factories), thread_name_prefix="packhorse-start") as pool:
            starting = [pool.submit(self._start, name, factory) for name, factory in factories.items()]
            try:
                done, _ = wait(starting, return_when=FIRST_EXCEPTION)
                for each in done:
                    each.result()
            except BaseException:
                self._cancelled.set()
                raise

    def _start(self, name: str, factory: Factory) -> None:
        """Start one service; take other ports when somebody sat down on one of them between choice and start."""
        wanted = port_names(name, self._settings)
        for remaining in reversed(range(_TRIES)):
            service = factory(self._memory.claim_ports(wanted))
            try:
                self._launch(service)
            except StackFailed:
                if not remaining or all(port_choice.is_free(self._memory.ports[port]) for port in wanted):
                    raise
            else:
                self._memory.progress.say(f"{name} answers on port {self._memory.ports[name]}")
                return

    def _launch(self, service: Service) -> None:
        keep_short(service.log)
        self._log_began[service.name] = size_of(service.log)
        service.prepare(lambda command: self._run(service, command))
        pid = self._launcher.start(service.command())
        if (process := identity_of(pid)) is not None:
            self._memory.remember(service.name, process)
        self.await_answer(service.name, pid)

    def await_answer(self, name: str, pid: int) -> None:
        """Ask until the service answers or its process has ended."""
        port, within = self._memory.ports[name], self._settings.start_within
        answered = wait_until(
            lambda: self._launcher.exit_code(pid) is not None or answers(name, port),
            within=within,
            every=_ASK_EVERY,
            cancelled=self._cancelled,
        )
        if (code := self._launcher.exit_code(pid)) is not None:
            self._memory.remember(name, None)
            raise self._failure(name, f"ended during its start with status {code}")
        if not answered:
            raise self._failure(name, f"does not answer on port {port} after {within:g} s")

    def _run(self, service: Service, command: Command) -> None:
        status = self._launcher.run(command, within=_PREPARE_WITHIN, cancelled=self._cancelled)
        if status != 0:
            program = Path(command.argv[0]).name
            raise self._failure(service.name, f"could not be prepared: {program} ended with status {status}")

    def _failure(self, name: str, what: str) -> StackFailed:
        if self._cancelled.is_set():
            return StackFailed(f"the start of {name} was cancelled")
        log = log_file(self._settings.folder, name)
        return failure(log, f"{name} {what}", after=self._log_began.get(name, 0))


def failure(log: Path, what: str, *, after: int = 0) -> StackFailed:
    """Return an error that says *what* and shows the end of the service's log, from byte *after* on."""
    lines = tail(log, _TAIL, after=after) or ["(nothing)"]
    return StackFailed("\n".join([f"{what}. The end of {log}:", *(f"  {line}" for line in lines)]))


def keep_short(log: Path, *, limit: int = 8 * 1024 * 1024) -> None:
    """Put a log of more than *limit* bytes aside as `.1`, in place of the one that lies there."""
    if size_of(log) > limit:
        log.replace(log.with_name(f"{log.name}.1"))
