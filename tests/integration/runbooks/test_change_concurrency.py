"""The runbook's commands, as they are written, while messages flow: nothing lost, doubled or out of order."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.support.pages import command
from tests.support.processing import GROUP, Ground, noting
from tests.support.wait import eventually

PAGE = "runbooks/change-concurrency.md"
MODULE = "from tests.support.processing import noting\napp = noting({namespace!r})\n"
KEYS = 5


@pytest.fixture
def folder(wide_ground: Ground, tmp_path: Path) -> Path:
    """Provide a folder with the application and the commands `packhorse` and its settings."""
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/app.py").write_text(MODULE.format(namespace=wide_ground.namespace))
    (tmp_path / "packhorse").write_text(f'#!/bin/sh\nexec {sys.executable} -m packhorse.cli.main "$@"\n')
    (tmp_path / "packhorse").chmod(0o755)
    return tmp_path


class Shell:
    """A shell that runs blocks of the page."""

    def __init__(self, ground: Ground, folder: Path) -> None:
        path = [*filter(None, [os.environ.get("PYTHONPATH")]), str(Path.cwd()), str(folder)]
        self._environ = (
            os.environ
            | ground.environ
            | {
                "PATH": f"{folder}:{os.environ['PATH']}",
                "PYTHONPATH": os.pathsep.join(path),
                "PACKHORSE_PROCESSOR_COMMIT_INTERVAL": "0.05",
            }
        )
        self._folder = folder

    def run(self, block: str) -> int:
        """Run *block* and return its exit code."""
        done = subprocess.run(
            ["bash", "-uc", block],
            env=self._environ,
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.returncode

    @contextmanager
    def daemon(self, block: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run the daemon that *block* starts meanwhile, in the foreground of its shell."""
        line = "exec " + block.strip().removesuffix("& NEW=$!")
        process = subprocess.Popen(["bash", "-uc", line], env=self._environ, cwd=self._folder)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@contextmanager
def traffic(ground: Ground) -> Iterator[list[int]]:
    """Send numbered messages of a few keys, without a pause, until the block is left; hands out how many are sent."""
    over, sent = threading.Event(), list[int]()

    def send() -> None:
        while not over.wait(0.01):
            key = len(sent) % KEYS
            ground.send(len(sent), key=b"%d" % key, partition=key % ground.partitions)
            sent.append(len(sent))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join(20)


@pytest.mark.case("P-18")
def test_the_commands_change_concurrency_while_messages_flow(wide_ground: Ground, folder: Path) -> None:
    """Fails when a command of the page is not so any more, or when a process that leaves loses or doubles what it had."""
    ground, shell = wide_ground, Shell(wide_ground, folder)
    ground.make_topics(noting(ground.namespace))
    start = command(PAGE, "start")
    joined = command(PAGE, "joined", **{f"--group {GROUP}": "--group figures"})
    with shell.daemon(start.replace("--concurrency 8", "--concurrency 2")) as old, traffic(ground) as sent:
        eventually(lambda: len(ground.results()) > 20, what="the old process works", timeout=40)
        with psycopg.connect(ground.database) as connection:
            assert connection.execute(command(PAGE, "sql").encode()).fetchone() is not None
        with shell.daemon(start) as new:
            eventually(lambda: shell.run(joined) == 0, what="the new one has joined", timeout=60)
            assert shell.run(f"OLD={old.pid}\n" + command(PAGE, "leave")) == 0
            assert old.wait(60) == 0
            paused = command(PAGE, "pause", **{f"--group {GROUP}": "--group figures"})
            resumed = command(PAGE, "resume", **{f"--group {GROUP}": "--group figures"})
            assert shell.run(paused) == 0
            assert shell.run(resumed) == 0
            after = len(sent)
            eventually(lambda: len(ground.results()) > after, what="the new one works alone", timeout=60)
            finish(ground, sent)
            new.terminate()
            assert new.wait(60) == 0


def finish(ground: Ground, sent: list[int]) -> None:
    """Check that what was sent so far is done once each, and in order of each key."""
    wanted = list(sent)
    eventually(lambda: set(wanted) <= set(ground.results()), what="all is done", timeout=60)
    found = ground.results()
    assert len(found) == len(set(found))
    for key in range(KEYS):
        mine = [n for n in found if n % KEYS == key]
        assert mine == sorted(mine)
