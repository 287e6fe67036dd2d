"""The other libraries, each in a virtual environment of its own, at versions pinned with hashes under `peers/`."""

import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from packhorse.local.places import cache_folder

REQUIREMENTS = Path(__file__).parent / "peers"


def _home(name: str) -> Path:
    pins = (REQUIREMENTS / f"{name}.txt").read_bytes()
    mark = hashlib.sha256(sys.version.encode() + pins).hexdigest()[:12]
    return cache_folder(os.environ, Path.home()) / "bench" / f"processor-{name}-{mark}"


def python(name: str) -> Path:
    """Return the interpreter of the peer's environment."""
    return _home(name) / "bin" / "python"


def version(name: str, package: str) -> str:
    """Return the pinned version of a package."""
    lines = (REQUIREMENTS / f"{name}.txt").read_text().splitlines()
    pin = next(line for line in lines if line.startswith(f"{package}=="))
    return pin.removeprefix(f"{package}==").split()[0]


@cache
def missing(name: str) -> str | None:
    """Make the environment when there is none; return why it can't be made, or None."""
    home = _home(name)
    if (home / "complete").exists():
        return None
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes",
         "-r", str(REQUIREMENTS / f"{name}.txt")],
    )  # fmt: skip
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"its environment can't be made: {done.stderr.strip().splitlines()[-1:]}"
    (home / "complete").touch()
    return None
