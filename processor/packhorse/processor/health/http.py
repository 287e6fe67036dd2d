"""Health over HTTP, for whoever starts processes and deals traffic: `/health/live` and `/health/ready`."""

import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from packhorse.core.errors import SettingsError
from packhorse.processor.health.judging import Health

ANSWER_WITHIN = 5.0
"""Seconds after which a client that says nothing is let go."""


class HealthServer:
    """
    Answer on *host* and *port* (0: any that is free) in threads of its own.

    `/health/live` is 200 while the process should go on, `/health/ready` while it works; else 503. The body is JSON and names
    what is wrong; it holds no message's data. It answers also when all else has died: that is what it is for.

    Raises:
        SettingsError: The port can't be had.
    """

    def __init__(self, health: Callable[[], Health], *, group: str, host: str, port: int) -> None:
        answer = type("_Answer", (_Answer,), {"health": staticmethod(health), "group": group})
        try:
            self._server = _Server((host, port), answer)
        except OSError as error:
            raise SettingsError(
                f"health can't be answered on {host}:{port}: {error.strerror or error}; set another "
                "PACKHORSE_PROCESSOR_HEALTH_PORT or PACKHORSE_PROCESSOR_HEALTH_HOST, or 0 for none"
            ) from None
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.2},
            name="packhorse-health",
            daemon=True,
        )

    @property
    def port(self) -> int:
        """Return the port."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more, and give the port back."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


def answered(path: str, health: Health, group: str) -> tuple[int, dict[str, object]]:
    """Return the status and the body for *path*."""
    told: dict[str, tuple[bool, Sequence[str]]] = {
        "/health/live": (health.live, health.not_live),
        "/health/ready": (health.ready, (*health.not_live, *health.not_ready)),
    }
    found = told.get(path.partition("?")[0].rstrip("/"))
    if found is None:
        return 404, {"error": f"there are {' and '.join(told)}"}
    well, wrong = found
    return (200 if well else 503), {"group": group, "ok": well, "wrong": list(wrong)}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that went away."""


class _Answer(BaseHTTPRequestHandler):
    health: Callable[[], Health]
    group: str
    timeout = ANSWER_WITHIN
    server_version = "packhorse"
    sys_version = ""

    def do_GET(self) -> None:
        status, body = answered(self.path, self.health(), self.group)
        told = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(told)

    do_HEAD = do_GET  # noqa: N815 the name that the library calls

    def log_message(self, *told: object) -> None:
        """Say nothing: probes come every few seconds."""
