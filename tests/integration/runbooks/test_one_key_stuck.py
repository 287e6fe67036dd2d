"""The runbook's commands, as they are written, on a key that stands still: they find the cause, and the key goes on in order."""

import re
import shlex
import threading
from typing import Any
from uuid import UUID

import pytest
from tests.support.cli import Ran, packhorse
from tests.support.pages import command
from tests.support.processing import GROUP, Ground
from tests.support.wait import eventually

from packhorse.processor import Context, Processor, Retry

PAGE = "runbooks/one-key-stuck.md"
KEY = b"N14228"
ID = "019b76da-a800-7000-8000-000000000000"


class Reader:
    """Somebody who types what the page says, with the names of this ground in place of the page's."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def types(self, block: str, message_id: UUID | None = None) -> Ran:
        """Run each line of *block*, and return how the last one ended."""
        replaced = {GROUP: "figures", self._ground.topic: "airline.aircraft"}
        if message_id is not None:
            replaced[str(message_id)] = ID
        text = command(PAGE, block)
        for new, old in replaced.items():
            text = text.replace(old, new)
        assert ID not in text, "the page's own id is not there"
        for line in text.splitlines():
            ran = packhorse(*shlex.split(line)[1:], **self._ground.environ)
        return ran


def failing(ground: Ground) -> tuple[Processor, threading.Event]:
    """Return an application whose handler fails for message 1 until the event is set."""
    app, mended = Processor(GROUP), threading.Event()

    @app.handler(ground.message, retry=Retry(attempts=1))
    def note(message: Any, ctx: Context) -> None:
        if message.n == 1 and not mended.is_set():
            raise ValueError("not mended")
        ctx.connection.execute(
            "INSERT INTO result (id, n, attempt) VALUES (%s, %s, %s)", (ctx.id, message.n, ctx.attempt)
        )

    ground.make_topics(app)
    return app, mended


def stuck(ground: Ground) -> tuple[UUID, UUID]:
    """Let the key stand still: its head in quarantine, two behind it, another key done; return head and follower."""
    head, follower = ground.send(1, key=KEY), ground.send(2, key=KEY)
    last = ground.send(3, key=KEY)
    ground.send(9, key=b"another")
    ground.until_outcome(head, "quarantine")
    ground.until_outcome(follower, "parked")
    ground.until_outcome(last, "parked")
    ground.until_results(9)
    return head, follower


def until_let_go(reader: Reader) -> None:
    eventually(lambda: "not parked" in reader.types("explain").out, what="the key is let go")


@pytest.mark.case("X-02")
@pytest.mark.case("T-02")
def test_the_head_is_found_mended_and_sent_again(ground: Ground) -> None:
    """Fails when a command of the page is not so any more, names another head, or what waited does not run in order."""
    app, mended = failing(ground)
    reader = Reader(ground)
    with ground.processing(app):
        head, follower = stuck(ground)
        told = reader.types("explain").out
        found = re.search(r"its head is message (\S+) \(quarantine", told)
        assert found is not None, told
        assert found[1] == str(head)
        assert "2 messages wait behind it" in told
        assert f"waits behind {head}" in reader.types("id", follower).out
        assert "ValueError" in reader.types("show", head).out
        assert reader.types("redrive", head).code == 1, "nothing is mended yet"
        mended.set()
        assert reader.types("redrive", head).code == 0
        ground.until_results(9, 1, 2, 3)
        until_let_go(reader)


def test_a_head_that_nobody_needs_is_given_up(ground: Ground) -> None:
    app, _ = failing(ground)
    reader = Reader(ground)
    with ground.processing(app):
        head, _ = stuck(ground)
        assert reader.types("discard", head).code == 0
        ground.until_results(9, 2, 3)
        until_let_go(reader)


@pytest.mark.case("O-10")
def test_a_key_that_a_person_paused_says_so_and_is_resumed(ground: Ground) -> None:
    """Fails when a pause of the key is not told with who and why, or its messages are lost or run before it ends."""
    app, mended = failing(ground)
    mended.set()
    reader = Reader(ground)
    with ground.processing(app):
        ground.send(0, key=KEY)
        ground.until_results(0)
        assert reader.types("pause").code == 0
        paused = ground.send(2, key=KEY)
        ground.until_outcome(paused, "parked")
        told = reader.types("explain").out
        assert re.search(r"its key is paused by .* looking at a bad import", told), told
        assert "1 message waits behind it" in told
        assert reader.types("resume").code == 0
        ground.until_results(0, 2)
        until_let_go(reader)
