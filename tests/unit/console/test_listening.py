"""The socket that the console listens on."""

import socket

from packhorse.console.serving.uvicorn import listening
from packhorse.console.settings import ConsoleSettings


def test_the_second_packet_of_an_answer_does_not_wait_for_the_client() -> None:
    """Fails when connections are left with Nagle's rule: each page takes 40 ms longer."""
    settings = ConsoleSettings.load({"database_url": "postgresql://nobody@nowhere/none", "port": 0})
    with listening(settings) as sock, socket.create_connection(sock.getsockname()[:2], timeout=10):
        accepted, _ = sock.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
