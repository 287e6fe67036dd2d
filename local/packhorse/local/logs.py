"""Print and follow the services' logs."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from packhorse.local.places import log_file, tail

_PAUSE = 0.2
_AT_MOST = 1 << 20

Emit = Callable[[str], None]


def print_tails(folder: Path, services: Sequence[str], lines: int, emit: Emit) -> bool:
    """Print the end of each log, with the service's name before each line when there are several; False: no log is there."""
    paths = [path for name in services if (path := log_file(folder, name)).exists()]
    for path in paths:
        for line in tail(path, lines) if lines else []:
            emit(_named(path, line, services))
    return bool(paths)


def follow_logs(
    folder: Path, services: Sequence[str], emit: Emit, stopped: threading.Event | None = None
) -> None:
    """Print what the services write from now on, until *stopped* is set or the caller is interrupted."""
    pause = stopped or threading.Event()
    readers = [_Reader(log_file(folder, name)) for name in services]
    while not pause.wait(_PAUSE):
        for reader in readers:
            for line in reader.lines():
                emit(_named(reader.path, line, services))


class _Reader:
    """Reads whole lines at the end of one log, also of the next file of that name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._partial = b""
        if path.exists():
            self._file = path.open("rb")
            self._file.seek(0, 2)

    def lines(self) -> list[str]:
        if self._file is None or self._was_replaced(self._file):
            self._reopen()
        if self._file is None:
            return []
        *whole, self._partial = (self._partial + self._file.read(_AT_MOST)).split(b"\n")
        return [line.decode(errors="replace") for line in whole]

    def _was_replaced(self, file: BinaryIO) -> bool:
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return False
        return now.st_ino != _inode(file) and not file.peek(1)  # type: ignore[attr-defined]

    def _reopen(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self.path.open("rb") if self.path.exists() else None
        self._partial = b""


def _inode(file: BinaryIO) -> int:
    import os

    return os.fstat(file.fileno()).st_ino


def _named(path: Path, line: str, services: Sequence[str]) -> str:
    return line if len(services) == 1 else f"{path.stem:8} │ {line}"
