"""The worker: what `packhorse processor run examples.reports.work:app` runs."""

import calendar
import csv
import io
import os
import threading
from pathlib import Path
from typing import Any

import psycopg

from examples.reports.messages import ReportRequest, Shows
from examples.reports.tables import FILL, MONTH
from packhorse.processor import DID_NOT_HAPPEN, Happened, JobContext, Processor, Retry

LETTERS_VARIABLE = "REPORTS_LETTERS"
"""Names the folder that stands for an outside system: who writes a letter can't take it back."""
SLOW = 0.5
"""Seconds that a month takes in a report that is to take long."""
app = Processor("reports")


class CantBeMade(Exception):
    """Say why a report can't be made; holds nothing personal, so people may read it."""


@app.job(
    ReportRequest,
    retry=Retry(attempts=2, delays=["1s"]),
    safe=(CantBeMade,),
    deadline="1h",
    keep_result="30d",
)
def report(request: ReportRequest, ctx: JobContext) -> dict[str, int]:
    """
    Add up a year, month by month, and write the table where the person finds it.

    After each month the totals so far are kept: a worker that dies is followed by one that goes on with the next month.
    """
    lines: list[list[Any]] = ctx.state or []
    for month in range(len({line[0] for line in lines}) + 1, 13):
        ctx.check()  # here it may be cancelled, or given back because the process ends
        ctx.progress(month - 1, 12, f"adding up {calendar.month_name[month]}")
        if request.shows is Shows.SLOW:
            threading.Event().wait(SLOW)
        if request.shows is Shows.FAILS and month == 3:
            raise CantBeMade("the figures of March are not closed yet")
        lines += [[f"{request.year}-{month:02}", *line] for line in _month(request.year, month)]
        ctx.checkpoint(lines)
    ctx.progress(12, 12, "writing it down")
    ctx.effect("letter", lambda key: _write(key, ctx), verify=_written, timeout="5s")
    ctx.on_success(lambda connection: connection.execute(FILL, (_csv(lines), ctx.id)))
    return {"lines": len(lines), "sales": sum(line[2] for line in lines)}


def _month(year: int, month: int) -> list[list[Any]]:
    with psycopg.connect(os.environ["PACKHORSE_DATABASE_URL"], autocommit=True) as connection:
        rows = connection.execute(MONTH, {"year": year, "month": month}).fetchall()
    return [[region, count, int(cents)] for region, count, cents in rows] or [["-", 0, 0]]


def _csv(lines: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([["month", "region", "sales", "cents"], *lines])
    return text.getvalue()


def _write(key: str, ctx: JobContext) -> str:
    """Write to the person that the report is made; twice with one key is one letter."""
    letter = _letter(key)
    letter.parent.mkdir(parents=True, exist_ok=True)
    letter.write_text(f"To {ctx.actor}: your report {ctx.id} is made.\n", encoding="utf-8")
    return letter.name


def _written(key: str) -> Any:
    letter = _letter(key)
    return Happened(letter.name) if letter.exists() else DID_NOT_HAPPEN


def _letter(key: str) -> Path:
    return Path(os.environ.get(LETTERS_VARIABLE, ".packhorse/reports/letters")) / f"{key}.txt"
