"""Waiting and working on two things at once, with the machine's threads: the port `Pace`."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from packhorse.relay.model import Batch
from packhorse.relay.ports import T


class ThreadPace:
    """Be the port `Pace` with one thread for fetches, and one for what takes long."""

    def __init__(self) -> None:
        self._woken = threading.Event()
        self._slow: ThreadPoolExecutor | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="packhorse-relay-reader")

    def pause(self, seconds: float) -> None:
        if self._woken.wait(seconds):
            self._woken.clear()

    def wake(self) -> None:
        self._woken.set()

    def begin(self, fetch: Callable[[], Batch]) -> Future[Batch]:
        return self._pool.submit(fetch)

    def aside(self, work: Callable[[], T]) -> Future[T]:
        if self._slow is None:
            self._slow = ThreadPoolExecutor(1, thread_name_prefix="packhorse-relay-aside")
        return self._slow.submit(work)

    def close(self) -> None:
        """Let go of the threads; blocks for nothing."""
        for pool in (self._pool, self._slow):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
