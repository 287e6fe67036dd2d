"""
An HTTP transport of httpx with one bound for a whole exchange.

httpx's own time-outs are per read: a server that sends one byte every few seconds would hold a caller for hours.
"""

import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpcore
import httpx

from packhorse.core.clock import Clock

MAX_BODY: Final = 16 * 1024 * 1024
"""Longest answer that is read, in bytes; a schema of that length is none."""


class Deadline:
    """The end of the exchange that the current thread is in."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self._local = threading.local()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Bound what the block sends and reads."""
        self._local.end = self._clock.monotonic() + self._seconds
        yield

    def within(self, timeout: float | None, error: type[httpcore.TimeoutException]) -> float:
        """Return *timeout*, or what is left when that is less; raise *error* when nothing is."""
        left = float(self._local.end - self._clock.monotonic())
        if left <= 0:
            raise error(f"the exchange took more than {self._seconds:g} s")
        return left if timeout is None else min(timeout, left)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.within(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.within(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._deadline.within(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, deadline: Deadline) -> None:
        self._inner, self._deadline = httpcore.SyncBackend(), deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._deadline.within(timeout, httpcore.ConnectTimeout)
        return _Stream(
            self._inner.connect_tcp(host, port, left, local_address, socket_options), self._deadline
        )


class BoundedTransport(httpx.BaseTransport):
    """
    Send one request and read the whole answer within *seconds*; safe to share between threads.

    Raises httpx.TransportError for all that the network does wrong, time-outs included.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._deadline = Deadline(clock, seconds)
        # No connection is kept: calls are rare, and one that the server closed meanwhile would fail the next call.
        self._pool = httpcore.ConnectionPool(
            max_keepalive_connections=0,
            ssl_context=httpx.create_ssl_context(),
            network_backend=_Backend(self._deadline),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        ours = httpcore.Request(
            request.method,
            url,
            headers=request.headers.raw,
            content=request.read(),
            extensions=request.extensions,
        )
        try:
            with self._deadline.running():
                answer = self._pool.handle_request(ours)
                body = _whole(answer)
        except (
            httpcore.TimeoutException,
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.UnsupportedProtocol,
            OSError,
        ) as error:
            raise httpx.TransportError(f"{type(error).__name__}: {error}", request=request) from error
        return httpx.Response(answer.status, headers=answer.headers, content=body, request=request)

    def close(self) -> None:
        self._pool.close()


def _whole(answer: httpcore.Response) -> bytes:
    body = b""
    try:
        for chunk in answer.iter_stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise httpcore.ProtocolError(f"an answer of more than {MAX_BODY} bytes")
    finally:
        answer.close()
    return body
