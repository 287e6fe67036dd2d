"""
An outside system with a ledger, and a network in front of it that loses, delays and refuses.

Within a call's time-out its request arrives, or never: that is what whoever declares a time-out promises.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.simulation.processor.effects.scripts import Effect
from tests.simulation.processor.hub import Actor, Hub

from packhorse.processor.jobs.effects.model import CANT_TELL, DID_NOT_HAPPEN, Happened, Verdict

FATES = {
    "": ("answered", "answered", "answered", "slow", "answer lost", "late", "request lost", "refused"),
    "late": ("late", "late", "late", "request lost"),
}
"""What becomes of a call that a fault meets, by theme."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One call on its way: its request arrives at `arrives`; `answer` is set when it is answered."""

    effect: Effect
    key: str
    arrives: float
    answer: Any = None
    waits: Actor | None = None


@dataclass(slots=True)
class Outside:
    """
    One outside system.

    Attributes:
        honours: Whether it drops repetitions of an idempotency key.
        ledger: What it has done: the answer to each time, by job and effect.
        keys: The idempotency keys that it was given, by job and effect.
        under_way: Calls whose requests have not arrived.
    """

    hub: Hub
    honours: bool
    ledger: dict[Effect, list[str]] = field(default_factory=dict)
    keys: dict[Effect, set[str]] = field(default_factory=dict)
    by_key: dict[str, str] = field(default_factory=dict)
    under_way: list[Exchange] = field(default_factory=list)

    def call(self, effect: Effect, key: str, fate: str) -> str:
        """
        Do it, and return its answer.

        Raises:
            ConnectionRefusedError: Surely nothing was done.
            TimeoutError: No answer came in time.
        """
        hub, timeout = self.hub, effect.timeout
        self.keys.setdefault(effect, set()).add(key)
        if fate == "refused":
            hub.pause(0.01)
            raise ConnectionRefusedError(fate)
        shares = {"slow": 0.5, "late": 1.0}
        travels = shares.get(fate, 0.02) * timeout * hub.random.choice((0.5, 1.0))
        exchange = Exchange(effect, key, hub.now + travels)
        if fate != "request lost":
            self.under_way.append(exchange)
            hub.after(travels, lambda: self._arrive(exchange))
        exchange.waits = None if fate == "answer lost" else hub.turn
        deadline = hub.now + timeout
        while exchange.answer is None or fate == "answer lost":
            if hub.now >= deadline:
                raise TimeoutError(fate)
            hub.wait(deadline)
        return str(exchange.answer)

    def _arrive(self, exchange: Exchange) -> None:
        self.under_way.remove(exchange)
        if self.honours and exchange.key in self.by_key:
            exchange.answer = self.by_key[exchange.key]
        else:
            done = self.ledger.setdefault(exchange.effect, [])
            done.append(f"{exchange.key[:8]}/{len(done) + 1}")
            exchange.answer = self.by_key[exchange.key] = done[-1]
        self.hub.wake(exchange.waits)

    def verify(self, effect: Effect, key: str, tells: bool) -> Verdict:
        """Return what it knows of *key*; both ways take a while."""
        self.hub.pause(self.hub.random.choice((0.0, 0.5, 1.5)))
        answer: Verdict = Happened(self.by_key[key]) if key in self.by_key else DID_NOT_HAPPEN
        self.hub.pause(self.hub.random.choice((0.0, 0.5, 4.0)))
        del effect
        return answer if tells else CANT_TELL

    def is_quiet(self, effect: Effect) -> bool:
        """Return whether nothing is on its way for *effect*."""
        return not any(one.effect == effect for one in self.under_way)
