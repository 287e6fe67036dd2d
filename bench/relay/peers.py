"""The other libraries, each in a virtual environment of its own, at pinned versions."""

import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from packhorse.local.places import cache_folder

# All that pip resolved when they were tuned, so that a later run measures the same.
PINS: dict[str, tuple[str, ...]] = {
    "txoutbox": ("txoutbox==0.2.2", "asyncpg==0.32.0", "aiokafka==0.14.0", "async-timeout==5.0.1", "packaging==26.4",
                 "typing-extensions==4.16.0", "uvloop==0.23.0"),
    "faststream": ("faststream-outbox==0.19.0", "faststream==0.7.8", "fast-depends==3.0.9", "sqlalchemy==2.1.9",
                   "greenlet==3.5.6", "asyncpg==0.32.0", "pydantic==2.14.4", "pydantic-core==2.50.5",
                   "annotated-types==0.8.0", "typing-inspection==0.4.5", "anyio==4.16.0", "idna==3.20",
                   "confluent-kafka==2.16.1", "async-timeout==5.0.1", "typing-extensions==4.16.0", "uvloop==0.23.0"),
}  # fmt: skip


def _home(name: str) -> Path:
    mark = hashlib.sha256(" ".join((sys.version, *PINS[name])).encode()).hexdigest()[:12]
    return cache_folder(os.environ, Path.home()) / "bench" / f"{name}-{mark}"


def python(name: str) -> Path:
    """Return the interpreter of the peer's environment."""
    return _home(name) / "bin" / "python"


@cache
def missing(name: str) -> str | None:
    """Make the environment when there is none; return why it can't be made, or None."""
    home = _home(name)
    if (home / "complete").exists():
        return None
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
         *PINS[name]],
    )  # fmt: skip
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"its environment can't be made: {done.stderr.strip().splitlines()[-1:]}"
    (home / "complete").touch()
    return None
