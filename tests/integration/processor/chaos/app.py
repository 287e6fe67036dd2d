"""
The application of the chaos runs: `packhorse processor run tests.integration.processor.chaos.app:app`.

Each message writes one row with all that the checker wants to know of its transaction, and then does what it is meant to
do: nothing, fail once, fail until it is mended, or take two seconds. That a run began is told to a file, which outlives
a kill and costs no transaction.
"""

import asyncio
import faulthandler
import os
import signal
import threading
from pathlib import Path
from threading import Event
from typing import Any

from tests.support.history import FAILS_ALWAYS, FAILS_ONCE, SLOW
from tests.support.processing import noted

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.processor import AsyncContext, BatchContext, Context, Processor, Retry

GROUP = "noters"
ATTEMPTS, DELAYS = 3, ("200ms", "1s")
TABLES = """
CREATE TABLE effect ("order" bigint GENERATED ALWAYS AS IDENTITY, id uuid, n bigint, attempt int, xid bigint, seen text,
    at timestamptz DEFAULT clock_timestamp(), member text);
CREATE TABLE mended (id uuid PRIMARY KEY);
"""
WRITE = """
INSERT INTO effect (id, n, attempt, xid, seen, member)
VALUES (%s, %s, %s, pg_current_xact_id()::text::bigint, pg_current_snapshot()::text, %s)
"""
EVERYTHING = "00000000-0000-0000-0000-000000000000"
IS_MENDED = f"SELECT EXISTS (SELECT FROM mended WHERE id IN (%s, '{EVERYTHING}'))"
SLOWNESS = 2.0
KINDS = ("def", "pipeline", "async", "batch")
PARENT_EVERY = 1.0
"""Seconds between two looks whether the parent still lives: a member must not outlive its run."""


class Notes:
    """The handlers, all doing the same in different ways."""

    def __init__(self, member: str, folder: Path | None) -> None:
        self.member = member
        self._runs = (
            None if folder is None else (folder / f"runs-{member}-{os.getpid()}").open("ab", buffering=0)
        )

    def begin(self, one: Any) -> None:
        """Tell that a run begins."""
        if self._runs is not None:
            self._runs.write(f"{one.id} {one.attempt} {SYSTEM_CLOCK.now().timestamp():.6f}\n".encode())

    def note(self, message: Any, ctx: Context) -> None:
        """Write and act, statement by statement."""
        self.begin(ctx)
        ctx.connection.execute(WRITE, (ctx.id, message.n, ctx.attempt, self.member))
        act(message, ctx.attempt, mended=self._is_mended(message, ctx.id, ctx.connection))
        if message.what == SLOW:
            Event().wait(SLOWNESS)

    def pipeline(self, message: Any, ctx: Context) -> None:
        """Write through the pipeline, then act."""
        self.begin(ctx)
        ctx.pipeline.execute(WRITE, (ctx.id, message.n, ctx.attempt, self.member))
        mended = message.what == FAILS_ALWAYS and self._is_mended(message, ctx.id, ctx.connection)
        act(message, ctx.attempt, mended=mended)
        if message.what == SLOW:
            Event().wait(SLOWNESS)

    async def note_async(self, message: Any, ctx: AsyncContext) -> None:
        """Write and act, in the event loop."""
        self.begin(ctx)
        await ctx.connection.execute(WRITE, (ctx.id, message.n, ctx.attempt, self.member))
        mended = False
        if message.what == FAILS_ALWAYS:
            row = await (await ctx.connection.execute(IS_MENDED, (ctx.id,))).fetchone()
            mended = row is not None and row[0]
        act(message, ctx.attempt, mended=mended)
        if message.what == SLOW:
            await asyncio.sleep(SLOWNESS)

    def batch(self, batch: Any, ctx: BatchContext) -> None:
        """Answer for those that fail, and write the others; when one is odd, fail as a whole and be run again in parts."""
        for item in batch:
            self.begin(item)
            if item.message.n % 50 == 0 and len(batch) > 1:
                raise ValueError("run them apart")
            try:
                mended = self._is_mended(item.message, item.id, ctx.connection)
                act(item.message, item.attempt, mended=mended)
            except ValueError as error:
                item.retry(error=error)
                continue
            ctx.connection.execute(WRITE, (item.id, item.message.n, item.attempt, self.member))
            if item.message.what == SLOW:
                Event().wait(SLOWNESS)

    def _is_mended(self, message: Any, message_id: Any, connection: Any) -> bool:
        if message.what != FAILS_ALWAYS:
            return False
        row = connection.execute(IS_MENDED, (message_id,)).fetchone()
        return row is not None and bool(row[0])


def processor(
    namespace: str, *, kind: str = "def", member: str = "", folder: Path | None = None
) -> Processor:
    """Return the application; it tells its runs in *folder*."""
    app, notes = Processor(GROUP), Notes(member, folder)
    retry = Retry(attempts=ATTEMPTS, delays=list(DELAYS))
    functions: dict[str, Any] = {"def": notes.note, "pipeline": notes.pipeline, "async": notes.note_async}
    if kind == "batch":
        app.batch_handler(noted(namespace), retry=retry)(notes.batch)
    else:
        app.handler(noted(namespace), retry=retry)(functions[kind])
    return app


def act(message: Any, attempt: int, *, mended: bool) -> None:
    """Fail, if the message is meant to."""
    if message.what == FAILS_ONCE and attempt == 1:
        raise ValueError("fails once")
    if message.what == FAILS_ALWAYS and not mended:
        raise ValueError("fails always")


def end_with(parent: int) -> None:
    """End this process when its parent is gone."""

    def watch() -> None:
        pause = Event()
        while os.getppid() == parent:
            pause.wait(PARENT_EVERY)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


if "CHAOS_NAMESPACE" in os.environ:
    faulthandler.register(signal.SIGUSR1)
    end_with(int(os.environ["CHAOS_PARENT"]))
    app = processor(
        os.environ["CHAOS_NAMESPACE"],
        kind=os.environ["CHAOS_KIND"],
        member=os.environ["CHAOS_MEMBER"],
        folder=Path(os.environ["CHAOS_FOLDER"]),
    )
