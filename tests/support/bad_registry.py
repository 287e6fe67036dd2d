"""A registry that misbehaves on a real socket, in each of the ways that a registry or what stands before it can."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Behaviour = Callable[[socket.socket, threading.Event], None]
_PAUSE = 0.02


def answer(status: str, body: bytes = b"", *headers: str, keep: bool = False) -> Behaviour:
    """Answer one request with *status* and *body*; *keep* lets the client believe that the connection stays."""
    ours = [f"Content-Length: {len(body)}", *([] if keep else ["Connection: close"])]
    head = "\r\n".join([f"HTTP/1.1 {status}", *ours, *headers, "", ""]).encode()

    def behave(connection: socket.socket, stopped: threading.Event) -> None:
        del stopped
        connection.recv(65_536)
        connection.sendall(head + body)

    return behave


def say_nothing(connection: socket.socket, stopped: threading.Event) -> None:
    """Take the request and never answer."""
    del connection
    stopped.wait()


def hang_up(connection: socket.socket, stopped: threading.Event) -> None:
    """Take the request and close the connection."""
    del stopped
    connection.recv(65_536)


def reset(connection: socket.socket, stopped: threading.Event) -> None:
    """Take the request and reset the connection."""
    del stopped
    connection.recv(65_536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


def speak_another_protocol(connection: socket.socket, stopped: threading.Event) -> None:
    """Answer what is no HTTP."""
    del stopped
    connection.recv(65_536)
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")


def drip(head: bytes, *, forever: bytes) -> Behaviour:
    """Send *head*, then *forever* again and again in small pieces, each well within a time-out for one read."""

    def behave(connection: socket.socket, stopped: threading.Event) -> None:
        connection.recv(65_536)
        connection.sendall(head)
        while not stopped.wait(_PAUSE):
            connection.sendall(forever)

    return behave


drip_headers = drip(b"HTTP/1.1 200 OK\r\n", forever=b"X: y\r\n")
drip_body = drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", forever=b" ")


def cut_body(connection: socket.socket, stopped: threading.Event) -> None:
    """Answer with less than was announced."""
    del stopped
    connection.recv(65_536)
    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"schema": "x"}')


class BadRegistry:
    """
    Attributes:
        url: Where it listens.
        behaviour: How the next connections are treated; may be changed at any time.
        connections: How many there were.
    """

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.connections = 0
        self._stopped = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def stop(self) -> None:
        """End all connections and wait for the threads."""
        self._stopped.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=5)

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(5)
        with connection:
            try:
                self.behaviour(connection, self._stopped)
            except OSError:
                return


@contextmanager
def bad_registry(behaviour: Behaviour) -> Iterator[BadRegistry]:
    """Run a registry that behaves so."""
    server = BadRegistry(behaviour)
    try:
        yield server
    finally:
        server.stop()
