"""What goes wrong, and when: each act waits for a fact, never for a time."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg

from examples.flights.children import Children
from examples.flights.standing import Standing
from examples.flights.trouble import Poison, begin_outage, emit_poison, end_outage

Say = Callable[[str], None]


class Rehearsal:
    """
    The trouble of one run: an outage, poison, and a SIGKILL each for the processor and the relay.

    Attributes:
        poison: What was written that must come to rest in quarantine.
    """

    def __init__(self, children: Children, connection: psycopg.Connection[Any], say: Say) -> None:
        self.poison: list[Poison] = []
        self._children = children
        self._connection = connection
        self._say = say
        self._scripts: list[Iterator[None]] = []
        self._standing = Standing()

    def begin(self, aircraft: Sequence[str], *, total: int) -> None:
        """Begin the outage of *aircraft*, write the poison, and go on in `go_on`; *total* messages are expected."""
        begin_outage(self._connection, aircraft)
        self._say(f"outage: the figures of {', '.join(aircraft)} can't be written; their messages wait")
        self.poison = emit_poison(self._connection)
        self._say(f"{len(self.poison)} poison messages written, with keys of their own")
        self._scripts = [self._kill_processor(), self._kill_relay(total)]

    def go_on(self, standing: Standing) -> bool:
        """Do what *standing* calls for; False when nothing is left to do."""
        self._standing = standing
        self._scripts = [script for script in self._scripts if next(script, self) is None]
        return bool(self._scripts)

    def _kill_processor(self) -> Iterator[None]:
        while self._standing.waiting == 0:
            yield
        self._children.kill("processor")
        self._say("the processor is killed (SIGKILL) while messages wait to be tried again, and started anew")
        failed = self._standing.failed_attempts
        self._children.start_processor()
        while self._standing.failed_attempts < failed + 2:
            yield
        end_outage(self._connection)
        self._say(f"the outage ends after {self._standing.failed_attempts} failed attempts")

    def _kill_relay(self, total: int) -> Iterator[None]:
        while self._standing.published < total // 2:
            yield
        self._children.kill("relay")
        self._say(
            f"the relay is killed (SIGKILL) with {self._standing.published:,} messages published, and started anew"
        )
        self._children.start_relay()
