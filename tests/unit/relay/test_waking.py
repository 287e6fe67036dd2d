"""The thread that listens for wake-ups: it goes on whatever fails, and never takes the relay with it."""

import threading
from collections.abc import Callable

import pytest
from tests.support.wait import eventually

from packhorse.core.errors import DatabaseUnavailable
from packhorse.relay.waking import listener as waking
from packhorse.relay.waking.listener import WakeListener


class Script:
    """Wake-ups by a list: True, False, or an error; then none."""

    def __init__(self, *answers: bool | Exception) -> None:
        self._answers = list(answers)
        self.closed = False
        self.asked = 0

    def wait(self, seconds: float) -> bool:
        self.asked += 1
        answer = self._answers.pop(0) if self._answers else threading.Event().wait(seconds / 50)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed = True


def heard(script: Script, fact: Callable[[list[int]], bool]) -> list[int]:
    """Listen until *fact* holds of the wake-ups."""
    calls: list[int] = []
    listener = WakeListener(script, wake=lambda: calls.append(script.asked))
    listener.start()
    try:
        eventually(lambda: fact(calls), what="the listener did what it should")
    finally:
        listener.close()
    assert script.closed
    return calls


@pytest.mark.case("R-16")
def test_after_a_lost_connection_it_listens_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when an error ends the thread, or what was missed meanwhile wakes nobody."""
    monkeypatch.setattr(waking, "AGAIN", 0.01)
    away = DatabaseUnavailable("the connection is gone")
    assert heard(Script(True, away, away, True, False, True), lambda calls: len(calls) == 3) == [1, 4, 6]


def test_an_error_that_nobody_foresaw_ends_the_listening_alone() -> None:
    script = Script(RuntimeError("a fault of ours"))
    assert heard(script, lambda _: script.closed) == []
