"""An ASGI application on a port of this machine, in a thread, as a server runs it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from tests.support.wait import eventually


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve *app* for the block; yield its address."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app, http="h11", ws="none", log_level="warning", lifespan="on", timeout_graceful_shutdown=2
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        try:
            eventually(lambda: server.started, what="the server answers")
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
