"""The one event loop of the process."""

import asyncio
import threading
from contextlib import suppress


class EventLoop:
    """The one event loop of the process, in a thread of its own, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        """Return the loop, running."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=_run, args=(self._loop,), name="packhorse-event-loop", daemon=True
                ).start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """
    Run *loop* for ever.

    SystemExit and KeyboardInterrupt of any task end `run_forever` after they were kept in their task; whoever awaits that
    task must go on to tell the lane, which waits for an outcome.
    """
    while not loop.is_closed():
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()
