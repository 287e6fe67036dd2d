"""
The scheduler: every thread of the product is a greenlet, and which one goes on is drawn from one seed.

An actor gives way at each statement, each record that is sent, each wait. Time goes on by a little at each step, and to the next
deadline when nobody can go on; so nothing ever sleeps.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf
from queue import Empty
from random import Random
from typing import Any
from uuid import UUID

from greenlet import GreenletExit, getcurrent, greenlet  # type: ignore[import-untyped]  # it brings no types

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
STEP = 0.001
"""Seconds that one step takes."""


class Killed(GreenletExit):  # type: ignore[misc]  # of no known type
    """The process of this actor is gone: it runs not one line more that anybody could notice."""


class NoEnd(AssertionError):
    """The schedule does not come to an end."""


@dataclass(slots=True, eq=False)
class Life:
    """
    What a process of the operating system is for the scheduler: its actors live and stand still together.

    Attributes:
        dead: It was killed.
        frozen: Time until which it stands still.
        polls: The actor that waits for the broker, and looks up when a lane reports.
    """

    name: str
    actors: list["Actor"] = field(default_factory=list)
    dead: bool = False
    frozen: float = -inf
    polls: "Actor | None" = None


@dataclass(slots=True, eq=False)
class Actor:
    """
    One thread.

    Attributes:
        until: Time at which it goes on, unless it is woken before.
        hold: Time before which it does not go on, woken or not: its thread gets no turn.
        fence, place: Of a lane, what its job counts by and where it is read from.
    """

    name: str
    life: Life
    glet: greenlet
    until: float = 0.0
    hold: float = -inf
    fence: Any = None
    place: Any = None


class Hub:
    """The one scheduler of a world."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 1.0
        self.actors: list[Actor] = []
        self.turn: Actor | None = None
        self.main = getcurrent()
        self.world: Any = None
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = 0

    def spawn(self, life: Life, name: str, run: Callable[[], object]) -> Actor:
        """Let *run* begin as a thread of *life*."""
        actor = Actor(name, life, greenlet(lambda: self._run(run), self.main), until=self.now)
        life.actors.append(actor)
        self.actors.append(actor)
        return actor

    def _run(self, run: Callable[[], object]) -> None:
        try:
            run()
        except Killed:
            return

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call once, *seconds* from now."""
        self._numbers += 1
        self.timers.append((self.now + seconds, self._numbers, call))

    def step(self) -> bool:
        """Let one actor go on, or time; return whether it was an actor."""
        self._ring()
        now = self.now
        able = [one for one in self.actors if one.until <= now and one.hold <= now and one.life.frozen <= now]
        if not able:
            self._pass_time()
            return False
        self.now += STEP
        self.turn = actor = self.random.choice(able)
        actor.until = inf
        actor.glet.switch()
        if actor.glet.dead:
            self.actors = [one for one in self.actors if one is not actor]
        return True

    def _ring(self) -> None:
        if not self.timers:
            return
        due = sorted(one for one in self.timers if one[0] <= self.now)
        if due:
            self.timers = [one for one in self.timers if one[0] > self.now]
            for _, _, call in due:
                call()

    def _pass_time(self) -> None:
        times = [max(one.until, one.hold, one.life.frozen) for one in self.actors]
        times += [at for at, _, _ in self.timers]
        soonest = min(times, default=inf)
        if soonest == inf:
            raise NoEnd("nobody waits for anything that will come")
        self.now = max(self.now, soonest)

    def pause(self, seconds: float = 0.0) -> None:
        """Give way for at least *seconds*; for the actor whose turn it is."""
        self.wait(self.now + seconds)

    def wait(self, until: float) -> None:
        """Give way until *until*, or until somebody wakes the actor."""
        actor = self.turn
        assert actor is not None
        if actor.life.dead:
            raise Killed
        actor.until = until
        self.main.switch()
        self.turn = actor
        if actor.life.dead:
            raise Killed

    def wake(self, actor: Actor | None) -> None:
        """Let a waiting actor go on."""
        if actor is not None and actor.until > self.now:
            actor.until = self.now

    def kill(self, life: Life) -> None:
        """End a process where it stands; raises in the actor that is one of its own."""
        life.dead = True
        mine = self.turn if self.turn is not None and self.turn.glet is getcurrent() else None
        self.actors = [one for one in self.actors if one.life is not life]
        for actor in life.actors:
            if actor is not mine and not actor.glet.dead:
                self.turn, turn = actor, self.turn
                actor.glet.parent = getcurrent()
                if actor.glet:
                    actor.glet.throw(Killed)
                self.turn = turn
        if mine is not None and mine.life is life:
            raise Killed


class SimClock:
    """Be the port `Clock`."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def now(self) -> datetime:
        return wall(self._hub.now)

    def monotonic(self) -> float:
        return self._hub.now


