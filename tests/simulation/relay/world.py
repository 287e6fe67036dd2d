"""The schedule: writers, relays, the network and faults take steps in an order drawn from one seed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

from greenlet import GreenletExit, getcurrent, greenlet  # type: ignore[import-untyped]
from tests.simulation.relay.broker import PLACES, TOPICS, SimBroker, Topic
from tests.simulation.relay.database import Database, Transaction, behind
from tests.simulation.relay.outbox import SimKeeper, SimOutbox
from tests.simulation.relay.stream import SimStream
from tests.simulation.relay.writers import Writer

from packhorse.relay.model import Policy
from packhorse.relay.shell import Relay

LEASE = 1.0
POLICY = Policy(
    batch_rows=2, poll=0.01, idle_poll=0.03, save=0.02, idle_save=0.5, standby_poll=0.2, silence=0.5, stop_within=2.0,
    retry_first=0.02, retry_longest=0.2, confirm_slice=0.02, broker_look=0.1, silence_longest=1.0, release_rows=3,
    meet_within=0.3, heal_first=0.05, stream_retry=0.1, slot_look=0.1, slot_budget=60, slot_lag=40,
)  # fmt: skip
STEPS = 10_000
Action = Callable[[], object]


class Stuck(AssertionError):
    """The schedule did not come to its end."""


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
    """One relay process: the real shell over the real core, simulated ports."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.frozen_until = 0.0
        self.outbox = SimOutbox(world.database, now=lambda: world.now, pause=world.pause)
        self.outbox.cut = world.cut
        self.broker = SimBroker(world.topic, world.random, pause=world.pause)
        self.keeper = SimKeeper(world.database, lease=LEASE, now=lambda: world.now, halt=self._halt)
        self.seconds: list[SimBroker] = []
        self.stream = SimStream(world.database, pause=world.pause)
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

    def end(self) -> None:
        """Die: what is under way may still arrive, nothing else happens any more."""
        for task in self.tasks:
            if not task.done and task.greenlet:
                task.greenlet.throw(GreenletExit)
        for broker in (self.broker, *self.seconds):
            broker.close()


