"""The server: one process, one port, and a clean end."""

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn
from anyio import to_thread
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from packhorse.console.serving.postgres import most_held
from packhorse.console.settings import ConsoleSettings
from packhorse.core import logs
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import SettingsError

_MOST_CONNECTIONS = 1_000
_KEEP_ALIVE = 15
_SPARE_THREADS = 20
"""Threads for requests that ask the database for nothing, such as those of the page that signs in, while all others wait for it."""
_log = logs.logger("console")


class _Server(uvicorn.Server):
    """Leaves signals to us: after a clean stop the process ends well, as the other daemons do."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listening(settings: ConsoleSettings) -> socket.socket:
    """
    Return the socket that the server listens on.

    Raises:
        SettingsError: Host or port can't be had.
    """
    host, port = settings.host, settings.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        sock = socket.create_server(found[0][4][:2], family=found[0][0], backlog=256)
    except OSError as error:
        raise SettingsError(
            f"the console can't listen on {host}:{port}: {error.strerror or error}; set another PACKHORSE_CONSOLE_PORT "
            "or PACKHORSE_CONSOLE_HOST"
        ) from None
    # asyncio does so only for sockets that it makes itself. Without, the second packet of each answer waits for the client's
    # acknowledgement of the first, which clients put off for 40 ms.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def behind_proxies(app: Any, proxies: str) -> Any:
    """
    Return *app* with the client's address and scheme as *proxies* give them, and the address that is connected as `peer` beside.

    A header of anybody else is not believed.
    """
    inner = ProxyHeadersMiddleware(app, trusted_hosts=proxies) if proxies else app

    async def named(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope.setdefault("state", {})["peer"] = (scope.get("client") or ("",))[0]
        await inner(scope, receive, send)

    return named


def with_threads(app: Any, threads: int) -> Any:
    """Return *app* with so many *threads* for what blocks, of which each of its requests in hand may hold one."""

    async def wide(scope: Any, receive: Any, send: Any) -> None:
        to_thread.current_default_thread_limiter().total_tokens = threads
        await app(scope, receive, send)

    return wide


def serve(app: Any, sock: socket.socket, settings: ConsoleSettings, *, begun: Callable[[], None]) -> None:
    """
    Answer requests until SIGTERM or SIGINT, then let those in hand end within `drain_timeout`.

    A second signal leaves at once. *begun* is called once signals are heeded: who reads that we listen may send one.
    """
    config = uvicorn.Config(
        with_threads(behind_proxies(app, settings.proxies), most_held(settings) + _SPARE_THREADS),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,  # a path holds ids, a query may hold keys
        server_header=False,
        proxy_headers=False,  # ours is outside of theirs: who is connected has to be known too
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=int(settings.drain_timeout),
    )
    _log_as_we_do()
    server = _Server(config)

    def stop(number: int, _: FrameType | None) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, _leave)
        _log.info("stopping", signal=signal.Signals(number).name)
        server.should_exit = True

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)
    begun()
    server.run(sockets=[sock])


def leave(patience: float = 2.0) -> None:
    """
    End the process though a thread still waits for an answer: a server that is frozen gives none, and an interpreter waits for it.

    Returns when no thread does; then the process ends in the usual way.
    """
    until = SYSTEM_CLOCK.monotonic() + patience
    for each in threading.enumerate():
        if each is not threading.current_thread() and not each.daemon:
            each.join(max(0.0, until - SYSTEM_CLOCK.monotonic()))
            if each.is_alive():
                _log.warning(
                    "left while a question waited for an answer that does not come; look how things stand before it is asked again"
                )
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)


def _log_as_we_do() -> None:
    """Send the libraries' own warnings where ours go."""
    for name in ("uvicorn", "asyncio"):
        theirs = logging.getLogger(name)
        theirs.handlers[:] = logging.getLogger("packhorse").handlers
        theirs.setLevel(logging.WARNING)
        theirs.propagate = False


def _leave(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)
