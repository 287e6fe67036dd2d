"""Where things lie: the cache of a user, the folder of a stack, and the files below each."""

from collections.abc import Mapping
from pathlib import Path

FOLDER = ".packhorse"
CACHE_VARIABLE = "PACKHORSE_CACHE_DIR"
# Where root keeps what an unprivileged Postgres must reach when the stack's own folder is closed to it.
SHARED = Path("/var/lib/packhorse")


def cache_folder(environment: Mapping[str, str], home: Path) -> Path:
    """
    Return the folder of downloads: PACKHORSE_CACHE_DIR, else `packhorse` in the XDG cache folder, else ~/.cache.

    >>> cache_folder({"XDG_CACHE_HOME": "/c"}, Path("/home/ann"))
    PosixPath('/c/packhorse')
    """
    if own := environment.get(CACHE_VARIABLE):
        return Path(own).expanduser().absolute()
    xdg = environment.get("XDG_CACHE_HOME", "")
    base = (
        Path(xdg) if xdg.startswith("/") else home / ".cache"
    )  # the XDG rule: a relative path counts as unset
    return base / "packhorse"


def log_file(folder: Path, service: str) -> Path:
    """Return where a service of the stack in *folder* writes."""
    return folder / "logs" / f"{service}.log"


def tail(path: Path, lines: int, *, after: int = 0) -> list[str]:
    """Return the last lines of a file, from byte *after* on and of its last 256 KiB at most; none when it is not there."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(after, size - 256 * 1024))
            return file.read().decode(errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []


def size_of(path: Path) -> int:
    """Return a file's size in bytes; 0 when it is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
