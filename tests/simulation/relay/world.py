"""The schedule: writers, relays, the network and faults take steps in an order drawn from one seed."""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random

from greenlet import getcurrent  # type: ignore[import-untyped]
from tests.simulation.relay import people
from tests.simulation.relay.broker import PLACES, TOPICS, SimBroker, Topic
from tests.simulation.relay.database import Database, Transaction
from tests.simulation.relay.process import Process
from tests.simulation.relay.writers import Writer

from packhorse.relay.resharding.model import Step

STEPS = 20_000
MOST_SHARDS = 3
THEMES = ("plain", "plain", "shards", "orders", "stream")
"""What happens more often in a run; of everything else something happens in each."""
Action = Callable[[], object]


class Stuck(AssertionError):
    """The schedule did not come to its end."""


class World:
    """
    One run.

    Attributes:
        plant: Called with each new process: plants an error.
        faults: How many faults are still to come.
    """

    def __init__(
        self,
        seed: int,
        plant: Callable[[Process], None] | None = None,
        *,
        lock_keys: bool = True,
        theme: str | None = None,
    ) -> None:
        self.random = Random(seed)
        self.plant = plant
        self.now = 0.0
        self.scheduler = getcurrent()
        self.theme = self.random.choice(THEMES) if theme is None else theme
        self.most_shards = MOST_SHARDS if self.theme == "shards" else 1
        self.database = Database(self.random.randint(1, self.most_shards))
        self.change: int | None = None
        self.topic = Topic()
        self.topic.bad_share = 0.15 if self.theme == "orders" else self.random.choice((0.0, 0.06))
        self.mode = "auto" if self.theme == "stream" else self.random.choice(("polling", "auto"))
        self.backup: Database | None = None
        self.given_up: set[str] = set()
        self.faults = self.random.randint(0, 8)
        self.cuts = 0
        self.story: list[str] = []
        locks: dict[str, Transaction] | None = {} if lock_keys else None
        transactions = 12 if self.theme == "stream" else 8 if self.mode == "auto" else 3
        self.writers = [
            Writer(self.database, self.topic, self.random, locks, transactions=transactions)
            for _ in range(self.random.randint(2, 4))
        ]
        self.processes = [Process(self, shard) for shard in self.database.relays]
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
            raise Stuck(f"no end: {self.database.relays}, {self.story[-20:]}")
        finally:
            for process in self.processes:
                process.end()

    def _quiet(self) -> bool:
        topic, database = self.topic, self.database
        if self.writers or self.faults or not topic.up or self.change is not None:
            return False
        if topic.refused or topic.too_large or topic.missing or topic.leaderless or topic.mute:
            return False
        if any(row.holds or row.finish for row in database.relays.values()):
            return False
        return database.published() and not any(ghost.late for ghost in self.ghosts)

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
            if self.topic.missing or self.topic.leaderless or self.topic.mute:
                yield 0.1, self._heal
        if any(not hold.fault.heals and not hold.releasing for _, hold in self.database.holds()):
            yield 0.05, self._order
        yield from self._of_shards()

    def _of_shards(self) -> Iterator[tuple[float, Action]]:
        awake = {process.shard for process in self.processes if process.frozen_until <= self.now}
        for shard in self.database.relays:
            if shard not in awake:
                yield 0.2, partial(self._start, shard)
        for process in self.processes:
            if process.shard not in self.database.relays and not process.stopping:
                yield 0.2, process.stop
        if self.change is not None or people.wanted(self.database) is not None:
            yield 0.1, self._advance

    def _write(self, writer: Writer) -> None:
        if not writer.step():
            self.writers.remove(writer)

    def _renew(self, process: Process) -> None:
        process.keeper.renew(reachable=not self.cut())

    # --- faults

    def _fault(self) -> None:
        self.faults -= 1
        more = {"shards": self._reshard, "orders": self._republish, "stream": self._drop_slot}.get(self.theme)
        fault = self.random.choice(
            (
                *((more,) * (2 if self.theme == "stream" else 8) if more is not None else ()),
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
                self._republish,
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

    def _start(self, shard: int | None = None) -> None:
        if shard is not None or len(self.processes) < 2 + len(self.database.relays):
            shard = self.random.choice(list(self.database.relays)) if shard is None else shard
            self.processes.append(Process(self, shard))

    def _stop(self) -> None:
        if self.processes:
            self.random.choice(self.processes).stop()

    def _mend(self) -> None:
        """Take back that a row can't be sent; nobody tells the relay."""
        for bad in (self.topic.refused, self.topic.too_large):
            if bad:
                bad.discard(self.random.choice(sorted(bad)))

    def _order(self) -> None:
        """Be a person: order a release, mended or not, or give the row up first."""
        held = [
            (shard, hold)
            for shard, hold in self.database.holds()
            if not hold.fault.heals and not hold.releasing
        ]
        shard, hold = self.random.choice(held)
        name = hold.fault.id
        if name is not None and self.random.random() < 0.2:
            self.database.discarded.add(name)
            self.given_up.add(name)
        self.story.append(f"{self.now:.2f} order {hold.scope.aggregateid}")
        people.order_release(self.database, shard, hold.scope)

    def _republish(self) -> None:
        rows = sorted(row.seq for row in self.database.rows)
        if not rows:
            return
        first = self.random.choice(rows)
        last = self.random.choice([seq for seq in rows if seq >= first])
        until = last if self.random.random() < 0.6 else None
        done = people.republish(self.database, self.random.choice(TOPICS), first, until, now=self.now)
        self.story.append(f"from {first} to {until}: {done}")

    def _reshard(self) -> None:
        """Want another number of shards, or let the order of somebody who died stand."""
        if self.most_shards > 1 and self.change is None and people.wanted(self.database) is None:
            self.change = self.random.randint(1, self.most_shards)
            self.story.append(f"{self.change} shards")

    def _advance(self) -> None:
        number = people.wanted(self.database) or self.change
        assert number is not None
        step = people.advance(self.database, number, now=self.now)
        if step is None or self.random.random() < 0.02:
            people.abort(self.database)
            self.change = None
        elif step in {Step.DONE, Step.SWITCH}:
            self.change = None
            self.story.append(f"{self.now:.2f} {step} {number}")

    def _break_topic(self) -> None:
        which = self.random.random()
        if which < 0.4:
            self.topic.missing.add(self.random.choice(TOPICS))
        else:
            (self.topic.leaderless if which < 0.7 else self.topic.mute).add(self.random.choice(PLACES))

    def _heal(self) -> None:
        self.topic.missing.clear()
        self.topic.leaderless.clear()
        self.topic.mute.clear()

    def _backup(self) -> None:
        self.backup = self.database.backup()

    def _restore(self) -> None:
        if self.backup is not None:
            self.database.restore(self.backup)

    def _drop_slot(self) -> None:
        if self.database.slots:
            self.database.slots.pop(self.random.choice(sorted(self.database.slots)))


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
    seed: int,
    plant: Callable[[Process], None] | None = None,
    *,
    lock_keys: bool = True,
    theme: str | None = None,
) -> str | None:
    """Run one seed and say what went wrong, with the seed and the faults; None: nothing did."""
    world = World(seed, plant, lock_keys=lock_keys, theme=theme)
    try:
        world.run()
    except Stuck as stuck:
        return f"seed {seed}: {stuck}"
    wrong = judge(world)
    return None if wrong is None else f"seed {seed}: {wrong}; {world.story}"