class World:
    """
    One run.

    Attributes:
        plant: Called with each new process: plants an error.
        faults: How many faults are still to come.
    """

    def __init__(
        self, seed: int, plant: Callable[[Process], None] | None = None, *, lock_keys: bool = True
    ) -> None:
        self.random = Random(seed)
        self.plant = plant
        self.now = 0.0
        self.scheduler = getcurrent()
        self.database = Database()
        self.topic = Topic()
        self.topic.bad_share = self.random.choice((0.0, 0.06))
        self.mode = self.random.choice(("polling", "auto"))
        self.backup: Database | None = None
        self.given_up: set[str] = set()
        self.faults = self.random.randint(0, 8)
        self.cuts = 0
        self.story: list[str] = []
        locks: dict[str, Transaction] | None = {} if lock_keys else None
        self.writers = [
            Writer(
                self.database, self.topic, self.random, locks, transactions=3 if self.mode == "polling" else 8
            )
            for _ in range(self.random.randint(2, 4))
        ]
        self.processes = [Process(self)]
        self.ghosts: list[SimBroker] = []

    # --- what the parties call

    def pause(self) -> None:
        """Let others run."""
        self.scheduler.switch()

    def cut(self) -> bool:
        """Tell whether the connection that asks is cut now."""
        if self.cuts and self.random.random() < 0.2:
            self.cuts -= 1
            return True
        return False

    # --- the schedule

    def run(self) -> None:
        """
        Take steps until all is quiet.

        Raises:
            Stuck: The rows do not get published, though nothing hinders them.
        """
        try:
            for _ in range(STEPS):
                if self._quiet():
                    return
                self._step()
            raise Stuck(f"no end: {self.database.relay}, {self.story[-20:]}")
        finally:
            for process in self.processes:
                process.end()

    def _quiet(self) -> bool:
        topic = self.topic
        if (
            self.writers
            or self.faults
            or topic.refused
            or topic.too_large
            or topic.missing
            or topic.leaderless
        ):
            return False
        if not topic.up or self.database.relay.holds:
            return False
        position = self.database.relay.position
        return all(behind(row, position) for row in self.database.rows) and not any(
            g.late for g in self.ghosts
        )

    def _step(self) -> None:
        for process in [process for process in self.processes if process.tasks[0].done]:
            self._bury(process)
        self.now += self.random.random() * 0.01
        actions = list(self._actions())
        if not actions:
            self.now += 0.05
            return
        weights = [weight for weight, _ in actions]
        self.random.choices([action for _, action in actions], weights)[0]()

    def _actions(self) -> Iterator[tuple[float, Action]]:
        for writer in self.writers:
            yield 1.0, partial(self._write, writer)
        for process in self.processes:
            if process.frozen_until <= self.now:
                yield from self._of_process(process)
        brokers = [broker for process in self.processes for broker in (process.broker, *process.seconds)]
        for broker in [*self.ghosts, *brokers]:
            if broker.late:
                yield 0.5, broker.arrive_late
        yield from self._of_chance()

    def _of_process(self, process: Process) -> Iterator[tuple[float, Action]]:
        for task in process.tasks:
            if not task.done and task.wake_at <= self.now:
                yield 3.0, task.greenlet.switch
        for broker in (process.broker, *process.seconds):
            if broker.busy():
                yield 2.0, broker.step
        if process.keeper.due():
            yield 2.0, partial(self._renew, process)

    def _of_chance(self) -> Iterator[tuple[float, Action]]:
        if self.database.flushed < self.database.inserted:
            yield 0.05, partial(self.database.flush, self.database.inserted)
        if self.faults:
            yield 0.15, self._fault
        elif not self.topic.up:
            yield 1.0, self._broker_up
        if not self.writers or self.random.random() < 0.02:
            if self.topic.refused or self.topic.too_large:
                yield 0.1, self._mend
            if self.topic.missing or self.topic.leaderless:
                yield 0.1, self._heal
        if any(not hold.fault.heals and not hold.releasing for hold in self.database.relay.holds.values()):
            yield 0.05, self._order
        if not any(process.frozen_until <= self.now for process in self.processes):
            yield 0.2, self._start

    def _write(self, writer: Writer) -> None:
        if not writer.step():
            self.writers.remove(writer)

    def _renew(self, process: Process) -> None:
        process.keeper.renew(reachable=not self.cut())

    # --- faults

    def _fault(self) -> None:
        self.faults -= 1
        fault = self.random.choice(
            (
                self._kill,
                self._freeze,
                self._crash,
                self._cut,
                self._broker_down,
                self._broker_up,
                self._start,
                self._stop,
                self._break_topic,
                self._break_topic,
                self._backup,
                self._restore,
                self._drop_slot,
            )
        )
        self.story.append(f"{self.now:.2f} {fault.__name__}")
        fault()

    def _kill(self) -> None:
        if self.processes:
            self._bury(self.random.choice(self.processes))

    def _bury(self, process: Process) -> None:
        self.processes.remove(process)
        process.end()
        self.ghosts += [process.broker, *process.seconds]

    def _freeze(self) -> None:
        if self.processes:
            self.random.choice(self.processes).frozen_until = self.now + self.random.choice((0.2, 2.0, 4.0))

    def _crash(self) -> None:
        self.database.crash()

    def _cut(self) -> None:
        self.cuts += self.random.randint(1, 4)

    def _broker_down(self) -> None:
        self.topic.up = False

    def _broker_up(self) -> None:
        self.topic.up = True

    def _start(self) -> None:
        if len(self.processes) < 3:
            self.processes.append(Process(self))

    def _stop(self) -> None:
        if self.processes:
            self.random.choice(self.processes).relay.stop()

    def _mend(self) -> None:
        """Take back that a row can't be sent; nobody tells the relay."""
        for bad in (self.topic.refused, self.topic.too_large):
            if bad:
                bad.discard(self.random.choice(sorted(bad)))

    def _order(self) -> None:
        """Be a person: order a release, mended or not, or give the row up first."""
        held = [
            hold for hold in self.database.relay.holds.values() if not hold.fault.heals and not hold.releasing
        ]
        hold = self.random.choice(held)
        name = hold.fault.id
        if name is not None and self.random.random() < 0.2:
            self.database.discarded.add(name)
            self.given_up.add(name)
        self.story.append(f"{self.now:.2f} order {hold.scope.aggregateid}")
        self.database.order_release(hold.scope)

    def _break_topic(self) -> None:
        if self.random.random() < 0.5:
            self.topic.missing.add(self.random.choice(TOPICS))
        else:
            self.topic.leaderless.add(self.random.choice(PLACES))

    def _heal(self) -> None:
        self.topic.missing.clear()
        self.topic.leaderless.clear()

    def _backup(self) -> None:
        self.backup = self.database.backup()

    def _restore(self) -> None:
        if self.backup is not None:
            self.database.restore(self.backup)

    def _drop_slot(self) -> None:
        self.database.slot = None


def arrivals(world: World) -> dict[str, list[str]]:
    """Return each key's first arrivals, without what a restore has taken from the database or a person has given up."""
    apart = world.database.gone | world.given_up
    first: dict[str, list[str]] = {}
    for key, name in world.topic.log:
        names = first.setdefault(key, [])
        if name not in names and name not in apart:
            names.append(name)
    return first


def commits(world: World) -> dict[str, list[str]]:
    """Return each key's rows in the order of their commits, without what was given up."""
    order = world.database.commit_order
    return {key: [name for name in names if name not in world.given_up] for key, names in order.items()}


def judge(world: World) -> str | None:
    """Say what is wrong with the topic, from the topic and the order of commits alone; None: nothing is."""
    first, order = arrivals(world), commits(world)
    for key in sorted({*first, *order}):
        arrived, committed = first.get(key, []), order.get(key, [])
        if lost := [name for name in committed if name not in arrived]:
            return f"key {key}: lost {lost}"
        if extra := [name for name in arrived if name not in committed]:
            return f"key {key}: never committed, or lost by the database, and on the topic: {extra}"
        if arrived != committed:
            return f"key {key}: arrived {arrived}, committed {committed}"
    return None


def fault_of(
    seed: int, plant: Callable[[Process], None] | None = None, *, lock_keys: bool = True
) -> str | None:
    """Run one seed and say what went wrong, with the seed and the faults; None: nothing did."""
    world = World(seed, plant, lock_keys=lock_keys)
    try:
        world.run()
    except Stuck as stuck:
        return f"seed {seed}: {stuck}"
    wrong = judge(world)
    return None if wrong is None else f"seed {seed}: {wrong}; {world.story}"
