"""Ask for a report: the application's row and the job, in one transaction."""

from datetime import timedelta
from typing import Any

import psycopg

from examples.reports.messages import ReportRequest
from examples.reports.tables import ASK
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import InvalidMessage
from packhorse.producer import JobHandle, Outbox
from packhorse.producer.jobs.web import Caller, Order

OUTBOX = Outbox(origin="reports")
LONGEST_TITLE = 80


async def ask(
    connection: psycopg.AsyncConnection[Any],
    request: ReportRequest,
    *,
    caller: Caller,
    request_key: str | None,
) -> JobHandle[ReportRequest]:
    """
    Ask for a report in the transaction of *connection*; the same request key is the same report.

    Raises:
        InvalidMessage: The title or the year is not allowed.
    """
    if not 1 <= len(request.title.strip()) <= LONGEST_TITLE or not request.title.isprintable():
        raise InvalidMessage(
            f"title is to have 1 to {LONGEST_TITLE} characters that can be printed, in one line"
        )
    if not 2000 <= request.year <= 2100:
        raise InvalidMessage("year is to be from 2000 to 2100")
    handle = await OUTBOX.asubmit(
        connection,
        request,
        actor=caller.actor,
        tenant=caller.tenant,
        request_key=request_key,
        expires_at=SYSTEM_CLOCK.now() + timedelta(hours=6),
    )
    if handle.is_new:
        await connection.execute(ASK, (handle.id, caller.actor, request.title))
    return handle


async def ask_by_api(order: Order) -> JobHandle[ReportRequest]:
    """Ask for a report in the name of whoever sent the JSON."""
    request = order.read(ReportRequest, person=order.caller.actor)
    return await ask(order.connection, request, caller=order.caller, request_key=order.request_key)
