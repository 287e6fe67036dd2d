"""
A TCP proxy in a thread that misbehaves on demand: the cheapest honest network fault.

    with Proxy(("127.0.0.1", 5432)) as proxy:
        connect(host=proxy.host, port=proxy.port)
        proxy.cut()              # reset all connections, refuse new ones
        proxy.black_hole()       # accept, take every byte, forward none: a firewall that drops
        proxy.swallow_answers()  # requests arrive, their answers are lost
        proxy.freeze()           # hold every byte; resume delivers them late
        proxy.delay(0.2)         # every piece arrives that many seconds later, both ways
        proxy.resume()           # be a good proxy again; connections that lost bytes are reset

Kafka's clients go on to the address that the broker advertises: put the proxy there with the fixture
`private_kafka`, whose broker advertises the proxy.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Self

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.local.ports import candidates, is_free

_PIECE = 1 << 16
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def free_port() -> int:
    """Return a free port outside the range of outgoing connections, so that nobody takes it while the proxy is cut."""
    return next(port for port in candidates(Path(str(SYSTEM_CHANCE.token()))) if is_free(port))


class _Link:
    """One connection through the proxy, both halves."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.writers = (client, server)
        self.lost_bytes = False

    def reset(self) -> None:
        for writer in self.writers:
            connection = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            writer.transport.abort()


class Proxy:
    """
    Forward connections to *target*; every method is for other threads and returns when the change holds.

    Attributes:
        host: Always the loopback address.
        port: The proxy's own port; kept over cuts.
        accepted: Connections taken so far.
    """

    host = "127.0.0.1"

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.port = free_port()
        self.accepted = 0
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._swallow_requests = self._swallow_answers = False
        self._seconds = 0.0
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp-proxy", daemon=True)

    @property
    def address(self) -> str:
        """Its `host:port`."""
        return f"{self.host}:{self.port}"

    @property
    def connections(self) -> int:
        """Connections open now."""
        return len(self._links)

    @property
    def losing(self) -> int:
        """Connections open now that have lost bytes."""
        return sum(link.lost_bytes for link in list(self._links))

    def __enter__(self) -> Self:
        self._thread.start()
        self.resume()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def resume(self) -> None:
        """Forward everything again, at once and both ways; reset the connections that lost bytes."""
        self._do(self._resume())

    def cut(self) -> None:
        """Reset all connections and refuse new ones."""
        self._do(self._cut())

    def reset_connections(self) -> None:
        """Reset all connections, and take new ones as before."""
        self._do(self._reset())

    def black_hole(self) -> None:
        """Accept connections and take every byte, and forward none."""
        self._do(self._set(requests=True, answers=True))

    def swallow_answers(self) -> None:
        """Forward what clients send, and lose what they are answered."""
        self._do(self._set(requests=False, answers=True))

    def freeze(self) -> None:
        """Hold every byte; `resume` delivers them."""
        self._do(self._freeze())

    def delay(self, seconds: float) -> None:
        """Forward every piece *seconds* later."""
        self._seconds = seconds

    def _do(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _resume(self) -> None:
        self._swallow_requests = self._swallow_answers = False
        self._seconds = 0.0
        self._open.set()
        for link in [link for link in self._links if link.lost_bytes]:
            link.reset()
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, self.host, self.port, reuse_address=True)

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._reset()

    async def _reset(self) -> None:
        for link in list(self._links):
            link.reset()

    async def _set(self, *, requests: bool, answers: bool) -> None:
        self._swallow_requests, self._swallow_answers = requests, answers

    async def _freeze(self) -> None:
        self._open.clear()

    async def _shut(self) -> None:
        await self._cut()
        self._open.set()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.accepted += 1
        try:
            await self._connect(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # the other end is gone, or we are: both halves are reset below
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self.target)
        link = _Link(writer, server_writer)
        self._links.add(link)
        try:
            async with asyncio.TaskGroup() as halves:
                halves.create_task(self._pump(link, reader, server_writer, answers=False))
                halves.create_task(self._pump(link, server_reader, writer, answers=True))
        except* OSError:
            pass
        finally:
            self._links.discard(link)
            link.reset()

    async def _pump(
        self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        while piece := await reader.read(_PIECE):
            await self._open.wait()
            if self._swallow_answers if answers else self._swallow_requests:
                link.lost_bytes = True
                continue
            if self._seconds:
                await asyncio.sleep(self._seconds)
            writer.write(piece)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()
