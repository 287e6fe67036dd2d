"""The ASGI side: answers leave, and what nobody expected becomes an answer too."""

import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

from packhorse.core import logs
from packhorse.core.clock import Chance
from packhorse.core.errors import PackhorseError
from packhorse.producer.jobs.web.answers import Answer, Refused, answer_of, unexpected
from packhorse.producer.jobs.web.requests import Receive, Send

_log = logs.logger("jobs")


async def answered(make: Callable[[], Awaitable[Answer]], chance: Chance) -> Answer:
    """Return what *make* answers, or what its error is to the caller; one that is ours goes to the log under a number."""
    try:
        return await make()
    except Refused as refused:
        return refused.answer
    except Exception as error:  # noqa: BLE001 no request may end without an answer, and no driver's text may get out
        known = answer_of(error) if isinstance(error, PackhorseError) else None
        if known is not None and known.status != 503:
            return known
        number = str(chance.token())
        # Our own texts name no values; others may quote what a request holds.
        text = str(error) if isinstance(error, PackhorseError) else None
        _log.error(
            "a request failed", number=number, error=type(error).__name__, text=text, place=_place_of(error)
        )
        return known or unexpected(number)


async def sent(send: Send, answer: Answer, *, head: bool) -> None:
    """Send *answer*; with *head* its headers alone."""
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.raw_headers()})
    await send({"type": "http.response.body", "body": b"" if head else answer.body})


async def live(receive: Receive, send: Send, close: Callable[[], Awaitable[None]]) -> None:
    """Take part in the life of the server: *close* at its end."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await close()
            await send({"type": "lifespan.shutdown.complete"})
            return


def _place_of(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
