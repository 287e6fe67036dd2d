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


def tail(path: Path, lines: int) -> list[str]:
    """Return the last lines of a file, reading at most its last 256 KiB; none when it is not there."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 256 * 1024))
            return file.read().decode(errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []
