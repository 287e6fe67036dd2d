"""The state file of one folder, read and changed from several threads."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from packhorse.local import ports as port_choice
from packhorse.local.build import choose_postgres_home
from packhorse.local.processes import Identity, is_alive
from packhorse.local.progress import Progress
from packhorse.local.state import State, load, save


class Memory:
    """What a folder remembers; every change is on disk when the method returns."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self.folder = folder
        self.progress = progress
        self._changing = threading.Lock()

    @property
    def state(self) -> State:
        """What is on disk now."""
        return load(self.folder)

    @property
    def ports(self) -> Mapping[str, int]:
        """The remembered ports by name."""
        return self.state.ports

    def remember(self, service: str, process: Identity | None) -> None:
        """Set the service's process, or forget it."""
        with self._changing:
            save(self.folder, self.state.with_process(service, process))

    def living(self) -> dict[str, Identity]:
        """Return the processes that live, and forget those that do not: killed, crashed, or from before a reboot."""
        with self._changing:
            state = self.state
            dead = [name for name, process in state.processes.items() if not is_alive(process)]
            for name in dead:
                self.progress.say(
                    f"{name} (pid {state.processes[name].pid}) is gone without having been stopped"
                )
                state = state.with_process(name, None)
            if dead:
                save(self.folder, state)
            return dict(state.processes)

    def claim_ports(self, wanted: Sequence[str]) -> dict[str, int]:
        """Return a free port for each name: the remembered one where it is still free."""
        with self._changing:
            state = self.state
            chosen = port_choice.assign(
                wanted, state.ports, port_choice.candidates(self.folder), port_choice.is_free
            )
            for name in moved(state.ports, chosen):
                self.progress.say(
                    f"port {state.ports[name]} ({name}) is taken by another program: now {chosen[name]}"
                )
            save(self.folder, replace(state, ports={**state.ports, **chosen}))
            return chosen

    def postgres_home(self) -> Path:
        """Return where the database's files lie; chosen once and then kept."""
        with self._changing:
            state = self.state
            home = Path(state.postgres_home or choose_postgres_home(self.folder))
            if state.postgres_home is None:
                save(self.folder, replace(state, postgres_home=str(home)))
            return home


def moved(before: Mapping[str, int], after: Mapping[str, int]) -> Iterable[str]:
    """
    Return the names whose port has changed.

    >>> list(moved({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}))
    ['b']
    """
    return [name for name, port in after.items() if name in before and before[name] != port]
