"""Print and follow the services' logs."""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from packhorse.local.places import log_file

_PAUSE = 0.2
_TAIL_BYTES = 256 * 1024
_PIECE = 1 << 20

Emit = Callable[[str], None]


def print_logs(
    folder: Path,
    services: Sequence[str],
    emit: Emit,
    *,
    lines: int,
    follow: bool = False,
    stopped: threading.Event | None = None,
) -> bool:
    """
    Print the last *lines* of each log, the service's name before each when there are several.

    With *follow*, go on with what is written after that, until *stopped* is set or the caller is interrupted; no line
    in between is left out.

    Returns:
        False when there is no log.
    """
    pause = stopped or threading.Event()
    with ExitStack() as closing:
        readers = [_Reader(log_file(folder, name)) for name in services]
        for reader in readers:
            closing.callback(reader.close)
            for line in reader.tail(lines, whole_only=follow):
                emit(_named(reader.path, line, services))
        if not any(reader.is_open for reader in readers):
            return False
        while follow and not pause.wait(_PAUSE):
            for reader in readers:
                for line in reader.news():
                    emit(_named(reader.path, line, services))
    return True


class _Reader:
    """Reads one log from its end on, and then the next file of that name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._partial = b""
        self._open()

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def tail(self, lines: int, *, whole_only: bool) -> list[str]:
        if self._file is None:
            return []
        self._file.seek(max(0, self._file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        found = self._whole_lines(self._file.read())
        if self._partial and not whole_only:
            found.append(self._partial.decode(errors="replace"))
        return found[-lines:] if lines else []

    def news(self) -> list[str]:
        if self._file is None:
            self._open()
        if self._file is None:
            return []
        if read := self._file.read(_PIECE):
            return self._whole_lines(read)
        if self._was_replaced(self._file):
            self.close()
        return []

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None
        self._partial = b""

    def _open(self) -> None:
        if self.path.exists():
            self._file = self.path.open("rb")

    def _whole_lines(self, read: bytes) -> list[str]:
        *whole, self._partial = (self._partial + read).split(b"\n")
        return [line.decode(errors="replace") for line in whole]

    def _was_replaced(self, file: BinaryIO) -> bool:
        try:
            return self.path.stat().st_ino != os.fstat(file.fileno()).st_ino
        except FileNotFoundError:
            return False


def _named(path: Path, line: str, services: Sequence[str]) -> str:
    return line if len(services) == 1 else f"{path.stem:8} │ {line}"