class SimChance:
    """Be the port `Chance`."""

    def __init__(self, hub: Hub) -> None:
        self.fraction = hub.random.random
        self._hub = hub

    def token(self) -> UUID:
        return UUID(int=self._hub.random.getrandbits(128), version=4)

    def message_id(self, now: datetime) -> UUID:
        del now
        return self.token()


def wall(now: float) -> datetime:
    """Return the wall clock at *now*."""
    return EPOCH + timedelta(seconds=now)


class SimQueue:
    """Be a queue between threads."""

    def __init__(self) -> None:
        self._hub = current()
        self._items: list[Any] = []
        self._waits: list[Actor] = []
        self._idle = 0.0

    def put(self, item: Any) -> None:
        self._items.append(item)
        hub = self._hub
        if self._waits:
            hub.wake(self._waits.pop(0))
        elif hub.turn is not None:
            hub.wake(hub.turn.life.polls)

    def get(self, timeout: float | None = None) -> Any:
        hub = self._hub
        # Who looks every few milliseconds looks less often while nothing comes: it is woken by what does.
        deadline = inf if timeout is None else hub.now + max(timeout, self._idle)
        while not self._items:
            if hub.now >= deadline:
                self._idle = min(0.5, max(timeout or 0.0, 2 * self._idle))
                raise Empty
            assert hub.turn is not None
            self._waits.append(hub.turn)
            hub.wait(deadline)
            if hub.turn in self._waits:
                self._waits.remove(hub.turn)
        self._idle = 0.0
        return self._items.pop(0)

    def get_nowait(self) -> Any:
        if not self._items:
            raise Empty
        return self._items.pop(0)


class SimThread:
    """Be a thread."""

    def __init__(
        self, target: Callable[..., object], name: str = "", daemon: bool = True, args: Any = ()
    ) -> None:
        del daemon
        self.name = name
        self._target, self._args = target, args
        self._actor: Actor | None = None

    def start(self) -> None:
        hub = current()
        assert hub.turn is not None
        life = hub.turn.life
        self._actor = hub.spawn(life, f"{life.name} {self.name}", lambda: self._target(*self._args))

    def is_alive(self) -> bool:
        return self._actor is not None and not self._actor.glet.dead

    def join(self, timeout: float | None = None) -> None:
        hub = current()
        deadline = hub.now + (timeout or 0.0)
        while self.is_alive() and hub.now < deadline:
            hub.pause(0.1)


class SimEvent:
    """Be an event between threads."""

    def __init__(self) -> None:
        self._set = False
        self._waits: list[Actor] = []

    def set(self) -> None:
        self._set = True
        for actor in self._waits:
            current().wake(actor)

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float) -> bool:
        hub = current()
        if not self._set:
            assert hub.turn is not None
            self._waits.append(hub.turn)
            hub.wait(hub.now + timeout)
            self._waits.remove(hub.turn)
        return self._set


class SimThreading:
    """Be the module `threading`, as far as the product uses it."""

    Thread = SimThread
    Event = SimEvent
    Lock = threading.Lock
    """The real one: nobody gives way while holding one."""

    @staticmethod
    def current_thread() -> SimThread:
        """Return something that lives."""
        return SimThread(lambda: None)


_CURRENT: list[Hub] = []


def current() -> Hub:
    """Return the hub of the world that runs."""
    return _CURRENT[-1]


def enter(hub: Hub) -> None:
    """Make *hub* the current one."""
    _CURRENT.append(hub)


def leave() -> None:
    """Give the hub before it back its place."""
    _CURRENT.pop()
