"""A real Kafka, Postgres and schema registry in one folder: start, stop, ask, kill."""

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from packhorse.core.clock import SYSTEM_CHANCE, Chance
from packhorse.core.errors import SettingsError
from packhorse.local import ports as port_choice
from packhorse.local import settings as addresses
from packhorse.local.build import Builder, Factory, choose_postgres_home, port_names
from packhorse.local.errors import NotRunning, StackFailed
from packhorse.local.kafka import Broker, broker_count
from packhorse.local.launcher import Command, Launcher
from packhorse.local.places import log_file, tail
from packhorse.local.ports import LOOPBACK
from packhorse.local.postgres import Database, takes_connections
from packhorse.local.processes import Identity, end, identity_of, is_alive, kill, signal_family, wait_until
from packhorse.local.progress import Progress, Silence
from packhorse.local.registry import Registry, lists_subjects
from packhorse.local.service import Service
from packhorse.local.settings import SERVICES, Endpoints, StackSettings
from packhorse.local.state import FILE, State, load, locked, save

_LOCK_WITHIN = 180.0
_PREPARE_WITHIN = 120.0
_STOP_WITHIN = 30.0
_TAIL = 15
_ASK: Mapping[str, Callable[[int], bool]] = {
    "kafka": lambda port: broker_count(LOOPBACK, port) > 0,
    "postgres": lambda port: takes_connections(LOOPBACK, port),
    "registry": lambda port: lists_subjects(LOOPBACK, port),
}
_STOP_SIGNALS = {
    "kafka": Broker.stop_signal,
    "postgres": Database.stop_signal,
    "registry": Registry.stop_signal,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """
    How one service stands.

    Attributes:
        state: `running` (it answers), `silent` (its process lives and does not answer), `dead` (it ended without
            being asked to) or `stopped`.
        pid: Its process; None when it has none.
        port: The port that clients use; None before the first start.
        log: Where it writes.
    """

    name: str
    state: str
    pid: int | None
    port: int | None
    log: Path


class Stack:
    """
    The stack of one folder; another process may hold another `Stack` on the same folder.

    `up` leaves the services running when this process ends. `up(hold=True)` does not: they end with this process,
    even when it is killed.
    """

    def __init__(
        self,
        settings: StackSettings,
        *,
        progress: Progress | None = None,
        environment: Mapping[str, str] | None = None,
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        self.settings = settings
        self.progress = progress or Silence()
        self._builder = Builder(
            settings=settings,
            progress=self.progress,
            environment=os.environ if environment is None else environment,
            chance=chance,
        )
        self._factories: dict[str, Factory] = {}
        self._launcher: Launcher | None = None
        self._starting = threading.Lock()
        self._guarding = threading.Lock()  # the state file; never held while a service starts
        self._cancelled = threading.Event()

    # -- what it knows ------------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """The folder it lives in."""
        return self.settings.folder

    @property
    def ports(self) -> Mapping[str, int]:
        """The remembered ports by name."""
        return load(self.folder).ports

    @property
    def endpoints(self) -> Endpoints:
        """
        Return where the services stand.

        Raises:
            NotRunning: The stack was never started.
        """
        try:
            return addresses.endpoints(self.ports)
        except KeyError as error:
            raise NotRunning(f"no stack in {self.folder}; start one with `packhorse dev up`") from error

    def status(self) -> list[ServiceStatus]:
        """Ask every service how it stands; changes nothing."""
        state = load(self.folder)
        return [self._status_of(name, state) for name in self.settings.services]

    def process(self, service: str) -> Identity:
        """
        Return the process of a service.

        Raises:
            NotRunning: It has none.
        """
        found = load(self.folder).processes.get(service)
        if found is None or not is_alive(found):
            raise NotRunning(f"{service} does not run in {self.folder}; start it with `packhorse dev up`")
        return found

    def log(self, service: str) -> Path:
        """Return the file that a service writes to."""
        return log_file(self.folder, service)

    # -- all of it ----------------------------------------------------------------------------------------------

    def up(self, *, hold: bool = False) -> list[str]:
        """
        Start what does not run yet, all at once, and return the names when every service answers.

        If one does not come up, or this process is interrupted or dies, all that this call has started is stopped
        again; what ran before goes on running. With *hold* the services end with this process.

        Raises:
            StackFailed: A service did not come up; the text ends with the tail of its log.
            SettingsError: The folder can't be used.
        """
        self._make_folder()
        with locked(self.folder / "lock", what="this stack", within=_LOCK_WITHIN):
            missing = self._forget_the_dead()
            if missing:
                self._bring_up(missing, hold=hold)
            for name in self.settings.services:
                self._wait_for_answer(name, None)
        return missing

    def down(self) -> list[str]:
        """Stop all services that run, cleanly, and return their names; their data stays."""
        if not self.folder.is_dir():
            return []
        with locked(self.folder / "lock", what="this stack", within=_LOCK_WITHIN):
            running = [
                name for name in SERVICES if name in self._forget_the_dead_of(load(self.folder)).processes
            ]
            with ThreadPoolExecutor(len(SERVICES)) as pool:
                list(pool.map(self.stop, running))
            self._let_go()
        return running

    def reset(self) -> list[str]:
        """Stop all services and delete their data, logs and remembered ports; downloads stay in the cache."""
        running = self.down()
        if not self.folder.is_dir():
            return running
        with locked(self.folder / "lock", what="this stack", within=_LOCK_WITHIN):
            homes = {load(self.folder).postgres_home or str(self.folder / "postgres")}
            for doomed in [*map(Path, homes), *(self.folder / name for name in (*SERVICES, "logs"))]:
                shutil.rmtree(doomed, ignore_errors=True)
            (self.folder / FILE).unlink(missing_ok=True)
        return running

    # -- one service, for those who rehearse trouble --------------------------------------------------------------

    def start(self, service: str) -> None:
        """Start one service again on its port and data, and wait until it answers; nothing when it runs."""
        self._make_folder()
        with self._starting:
            if service in self._forget_the_dead_of(load(self.folder)).processes:
                return
            self._bring_up([service], hold=True)

    def stop(self, service: str) -> None:
        """Stop one service cleanly and wait until it is gone; kill it when it takes longer than 30 s."""
        process = load(self.folder).processes.get(service)
        if process is not None and not end(process, _STOP_SIGNALS[service], within=_STOP_WITHIN):
            self.progress.say(f"{service} did not stop within {_STOP_WITHIN:g} s and was killed")
        self._remember(service, None)

    def kill(self, service: str) -> None:
        """Kill one service with SIGKILL, its child processes too, and wait until it is gone."""
        kill(self.process(service))
        self._remember(service, None)

    def pause(self, service: str) -> None:
        """Freeze one service and its child processes with SIGSTOP: connections stay, nothing answers."""
        signal_family(self.process(service), signal.SIGSTOP)

    def resume(self, service: str) -> None:
        """Let a frozen service go on."""
        signal_family(self.process(service), signal.SIGCONT)

    # -- inside -------------------------------------------------------------------------------------------------

    def _make_folder(self) -> None:
        try:
            if not self.folder.is_dir():
                self.folder.mkdir(parents=True)
                (self.folder / ".gitignore").write_text("*\n")
            (self.folder / "logs").mkdir(exist_ok=True)
            self.settings.cache.mkdir(parents=True, exist_ok=True)
            with (self.folder / "lock").open("a"):
                pass
        except OSError as error:
            raise SettingsError(
                f"the folder {self.folder} or the cache {self.settings.cache} can't be written ({error});"
                " name others with --dir and PACKHORSE_CACHE_DIR"
            ) from error

    def _forget_the_dead(self) -> list[str]:
        state = self._forget_the_dead_of(load(self.folder))
        return [name for name in self.settings.services if name not in state.processes]

    def _forget_the_dead_of(self, state: State) -> State:
        dead = [name for name, process in state.processes.items() if not is_alive(process)]
        for name in dead:
            self.progress.say(f"{name} (pid {state.processes[name].pid}) has ended by itself")
            state = state.with_process(name, None)
        if dead:
            save(self.folder, state)
        return state

    def _bring_up(self, names: Sequence[str], *, hold: bool) -> None:
        for name in names:
            if name not in self._factories:
                self._factories[name] = self._builder.factory(name, self._postgres_home())
        if self._launcher is None:
            self._launcher = Launcher(log_file(self.folder, "guard"))
        try:
            self._start_all(names)
        except BaseException:
            self._cancelled.set()
            self._undo(names)
            raise
        if not hold:
            self._launcher.release()
            self._launcher = None

    def _start_all(self, names: Sequence[str]) -> None:
        self._cancelled.clear()
        self.progress.say(f"starting {', '.join(names)}")
        with ThreadPoolExecutor(len(names), thread_name_prefix="packhorse-start") as pool:
            try:
                starting = [pool.submit(self._start_one, name) for name in names]
                done, _ = wait(starting, return_when=FIRST_EXCEPTION)
                for each in done:
                    each.result()
            except BaseException:
                self._cancelled.set()
                raise

    def _start_one(self, name: str) -> None:
        """Start one service; take new ports when somebody else sat down on one of them meanwhile."""
        for last_try in (False, False, True):
            service = self._factories[name](self._ports_for(name))
            try:
                self._launch(service)
                self.progress.say(f"{name} answers on port {service_port(service, self.ports)}")
                return
            except StackFailed:
                if last_try or all(port_choice.is_free(self.ports[port]) for port in service.port_names):
                    raise

    def _launch(self, service: Service) -> None:
        launcher = self._launcher
        assert launcher is not None
        keep_short(service.log)
        service.prepare(lambda command: self._run(launcher, service.name, command))
        pid = launcher.start(service.command())
        if (process := identity_of(pid)) is not None:
            self._remember(service.name, process)
        self._wait_for_answer(service.name, pid)

    def _run(self, launcher: Launcher, name: str, command: Command) -> None:
        status = launcher.run(command, within=_PREPARE_WITHIN, cancelled=self._cancelled)
        if status != 0:
            raise self._failure(
                name, f"could not be prepared: {Path(command.argv[0]).name} ended with status {status}"
            )

    def _wait_for_answer(self, name: str, pid: int | None) -> None:
        ask, port = _ASK[name], self.ports[name]
        launcher = self._launcher
        ended = threading.Event()

        def answers_or_ended() -> bool:
            if pid is not None and launcher is not None and launcher.exit_code(pid) is not None:
                ended.set()
            return ended.is_set() or ask(port)

        within = self.settings.start_within
        answered = wait_until(answers_or_ended, within=within, cancelled=self._cancelled)
        if ended.is_set():
            self._remember(name, None)
            raise self._failure(name, "ended during its start")
        if not answered:
            raise self._failure(name, f"does not answer on port {port} after {within:g} s")

    def _failure(self, name: str, what: str) -> StackFailed:
        if self._cancelled.is_set():
            return StackFailed(f"the start of {name} was cancelled")
        path = self.log(name)
        lines = "\n".join(f"  {line}" for line in tail(path, _TAIL))
        return StackFailed(f"{name} {what}. The end of {path}:\n{lines}")

    def _undo(self, names: Sequence[str]) -> None:
        """Stop what this call has started; services that a held stack started before go on running."""
        for name in names:
            with suppress(StackFailed):
                self.stop(name)
        if not load(self.folder).processes or self._launcher is None:
            self._let_go()

    def _let_go(self) -> None:
        if self._launcher is not None:
            self._launcher.end()
            self._launcher = None

    def _remember(self, service: str, process: Identity | None) -> None:
        with self._guarding:
            save(self.folder, load(self.folder).with_process(service, process))

    def _ports_for(self, name: str) -> dict[str, int]:
        wanted = port_names(name, self.settings)
        with self._guarding:
            state = load(self.folder)
            chosen = port_choice.assign(
                wanted, state.ports, port_choice.candidates(self.folder), port_choice.is_free
            )
            if moved := [
                port for port in wanted if port in state.ports and state.ports[port] != chosen[port]
            ]:
                self.progress.say(f"port {state.ports[moved[0]]} is taken by another program; {name} moves")
            save(self.folder, replace(state, ports={**state.ports, **chosen}))
            return chosen

    def _postgres_home(self) -> Path:
        with self._guarding:
            state = load(self.folder)
            if state.postgres_home is None:
                state = replace(state, postgres_home=str(choose_postgres_home(self.folder)))
                save(self.folder, state)
            return Path(state.postgres_home or "")

    def _status_of(self, name: str, state: State) -> ServiceStatus:
        process, port = state.processes.get(name), state.ports.get(name)
        if process is None or port is None:
            word = "stopped"
        elif not is_alive(process):
            word = "dead"
        else:
            word = "running" if _ASK[name](port) else "silent"
        pid = process.pid if process is not None and word in {"running", "silent"} else None
        return ServiceStatus(name=name, state=word, pid=pid, port=port, log=self.log(name))


def service_port(service: Service, ports: Mapping[str, int]) -> int:
    """Return the port that clients of the service use."""
    return ports[service.port_names[0]]


def keep_short(log: Path, *, limit: int = 8 * 1024 * 1024) -> None:
    """Put a log of more than *limit* bytes aside as `.1`, replacing the one that lies there."""
    with suppress(FileNotFoundError):
        if log.stat().st_size > limit:
            log.replace(log.with_suffix(".log.1"))


@contextmanager
def held_stack(settings: StackSettings, progress: Progress | None = None) -> Iterator[Stack]:
    """Run a stack for the block; it ends with the block, and with this process in any case."""
    stack = Stack(settings, progress=progress)
    stack.up(hold=True)
    try:
        yield stack
    finally:
        stack.down()
