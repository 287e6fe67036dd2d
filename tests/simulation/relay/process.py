"""One relay process: the real shell over the real core, simulated ports, and the tasks that the scheduler switches to."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

from greenlet import GreenletExit, greenlet  # type: ignore[import-untyped]
from tests.simulation.relay.broker import SimBroker
from tests.simulation.relay.outbox import SimKeeper, SimOutbox
from tests.simulation.relay.stream import SimStream

from packhorse.relay.doing.shell import Relay
from packhorse.relay.model import Policy

if TYPE_CHECKING:
    from tests.simulation.relay.world import World

LEASE = 1.0
POLICY = Policy(
    batch_rows=2, poll=0.01, idle_poll=0.03, save=0.02, idle_save=0.5, standby_poll=0.2, silence=0.5, stop_within=2.0,
    retry_first=0.02, retry_longest=0.2, confirm_slice=0.02, broker_look=0.1, silence_longest=1.0, release_rows=3,
    meet_within=0.3, heal_first=0.05, stream_retry=0.1, slot_look=0.1, slot_budget=120, slot_lag=80,
)  # fmt: skip


class SimClock:
    """Be the port `Clock` (without a wall clock) on the world's time."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def now(self) -> object:
        raise NotImplementedError

    def monotonic(self) -> float:
        return self._world.now


class SimChance:
    """Be the port `Chance` from the world's seed."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def fraction(self) -> float:
        return self._random.random()

    def token(self) -> UUID:
        return UUID(int=self._random.getrandbits(128))


class Task:
    """One flow of control that the scheduler switches to."""

    def __init__(self, run: Callable[[], object]) -> None:
        self.greenlet = greenlet(run)
        self.wake_at = 0.0

    @property
    def done(self) -> bool:
        return bool(self.greenlet.dead)


class SimPending:
    """A fetch that runs in a task of its own."""

    def __init__(self, fetch: Callable[[], Any], world: "World") -> None:
        self._fetch = fetch
        self._world = world
        self._batch: Any = None
        self._error: Exception | None = None
        self.task = Task(self._run)

    def _run(self) -> None:
        try:
            self._batch = self._fetch()
        except Exception as error:  # noqa: BLE001 handed on to whoever waits
            self._error = error

    def done(self) -> bool:
        return self.task.done

    def result(self) -> Any:
        while not self.task.done:
            self._world.pause()
        if self._error is not None:
            raise self._error
        return self._batch


class Process:
    """One shard's relay in one process: the real shell over the real core, simulated ports."""

    def __init__(self, world: "World", shard: int) -> None:
        self.world = world
        self.shard = shard
        self.frozen_until = 0.0
        self.outbox = SimOutbox(world.database, shard, now=lambda: world.now, pause=world.pause)
        self.outbox.cut = world.cut
        self.broker = SimBroker(world.topic, world.random, pause=world.pause)
        self.keeper = SimKeeper(world.database, shard, lease=LEASE, now=lambda: world.now, halt=self._halt)
        self.seconds: list[SimBroker] = []
        self.stream = SimStream(world.database, shard, pause=world.pause)
        self.stream.cut = world.cut
        self.outbox.stretch = lambda: world.random.choice((1, 3, 1_000))
        self.relay = Relay(
            outbox=self.outbox,
            broker=self.broker,
            keeper=self.keeper,
            pace=self,
            policy=replace(POLICY, mode=world.mode),
            owner="sim",
            lease=LEASE,
            clock=SimClock(world),  # type: ignore[arg-type]
            chance=SimChance(world.random),  # type: ignore[arg-type]
            second=self._second,
            stream=self.stream,
        )
        self.tasks = [Task(self.relay.run)]
        if world.plant is not None:
            world.plant(self)

    def _second(self) -> SimBroker:
        broker = SimBroker(self.world.topic, self.world.random, pause=self.world.pause)
        broker.overtake = self.broker.overtake
        self.seconds.append(broker)
        return broker

    def _halt(self) -> None:
        for broker in (self.broker, *self.seconds):
            broker.halt()

    def pause(self, seconds: float) -> None:
        task = self.tasks[0]
        task.wake_at = self.world.now + seconds
        self.world.pause()

    def wake(self) -> None:
        self.tasks[0].wake_at = 0.0

    def aside(self, work: Callable[[], Any]) -> SimPending:
        return self.begin(work)

    def begin(self, fetch: Callable[[], Any]) -> SimPending:
        pending = SimPending(fetch, self.world)
        self.tasks.append(pending.task)
        return pending

    @property
    def stopping(self) -> bool:
        return self.relay._stop

    def stop(self) -> None:
        self.relay.stop()

    def end(self) -> None:
        """Die: what is under way may still arrive, nothing else happens any more."""
        for task in self.tasks:
            if not task.done and task.greenlet:
                task.greenlet.throw(GreenletExit)
        for broker in (self.broker, *self.seconds):
            broker.close()
