"""What goes wrong, and when: each act waits for a fact, never for a time."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from examples.common.children import Children
from examples.flights.standing import Standing
from examples.flights.timeline import Movement
from examples.flights.trouble import (
    OUT_OF_RANGE,
    Poison,
    Refused,
    begin_outage,
    emit_poison,
    end_outage,
    find_refused,
)

Say = Callable[[str], None]
OUTAGE_AIRCRAFT = 3
REFUSED_BEHIND = 10
"""Messages that come to wait behind a refused one before somebody mends that, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """
    To whom it happens.

    Attributes:
        out: Aircraft whose figures can't be written for a while.
        refused: One whose figures are refused until somebody mends that; None: nobody is.
        behind: Messages of it that are waited for behind the refused one, before it is sent back.
    """

    out: Sequence[str]
    refused: str | None = None
    behind: int = 1


def cast_of(movements: Sequence[Movement]) -> Cast:
    """
    Return whom it happens to: the aircraft with the most *movements*, which an outage is met by for certain.

    The next one is refused, if others of its messages must come to wait behind the one that is.
    """
    tails = Counter(movement.flight.tail_number for movement in movements if movement.flight.tail_number)
    out = [tail for tail, _ in tails.most_common(OUTAGE_AIRCRAFT)]
    refused = next(
        ((tail, count) for tail, count in tails.most_common() if tail not in out and count > 1), None
    )
    if refused is None:
        return Cast(out=out)
    return Cast(out=out, refused=refused[0], behind=min(refused[1] - 1, REFUSED_BEHIND))


class Rehearsal:
    """
    The trouble of one run: an outage, a refusal, poison, and a SIGKILL each for the processor and the relay.

    Attributes:
        poison: What was written that must come to rest in quarantine.
        refused: What was in quarantine and was sent back.
    """

    def __init__(self, children: Children, connection: psycopg.Connection[Any], say: Say) -> None:
        self.poison: list[Poison] = []
        self.refused: list[Refused] = []
        self._children = children
        self._connection = connection
        self._say = say
        self._scripts: list[Iterator[None]] = []
        self._standing = Standing()

    def begin(self, cast: Cast, *, total: int) -> None:
        """Begin the trouble of *cast*, write the poison, and go on in `go_on`; *total* messages are expected."""
        begin_outage(self._connection, cast.out)
        self._say(
            f"outage: the figures of {', '.join(cast.out)} can't be written; their messages wait in tiers"
        )
        self._scripts = [self._kill_processor(cast.out), self._kill_relay(total)]
        if cast.refused is not None:
            begin_outage(self._connection, [cast.refused], code=OUT_OF_RANGE)
            self._say(
                f"refusal: the figures of {cast.refused} do not fit; its next message goes to quarantine"
            )
            self._scripts.append(self._redrive(cast.refused, cast.behind))
        self.poison = emit_poison(self._connection)
        self._say(f"{len(self.poison)} poison messages written, with keys of their own")

    def go_on(self, standing: Standing) -> bool:
        """Do what *standing* calls for; False when nothing is left to do."""
        self._standing = standing
        self._scripts = [script for script in self._scripts if next(script, self) is None]
        return bool(self._scripts)

    def _kill_processor(self, out: Sequence[str]) -> Iterator[None]:
        while self._standing.waiting == 0:
            yield
        self._children.kill("processor")
        self._say("the processor is killed (SIGKILL) while messages wait in tiers, and started anew")
        before = self._standing
        self._children.start_processor()
        while self._standing.failed_attempts < before.failed_attempts + 2:
            yield
        end_outage(self._connection, out)
        now = self._standing
        self._say(
            f"the outage ends after {now.failed_attempts} failed attempts; {now.waiting} wait in tiers, {now.behind} behind "
            f"them and what is in quarantine; {now.done - before.done:,} of other aircraft went on meanwhile"
        )

    def _redrive(self, aircraft: str, behind: int) -> Iterator[None]:
        while (found := find_refused(self._connection, aircraft)) is None or len(found.behind) < behind:
            yield
        end_outage(self._connection, [aircraft])
        self._children.run(
            "quarantine", "redrive", str(found.id), "--why", "the column is wider now", "--yes"
        )
        self.refused.append(found)
        self._say(
            f"the message of {aircraft} was in quarantine ({found.reason}) and is redriven; "
            f"{len(found.behind)} of the same aircraft waited behind it and follow"
        )

    def _kill_relay(self, total: int) -> Iterator[None]:
        while self._standing.published < total // 2:
            yield
        self._children.kill("relay")
        self._say(
            f"the relay is killed (SIGKILL) with {self._standing.published:,} messages published, and started anew"
        )
        self._children.start_relay()
