"""A real Kafka, Postgres and schema registry in one folder: start, stop, ask, kill."""

import os
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from packhorse.core.clock import SYSTEM_CHANCE, Chance
from packhorse.core.errors import SettingsError
from packhorse.local import settings as addresses
from packhorse.local.asking import ServiceStatus, answers, status_of
from packhorse.local.build import Builder, Factory, delete_home
from packhorse.local.errors import NotRunning
from packhorse.local.kafka import Broker
from packhorse.local.launcher import Launcher
from packhorse.local.memory import Memory
from packhorse.local.places import log_file
from packhorse.local.postgres import Database
from packhorse.local.processes import Identity, end, is_alive, kill, signal_family, wait_until
from packhorse.local.progress import Progress, Silence
from packhorse.local.registry import Registry
from packhorse.local.settings import SERVICES, Endpoints, StackSettings
from packhorse.local.starting import Starter, failure
from packhorse.local.state import FILE, locked

_LOCK_WITHIN = 900.0  # a first start may fetch 200 MB over a slow line
_STOP_WITHIN = 30.0
_STOP_SIGNALS = {
    "kafka": Broker.stop_signal,
    "postgres": Database.stop_signal,
    "registry": Registry.stop_signal,
}


class Stack:
    """
    The stack of one folder; another process may work on the same folder, a file lock orders them.

    `up()` leaves the services running when this process ends. `up(hold=True)` does not: they end with this process,
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
        self._memory = Memory(settings.folder, self.progress)
        self._launcher: Launcher | None = None
        self._starting = threading.Lock()

    @property
    def folder(self) -> Path:
        """The folder it lives in."""
        return self.settings.folder

    @property
    def ports(self) -> Mapping[str, int]:
        """The remembered ports by name."""
        return self._memory.ports

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
        state = self._memory.state
        return [status_of(name, state, self.folder) for name in self.settings.services]

    def process(self, service: str) -> Identity:
        """
        Return the process of a service.

        Raises:
            NotRunning: It has none.
        """
        found = self._memory.state.processes.get(service)
        if found is None or not is_alive(found):
            raise NotRunning(f"{service} does not run in {self.folder}; start it with `packhorse dev up`")
        return found

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
        with self._locked():
            living = self._memory.living()
            for name in living:
                self._check_answers(name)
            missing = [name for name in self.settings.services if name not in living]
            if missing:
                self._bring_up(missing, hold=hold)
        return missing

    def down(self) -> list[str]:
        """Stop all services that run, cleanly, and return their names; their data stays."""
        if not self.folder.is_dir():
            return []
        with self._locked():
            return self._stop_all()

    def reset(self) -> list[str]:
        """Stop all services and delete their data, logs and remembered ports; downloads stay in the cache."""
        if not self.folder.is_dir():
            return []
        with self._locked():
            running = self._stop_all()
            if home := self._memory.state.postgres_home:
                delete_home(Path(home))
            for name in (*SERVICES, "logs"):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / FILE).unlink(missing_ok=True)
            return running

    def start(self, service: str) -> None:
        """Start one service on its port and data, to end with this process, and wait until it answers; nothing when it runs."""
        self._make_folder()
        with self._starting:
            if service not in self._memory.living():
                self._bring_up([service], hold=True)

    def stop(self, service: str) -> None:
        """Stop one service cleanly and wait until it is gone; kill it when it takes longer than 30 s."""
        process = self._memory.state.processes.get(service)
        if process is not None and not end(process, _STOP_SIGNALS[service], within=_STOP_WITHIN):
            self.progress.say(f"{service} did not stop within {_STOP_WITHIN:g} s and was killed")
        self._memory.remember(service, None)

    def kill(self, service: str) -> None:
        """Kill one service with SIGKILL, its child processes too, and wait until it is gone."""
        kill(self.process(service))
        self._memory.remember(service, None)

    def pause(self, service: str) -> None:
        """Freeze one service and its child processes with SIGSTOP: connections stay, nothing answers."""
        signal_family(self.process(service), signal.SIGSTOP)

    def resume(self, service: str) -> None:
        """Let a frozen service go on."""
        signal_family(self.process(service), signal.SIGCONT)

    def _locked(self) -> AbstractContextManager[None]:
        waiting = f"waiting for another command on {self.folder}"
        return locked(
            self.folder / "lock",
            what="this stack",
            within=_LOCK_WITHIN,
            when_waiting=lambda: self.progress.say(waiting),
        )

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

    def _bring_up(self, names: Sequence[str], *, hold: bool) -> None:
        for name in names:
            if name not in self._factories:
                self._factories[name] = self._builder.factory(name, self._memory.postgres_home())
        self.progress.say(f"starting {', '.join(names)}")
        launcher = self._launcher or Launcher(log_file(self.folder, "guard"))
        try:
            Starter(self.settings, self._memory, launcher).start(
                {name: self._factories[name] for name in names}
            )
        except BaseException:
            self.progress.say("stopping again what was started")
            for name in names:
                self.stop(name)
            if launcher is not self._launcher:
                launcher.end()
            raise
        if hold:
            self._launcher = launcher
        else:
            launcher.release()

    def _check_answers(self, name: str) -> None:
        within = self.settings.start_within
        if not wait_until(lambda: answers(name, self.ports[name]), within=within):
            raise failure(
                log_file(self.folder, name),
                f"{name} runs (pid {self.process(name).pid}) and does not answer on port {self.ports[name]} after"
                f" {within:g} s; stop it with `packhorse dev down` and start again",
            )

    def _stop_all(self) -> list[str]:
        living = self._memory.living()
        running = [name for name in SERVICES if name in living]
        with ThreadPoolExecutor(len(SERVICES), thread_name_prefix="packhorse-stop") as pool:
            list(pool.map(self.stop, running))
        if self._launcher is not None:
            self._launcher.end()
            self._launcher = None
        return running


@contextmanager
def held_stack(settings: StackSettings, progress: Progress | None = None) -> Iterator[Stack]:
    """Run a stack for the block; it ends with the block, and with this process in any case."""
    stack = Stack(settings, progress=progress)
    stack.up(hold=True)
    try:
        yield stack
    finally:
        stack.down()
