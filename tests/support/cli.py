"""Run the command line: in this process for speed, or as a process of its own where that matters."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from packhorse.cli.main import run


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Return what it printed, read as JSON."""
        return json.loads(self.out)


def packhorse(*arguments: object, given: str = "", **environ: str) -> Ran:
    """
    Run `packhorse` with *arguments*, *given* on standard input and *environ* as its only PACKHORSE_ variables.

    The whole command line runs, error handler and exit code too, but in this process.
    """
    out, err = io.StringIO(), io.StringIO()
    with (
        _environment(environ),
        _streams(io.StringIO(given), ["packhorse", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            run()
        except SystemExit as leaving:
            code = leaving.code
    assert isinstance(code, int)
    return Ran(code=code, out=out.getvalue(), err=err.getvalue())


def packhorse_process(*arguments: object, given: str = "", timeout: float = 60, **environ: str) -> Ran:
    """Run `packhorse` as `packhorse` does, in a process of its own, with pipes instead of a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "packhorse.cli.main", *map(str, arguments)],
        env=_without_ours() | environ,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    return Ran(code=done.returncode, out=done.stdout, err=done.stderr)


@contextlib.contextmanager
def packhorse_started(*arguments: object, **environ: str) -> Iterator["subprocess.Popen[str]"]:
    """Run `packhorse` as a process of its own meanwhile; at the end of the block it is killed, if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "packhorse.cli.main", *map(str, arguments)],
        env=_without_ours() | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with ended(process):
        yield process


@contextlib.contextmanager
def ended(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Kill *process* at the end of the block, if it still runs, and close its pipes: else another test is told of them."""
    try:
        yield
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def _without_ours() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PACKHORSE_")}


@contextlib.contextmanager
def _environment(environ: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update({name: value for name, value in before.items() if not name.startswith("PACKHORSE_")})
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _streams(stdin: io.StringIO, argv: list[str]) -> Iterator[None]:
    before = sys.stdin, sys.argv
    sys.stdin, sys.argv = stdin, argv
    try:
        yield
    finally:
        sys.stdin, sys.argv = before
