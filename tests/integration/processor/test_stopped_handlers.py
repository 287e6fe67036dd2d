"""A handler whose system is down, or whose every message fails, is stopped and tried: nobody is charged, and it goes on by itself."""

import logging
import threading
from typing import Any

import pytest
from tests.support.processing import GROUP, Ground, Running, note
from tests.support.wait import eventually

from packhorse.core.backoff import Backoff
from packhorse.processor import Context, Processor, Retry
from packhorse.processor.breaking.brake import BrakeSettings
from packhorse.processor.breaking.probing import ProbeSettings
from packhorse.processor.breaking.stops import Stops

SOON = ProbeSettings(waits=Backoff(first=0.1, longest=0.2))


class DownError(Exception):
    """The system behind the handler does not answer."""


class System:
    """
    What a handler calls.

    Attributes:
        error: What it answers with; None: all is well.
        calls: How often it was called.
        inside: How many calls wait in it, while `halt` is set.
    """

    def __init__(self, error: type[Exception] | None) -> None:
        self.error = error
        self.calls = 0
        self.inside = 0
        self.halt = threading.Event()
        self.go = threading.Event()
        self._lock = threading.Lock()

    def call(self) -> None:
        with self._lock:
            self.calls += 1
            halted = self.halt.is_set()
            self.inside += halted
        if halted:
            assert self.go.wait(60)
        if self.error is not None:
            raise self.error


def calling(ground: Ground, system: System) -> Processor:
    """Return a processor with a handler that calls *system* first, and another beside it, of tombstones, that does not."""
    app = Processor(GROUP)

    @app.handler(ground.message, retry=Retry(attempts=1), down=(DownError,))
    def handle(message: Any, ctx: Context) -> None:
        system.call()
        note(message, ctx)

    @app.tombstone_handler(ground.message)
    def gone(ctx: Context) -> None:
        ctx.connection.execute("INSERT INTO result (id, n) VALUES (%s, -1)", (ctx.id,))

    return app


def probing_soon(running: Running) -> None:
    """Let a stopped handler be tried ten times a second instead of after one second, two, four; before any message comes."""
    running.composed.loop._desk.gates.stops = Stops(BrakeSettings(probing=SOON), SOON)


def said(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in message for message in caplog.messages)


@pytest.mark.case("T-20")
def test_a_system_that_is_down_stops_its_handler_alone_until_it_answers_again(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    """Fails when an error of `down=` is charged, more than one message is tried at a time, or nobody goes on by himself."""
    caplog.set_level(logging.INFO, logger="packhorse")
    system = System(DownError)
    app = calling(ground, system)
    ground.make_topics(app)
    with ground.processing(app) as running:
        probing_soon(running)
        sent = [ground.send(n, key=b"%d" % n) for n in range(20)]
        eventually(lambda: said(caplog, "is stopped"), what="it is said")
        before = system.calls
        eventually(lambda: system.calls >= before + 5, what="it is tried again and again")
        system.halt.set()
        eventually(lambda: system.inside, what="a probe runs")
        ground.send(payload=None, key=b"another")
        ground.until_results(-1)
        assert system.inside == 1
        assert ground.watermark() == 0
        assert ground.rows("SELECT FROM packhorse.inbox WHERE message_id = ANY(%s)", sent) == []
        system.error = None
        system.halt.clear()
        system.go.set()
        ground.until_results(-1, *range(20), any_order=True)
    assert ground.rows("SELECT FROM packhorse.failed_attempt") == []
    assert ground.rows("SELECT DISTINCT outcome, attempt FROM packhorse.inbox") == [("done", 1)]
    assert said(caplog, "is stopped") == 1
    assert said(caplog, "takes messages again") == 1


@pytest.mark.case("T-21")
def test_a_handler_whose_every_message_fails_stops_filling_quarantine_and_goes_on_when_it_is_mended(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    """Fails when the brake hears of a chunk at its end only, a probe is charged, or a person is needed to go on."""
    caplog.set_level(logging.INFO, logger="packhorse")
    system, count = System(ValueError), 300
    app = calling(ground, system)
    ground.make_topics(app)
    quarantined = "SELECT count(*) FROM packhorse.quarantined_message"
    with ground.processing(app) as running:
        probing_soon(running)
        ground.send_many(range(count))
        eventually(lambda: said(caplog, "messages failed at their first attempt"), what="an alarm is given")
        before = system.calls
        eventually(lambda: system.calls >= before + 5, what="it is tried again and again")
        ((stopped,),) = ground.rows(quarantined)
        # Thirty in a row, and what two lanes had in hand meanwhile.
        assert 30 <= stopped <= 30 + 2 * 30
        ground.send(payload=None, key=b"another")
        ground.until_results(-1)
        system.error = None
        eventually(lambda: len(ground.results()) == 1 + count - stopped, what="the others are done")
        assert ground.rows(quarantined) == [(stopped,)]
    assert len(set(ground.results())) == 1 + count - stopped
    assert said(caplog, "takes messages again") == 1
