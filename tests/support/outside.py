"""
An outside system in a process of its own: HTTP, and a ledger in a file that outlives it.

`python -m tests.support.outside LEDGER PORT [honours] [mute]` serves until it is killed. What a request says in `X-How`, any of
these words, happens to it:

    refuse       nothing is done, the answer is 503
    hold         it is done only once somebody calls `/release`
    twice        it is done two times
    lose         it is done, and the connection is closed without an answer
    hold-answer  it is done, and answered only once somebody calls `/release`
    die          it is done, and the whole system is killed

`honours`: a repeated `Idempotency-Key` gets the first answer and is not done again. `mute`: it can't say whether a key was done.
"""

import os
import signal
import socket
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, ClassVar

import httpx
from tests.support.wait import eventually

from packhorse.processor import CANT_TELL, DID_NOT_HAPPEN, Happened

TABLES = """
CREATE TABLE IF NOT EXISTS done (at INTEGER PRIMARY KEY, key TEXT, what TEXT);
CREATE TABLE IF NOT EXISTS seen (at INTEGER PRIMARY KEY, key TEXT, what TEXT);
"""


class Desk(BaseHTTPRequestHandler):
    """Answer one request."""

    ledger: ClassVar[str]
    honours: ClassVar[bool]
    mute: ClassVar[bool]
    gate: ClassVar[threading.Event] = threading.Event()
    writing: ClassVar[threading.Lock] = threading.Lock()

    def log_message(self, *more: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        key = self.path.rpartition("/")[2]
        found = self._execute("SELECT at FROM done WHERE key = ? ORDER BY at", key)
        status = 501 if self.mute else 200 if found else 404
        self._answer(status, str(found[0][0]) if found else "")

    def do_POST(self) -> None:
        if self.path == "/release":
            self.gate.set()
            self._answer(200, "")
            return
        self._do()

    def _do(self) -> None:
        key, how = self.headers["Idempotency-Key"], self.headers.get("X-How", "").split()
        what = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._execute("INSERT INTO seen (key, what) VALUES (?, ?)", key, what)
        if "refuse" in how:
            self._answer(503, "")
            return
        if "hold" in how:
            self.gate.wait(60)
        done = self._book(key, what)
        if "twice" in how:
            self._book(key, what)
        if "die" in how:
            os.kill(os.getpid(), signal.SIGKILL)
        if "hold-answer" in how:
            self.gate.wait(60)
        if "lose" in how:
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._answer(200, done)

    def _book(self, key: str, what: str) -> str:
        with self.writing:
            known = self._execute("SELECT at FROM done WHERE key = ? ORDER BY at", key)
            if not (known and self.honours):
                self._execute("INSERT INTO done (key, what) VALUES (?, ?)", key, what)
            return str(self._execute("SELECT min(at) FROM done WHERE key = ?", key)[0][0])

    def _execute(self, text: str, *values: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.ledger, timeout=10)) as connection, connection:
            return connection.execute(text, values).fetchall()

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


class Refused(Exception):
    """The outside system says that it has done nothing."""


class Client:
    """What an application reaches it with."""

    def __init__(self, url: str, *, timeout: float = 1.0) -> None:
        self.url, self.timeout = url, timeout

    def do(self, key: str, what: str, how: str = "") -> dict[str, int]:
        """
        Have it done, and return the number under which it was booked.

        Raises:
            Refused: Surely nothing was done.
            httpx.HTTPError: No answer came.
        """
        headers = {"Idempotency-Key": key, "X-How": how}
        answer = httpx.post(f"{self.url}/effects", content=what, headers=headers, timeout=self.timeout)
        if answer.status_code == 503:
            raise Refused("it is closed")
        return {"number": int(answer.text)}

    def was_done(self, key: str) -> Any:
        """Be the `verify` of an effect."""
        answer = httpx.get(f"{self.url}/effects/{key}", timeout=self.timeout)
        if answer.status_code == 501:
            return CANT_TELL
        return Happened({"number": int(answer.text)}) if answer.status_code == 200 else DID_NOT_HAPPEN


class Outside:
    """The process, its ledger, and a way to let go what it holds."""

    def __init__(self, ledger: Path, *flags: str) -> None:
        self._ledger, self._flags = ledger, flags
        self._port = 0
        self._process: Popen[str] | None = None
        with closing(sqlite3.connect(ledger)) as connection:
            connection.executescript(TABLES)
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it, at the port that it had."""
        self.kill()
        arguments = ["-m", "tests.support.outside", str(self._ledger), str(self._port), *self._flags]
        self._process = Popen([sys.executable, *arguments], stdout=PIPE, text=True)
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())

    def kill(self) -> None:
        """Kill it with SIGKILL, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def until_dead(self) -> None:
        """Wait until it has killed itself."""
        process = self._process
        assert process is not None
        eventually(lambda: process.poll() is not None, what="the outside system is dead")

    def release(self) -> None:
        """Let go what is held, from now on."""
        httpx.post(f"{self.url}/release", timeout=5)

    def seen(self, what: str) -> list[str]:
        """Return the idempotency keys of the requests for *what* that have arrived."""
        return self._keys("SELECT key FROM seen WHERE what = ? ORDER BY at", what)

    def done(self, what: str) -> list[str]:
        """Return the idempotency keys under which *what* was done, each time that it was."""
        return self._keys("SELECT key FROM done WHERE what = ? ORDER BY at", what)

    def _keys(self, query: str, what: str) -> list[str]:
        with closing(sqlite3.connect(self._ledger, timeout=10)) as connection:
            return [row[0] for row in connection.execute(query, (what,))]


@contextmanager
def outside_system(ledger: Path, *flags: str) -> Iterator[Outside]:
    """Run one meanwhile."""
    made = Outside(ledger, *flags)
    try:
        yield made
    finally:
        made.kill()


def main(ledger: str, port: str, *flags: str) -> None:
    """Serve until killed; the first line that it prints is the port."""
    Desk.ledger, Desk.honours, Desk.mute = ledger, "honours" in flags, "mute" in flags
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Desk)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
