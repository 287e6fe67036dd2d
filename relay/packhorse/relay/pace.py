"""Waiting and working on two things at once, with the machine's threads: the port `Pace`."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from packhorse.relay.model import Batch


class ThreadPace:
    """Be the port `Pace` with one thread for what runs meanwhile."""

    def __init__(self) -> None:
        self._woken = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="packhorse-relay-reader")

    def pause(self, seconds: float) -> None:
        if self._woken.wait(seconds):
            self._woken.clear()

    def wake(self) -> None:
        self._woken.set()

    def begin(self, fetch: Callable[[], Batch]) -> Future[Batch]:
        return self._pool.submit(fetch)

    def close(self) -> None:
        """Let go of the thread; blocks for nothing."""
        self._pool.shutdown(wait=False, cancel_futures=True)
