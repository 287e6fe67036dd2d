"""Run a command as an unprivileged user, also when the tests run as root."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_USER = 65_534  # nobody


def as_normal_user(argv: Sequence[str]) -> list[str]:
    """
    Return *argv* so that it runs without root's rights.

    As root it runs as nobody, who may still pass closed folders: the interpreter may lie in one.
    """
    if os.geteuid() != 0:
        return list(argv)
    passing = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    return ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", *passing, *argv]


def give_to_normal_user(folder: Path) -> None:
    """Make *folder* theirs."""
    if os.geteuid() == 0:
        os.chown(folder, _USER, _USER)


def cache_for_normal_user(cache: Path, folder: Path) -> Path:
    """Return a cache of downloads that they can use: *cache* itself, or when we are root a copy by hard links in *folder*."""
    if os.geteuid() != 0:
        return cache
    copy = folder / "cache"
    shutil.copytree(cache, copy, copy_function=link_or_copy)
    for path in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        os.chown(path, _USER, _USER)
    (copy / "lock").unlink(missing_ok=True)
    return copy


def link_or_copy(source: str, target: str) -> None:
    """Link a file, or copy it where it lies on another file system; for shutil.copytree."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def run_as_normal_user(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(as_normal_user(argv), env=env, cwd=cwd, capture_output=True, text=True, check=False)
