"""What a stack remembers in its folder between two commands: ports, processes, and where Postgres keeps its data."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from packhorse.core.errors import SettingsError
from packhorse.local.errors import StackFailed
from packhorse.local.processes import Identity, wait_until

FORMAT = 1
FILE = "state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """
    The remembered facts of one folder.

    Attributes:
        ports: By name (`kafka`, `kafka_controller`, `postgres`, …); kept over stops and starts.
        processes: By service; one that died is still here until somebody notices.
        postgres_home: Folder of the database's files; outside the stack's folder when root had to go elsewhere.
    """

    ports: Mapping[str, int] = field(default_factory=dict)
    processes: Mapping[str, Identity] = field(default_factory=dict)
    postgres_home: str | None = None

    def with_process(self, service: str, process: Identity | None) -> "State":
        """Return the state with the service's process set, or forgotten when it is None."""
        others = {name: known for name, known in self.processes.items() if name != service}
        return replace(self, processes=others if process is None else others | {service: process})


def encode(state: State) -> str:
    """Return the state file's text."""
    return json.dumps({"format": FORMAT, **asdict(state)}, indent=2, sort_keys=True) + "\n"


def decode(text: str) -> State:
    """
    Read a state file's text.

    Raises:
        ValueError: It is cut, of another form, or of another version.
    """
    found = json.loads(text)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"format {FORMAT} is expected")
    try:
        processes = {name: Identity(**process) for name, process in found["processes"].items()}
        ports = {str(name): int(port) for name, port in found["ports"].items()}
        return State(ports=ports, processes=processes, postgres_home=found["postgres_home"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a field is missing or of a wrong form: {error}") from error


def load(folder: Path) -> State:
    """
    Return what the folder remembers; an empty state when it remembers nothing.

    Raises:
        SettingsError: The file is there and can't be read as a state.
    """
    path = folder / FILE
    try:
        return decode(path.read_text())
    except FileNotFoundError:
        return State()
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"{path} is no state of a local stack ({error}). If no service of it runs any more, delete the file"
            " and start again"
        ) from error


def save(folder: Path, state: State) -> None:
    """Replace the state file in one step: a crash leaves the old one or the new one, never a part."""
    partial = folder / f"{FILE}.partial"
    with partial.open("w") as file:
        file.write(encode(state))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / FILE)


@contextmanager
def locked(
    path: Path, *, what: str, within: float, when_waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """
    Hold the file lock *path* for the block; the kernel lets it go when the process ends, however it ends.

    When somebody else holds it, *when_waiting* is called once.

    Raises:
        StackFailed: Somebody else held it for longer than *within* seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        if not _try_lock(file.fileno()):
            when_waiting()
        if not wait_until(lambda: _try_lock(file.fileno()), within=within):
            raise StackFailed(
                f"another command has held {what} ({path}) for {within:g} s; wait for it or stop it"
            )
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
