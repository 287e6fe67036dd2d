"""What goes wrong while the demo goes on, and how it heals: outages, refusals, poison, and a processor that is killed."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from examples.common.children import Children
from examples.flights.rehearsal import Say
from examples.flights.serving import sql
from examples.flights.serving.schedule import Happening, Kind
from examples.flights.serving.traffic import Traffic
from examples.flights.timeline import Movement
from examples.flights.trouble import (
    OUT_OF_RANGE,
    PASSES,
    POISONS,
    begin_outage,
    emit_one_poison,
    end_outage,
)
from packhorse.core.clock import SYSTEM_CHANCE

SOON = 24
"""Movements within which an aircraft must move, three seconds at most, to be certain to meet its outage."""
OUT = 2
"""Aircraft of one outage."""


def next_to_move(
    coming: Sequence[Movement], spared: Collection[str], *, count: int, busiest: bool = False
) -> list[str]:
    """Return *count* aircraft that move soon, or fewer: the first, or those with the most of what is *coming*; none of *spared*."""
    soon = [movement.flight.tail_number for movement in coming[:SOON]]
    tails = [tail for tail in dict.fromkeys(soon) if tail is not None and tail not in spared]
    if busiest:
        moves = Counter(movement.flight.tail_number for movement in coming)
        tails.sort(key=lambda tail: -moves[tail])
    return tails[:count]


@dataclass(frozen=True, slots=True, kw_only=True)
class _UnderWay:
    """Some trouble: when it ends, how, and what a person is told of it meanwhile."""

    until: float
    end: Callable[[], None]
    text: str


class Unrest:
    """The trouble of the demo that goes on; each call says what the time is, in seconds since the beginning."""

    def __init__(
        self, connection: psycopg.Connection[Any], children: Children, traffic: Traffic, say: Say
    ) -> None:
        self._connection = connection
        self._children = children
        self._traffic = traffic
        self._say = say
        self._under_way: list[_UnderWay] = []

    @property
    def under_way(self) -> list[str]:
        """Return what goes wrong now, in words."""
        return [each.text for each in self._under_way]

    def begin(self, happening: Happening, *, now: float) -> None:
        """Let *happening* happen; what lasts is ended by `go_on`."""
        match happening.kind:
            case Kind.OUTAGE:
                self._outage(happening, now)
            case Kind.REFUSAL:
                self._refusal(happening, now)
            case Kind.POISON:
                self._poison(happening)
            case Kind.KILL:
                self._kill(happening, now)
            case _:
                raise ValueError(f"{happening.kind} is no trouble")

    def go_on(self, *, now: float) -> None:
        """End what is over."""
        over = [each for each in self._under_way if each.until <= now]
        self._under_way = [each for each in self._under_way if each.until > now]
        for each in over:
            each.end()

    def heal(self) -> None:
        """End all outages and refusals, so that what is redriven meets none; also the one that was never to end while it was counted."""
        self._connection.execute(sql.HEAL)

    def _outage(self, happening: Happening, now: float) -> None:
        tails = next_to_move(self._traffic.coming, self._spared(), count=OUT)
        if not tails:
            return  # the year is over: nobody would meet it
        begin_outage(self._connection, tails, code=PASSES)
        self._last(
            now, happening, lambda: end_outage(self._connection, tails), f"outage of {' and '.join(tails)}"
        )

    def _refusal(self, happening: Happening, now: float) -> None:
        """Refuse an aircraft's figures; every second time it is an outage that outlasts the attempts instead."""
        tails = next_to_move(self._traffic.coming, self._spared(), count=1, busiest=True)
        if not tails:
            return
        code = OUT_OF_RANGE if happening.number % 2 else PASSES
        begin_outage(self._connection, tails, code=code)

        def mended() -> None:
            end_outage(self._connection, tails)
            self._say(f"mended: what is in quarantine of {tails[0]} can be redriven now")

        self._last(
            now, happening, mended, f"figures of {tails[0]} {'refused' if code == OUT_OF_RANGE else 'out'}"
        )

    def _poison(self, happening: Happening) -> None:
        key = f"POISON-{SYSTEM_CHANCE.token().hex[:8]}"  # an own one, or it would wait behind the last
        poison = emit_one_poison(self._connection, POISONS[happening.number % len(POISONS)], key=key)
        self._say(f"poison: {poison.what}")

    def _kill(self, happening: Happening, now: float) -> None:
        self._children.kill("processor")
        self._say(
            f"the processor of the figures is killed (SIGKILL), and started anew in {happening.lasts:g} s"
        )
        self._last(now, happening, self._children.start_processor, "the processor of the figures is dead")

    def _spared(self) -> set[str]:
        return {row[0] for row in self._connection.execute(sql.SPARED).fetchall()}

    def _last(self, now: float, happening: Happening, end: Callable[[], None], text: str) -> None:
        self._under_way.append(_UnderWay(until=now + happening.lasts, end=end, text=text))
