"""Wait for a job on behalf of a request, as long as whoever sent it does."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Final

from packhorse.core.backoff import Backoff, delay_after
from packhorse.core.clock import Clock
from packhorse.producer.jobs.reading import Job
from packhorse.producer.jobs.web.requests import Receive

LOOKS: Final = Backoff(first=0.1, factor=1.5, longest=1.0, spread=0.0)
"""How often a waiting request looks: what is soon over is seen soon, and what takes long costs a query each second."""


async def until(
    enough: Callable[[Job], bool],
    job: Job,
    look: Callable[[], Awaitable[Job]],
    receive: Receive,
    *,
    seconds: float,
    clock: Clock,
) -> Job:
    """
    Return the job once *enough* says so, or how it stands after *seconds*, or when the connection has ended.

    Raises:
        UnknownId, DatabaseUnavailable: As *look*.
    """
    deadline = clock.monotonic() + seconds
    gone = asyncio.ensure_future(_gone(receive))
    try:
        for n in count(1):
            left = deadline - clock.monotonic()
            if enough(job) or left <= 0 or gone.done():
                break
            await asyncio.wait({gone}, timeout=min(left, delay_after(n, LOOKS, jitter=0.0)))
            job = await look()
    finally:
        gone.cancel()
    return job


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
