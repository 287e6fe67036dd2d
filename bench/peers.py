"""Other libraries, each in a virtual environment of its own, at versions pinned with hashes."""

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from packhorse.local.places import cache_folder

_WHY: dict[Path, str | None] = {}
"""What making each environment has come to in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """
    The environments of one benchmark.

    Attributes:
        requirements: Folder with a `<name>.txt` for each.
        prefix: Begins the names of their folders in the cache.
    """

    requirements: Path
    prefix: str

    def _home(self, name: str) -> Path:
        pins = (self.requirements / f"{name}.txt").read_bytes()
        mark = hashlib.sha256(sys.version.encode() + pins).hexdigest()[:12]
        return cache_folder(os.environ, Path.home()) / "bench" / f"{self.prefix}-{name}-{mark}"

    def python(self, name: str) -> Path:
        """Return the interpreter of the peer's environment."""
        return self._home(name) / "bin" / "python"

    def version(self, name: str, package: str) -> str:
        """Return the pinned version of a package."""
        lines = (self.requirements / f"{name}.txt").read_text().splitlines()
        pin = next(line for line in lines if line.startswith(f"{package}=="))
        return pin.removeprefix(f"{package}==").split()[0]

    def missing(self, name: str) -> str | None:
        """Make the environment when there is none; return why it can't be made, or None."""
        home = self._home(name)
        if home not in _WHY:
            _WHY[home] = None if (home / "complete").exists() else self._made(name, home)
        return _WHY[home]

    def _made(self, name: str, home: Path) -> str | None:
        steps = (
            [sys.executable, "-m", "venv", "--clear", str(home)],
            [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes",
             "-r", str(self.requirements / f"{name}.txt")],
        )  # fmt: skip
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode:
                return f"its environment can't be made: {done.stderr.strip().splitlines()[-1:]}"
        (home / "complete").touch()
        return None
