"""The proxy misbehaves as it says, and behaves again."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from tests.support.proxy import Proxy
from tests.support.wait import eventually


class Echo:
    """A server that answers every piece with itself and remembers it."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with connection:
            try:
                while piece := connection.recv(4096):
                    self.heard.append(piece)
                    connection.sendall(piece)
            except OSError:
                return


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.listener.shutdown(socket.SHUT_RDWR)
    server.listener.close()
    server.thread.join()


@pytest.fixture
def proxy(echo: Echo) -> Iterator[Proxy]:
    with Proxy(echo.listener.getsockname()) as proxy:
        yield proxy


def connected(proxy: Proxy, *, patience: float = 5.0) -> socket.socket:
    return socket.create_connection((proxy.host, proxy.port), timeout=patience)


def answer(client: socket.socket, piece: bytes) -> bytes:
    client.sendall(piece)
    return client.recv(4096)


def test_it_forwards_both_ways_and_counts(proxy: Proxy) -> None:
    with connected(proxy) as client:
        assert answer(client, b"one") == b"one"
        assert (proxy.accepted, proxy.connections) == (1, 1)
    eventually(lambda: proxy.connections == 0, what="the closed connection is closed through")


def test_a_cut_resets_what_is_open_and_refuses_what_is_new(proxy: Proxy) -> None:
    with connected(proxy) as client:
        assert answer(client, b"one") == b"one"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            client.recv(4096)
        with pytest.raises(ConnectionRefusedError):
            connected(proxy)
    proxy.resume()
    with connected(proxy) as client:
        assert answer(client, b"two") == b"two"


def test_a_reset_takes_new_connections_at_once(proxy: Proxy) -> None:
    with connected(proxy) as client:
        assert answer(client, b"one") == b"one"
        proxy.reset_connections()
        with pytest.raises(ConnectionResetError):
            client.recv(4096)
    with connected(proxy) as client:
        assert answer(client, b"two") == b"two"


def test_a_black_hole_takes_everything_and_gives_nothing(proxy: Proxy, echo: Echo) -> None:
    with connected(proxy, patience=0.2) as client, connected(proxy) as unharmed:
        assert answer(client, b"one") == answer(unharmed, b"one")
        proxy.black_hole()
        with pytest.raises(TimeoutError):
            answer(client, b"lost")
        with connected(proxy, patience=0.2) as late, pytest.raises(TimeoutError):
            answer(late, b"lost")
        proxy.resume()
        with pytest.raises(ConnectionResetError):
            client.recv(4096)
        assert answer(unharmed, b"two") == b"two"
    assert b"lost" not in echo.heard


def test_swallowed_answers_belong_to_requests_that_arrived(proxy: Proxy, echo: Echo) -> None:
    with connected(proxy, patience=0.2) as client:
        proxy.swallow_answers()
        with pytest.raises(TimeoutError):
            answer(client, b"done")
        eventually(lambda: echo.heard == [b"done"], what="the request has arrived")


def test_what_was_frozen_arrives_late(proxy: Proxy) -> None:
    with connected(proxy, patience=0.2) as client:
        proxy.freeze()
        with pytest.raises(TimeoutError):
            answer(client, b"late")
        proxy.resume()
        client.settimeout(5.0)
        assert client.recv(4096) == b"late"


def test_a_delay_is_felt_both_ways(proxy: Proxy) -> None:
    with connected(proxy, patience=0.15) as client:
        proxy.delay(0.1)
        with pytest.raises(TimeoutError):
            answer(client, b"slow")
        client.settimeout(5.0)
        assert client.recv(4096) == b"slow"


def test_a_target_that_is_away_closes_the_connection(proxy: Proxy) -> None:
    proxy.target = ("127.0.0.1", 1)
    with connected(proxy) as client, contextlib.suppress(ConnectionResetError):
        assert client.recv(4096) == b""
    proxy.cut()
    proxy.resume()
