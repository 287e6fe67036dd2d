"""
The worker of the reports, which people ask for while the demo goes on.

    packhorse processor run examples.flights.serving.reports:app

What a body of a job has is shown once more and at more length in examples/reports: checkpoints, progress, an outside effect, a result.
"""

import calendar
import os
import threading
from typing import Any

import psycopg

from examples.flights.serving import sql
from examples.flights.serving.messages import PunctualityRequest, Shows
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.processor import DID_NOT_HAPPEN, Happened, JobContext, Processor, Retry

SLOW = 3.0
"""Seconds that a month takes in a report that is to take long."""
_CLOSES = 3
"""The month whose figures are the last to be closed."""
app = Processor("reports")


class NotClosed(Exception):
    """Say which figures are not closed yet; holds nothing personal, so people may read it."""


@app.job(
    PunctualityRequest,
    retry=Retry(attempts=3, delays=["2s", "5s"]),
    safe=(NotClosed, TimeoutError),
    deadline="1h",
    keep_result="1d",
    keep="2d",
)
def report(request: PunctualityRequest, ctx: JobContext) -> dict[str, Any]:
    """Say month by month how late a carrier left; a worker that dies is followed by one that goes on with the next month."""
    months: list[list[Any]] = ctx.state or []
    for month in range(len(months) + 1, 13):
        ctx.check()  # here it may be cancelled, or given back because the process ends
        ctx.progress(month - 1, 12, f"adding up {calendar.month_name[month]}")
        if request.shows is Shows.SLOW:
            threading.Event().wait(SLOW)
        if month == _CLOSES and SYSTEM_CLOCK.now() < request.closed_at:
            raise NotClosed(
                f"the figures of March are closed at {request.closed_at:%H:%M:%S} UTC, not before"
            )
        months.append([calendar.month_abbr[month], *_month(request.carrier, month)])
        ctx.checkpoint(months)
    ctx.progress(12, 12, "sending the letter")
    if request.shows is Shows.IN_DOUBT:
        ctx.effect("letter", lambda key: _send_and_lose_the_answer(key, ctx), timeout="5s")
    else:
        ctx.effect("letter", lambda key: _send(key, ctx), verify=_sent, timeout="5s")
    return {"carrier": request.carrier, "months": months}


def _month(carrier: str, month: int) -> tuple[int, float]:
    with _connection() as connection:
        flights, minutes = connection.execute(sql.MONTH, {"carrier": carrier, "month": month}).fetchone() or (
            0,
            0,
        )
    return int(flights), float(minutes)


def _send(key: str, ctx: JobContext) -> str:
    with _connection() as connection:
        connection.execute(sql.SEND_LETTER, {"key": key, "text": f"Your report {ctx.id} is made."})
    return f"letter {key}"


def _send_and_lose_the_answer(key: str, ctx: JobContext) -> str:
    """Send it, the first time without hearing so: nobody but a person, who asks the post, can say whether it was sent."""
    answer = _send(key, ctx)
    if ctx.attempt == 1:
        raise TimeoutError("the post has not answered")
    return answer


def _sent(key: str) -> Any:
    with _connection() as connection:
        found = connection.execute(sql.LETTER, {"key": key}).fetchone()
    return Happened(f"letter {key}") if found else DID_NOT_HAPPEN


def _connection() -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(os.environ["PACKHORSE_DATABASE_URL"], autocommit=True)
