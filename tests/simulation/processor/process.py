"""One process: the product's loop, desk, lanes, opener, marker, watchdog and renewer, put together as the product does."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.simulation.processor.adapter import QUERIES, Deadlines
from tests.simulation.processor.broker import Consumer, Place, Producer
from tests.simulation.processor.hub import Life, SimChance, SimClock
from tests.simulation.processor.messages import GROUP, Decoder

from packhorse.core.backoff import Backoff
from packhorse.core.errors import PackhorseError
from packhorse.core.telemetry import NO_TELEMETRY
from packhorse.processor.member.intake import Intake
from packhorse.processor.member.loop import Loop, Times
from packhorse.processor.partition.state import Limits
from packhorse.processor.plant import Plant
from packhorse.processor.record import Stream
from packhorse.processor.running.lanes import Lanes
from packhorse.processor.running.measure import Measure
from packhorse.processor.storing.store import Store
from packhorse.processor.watching.board import Board
from packhorse.processor.watching.renewer import Renewer
from packhorse.processor.watching.watchdog import Watchdog

if TYPE_CHECKING:
    from tests.simulation.processor.world import World

LIMITS = Limits(
    batch=4,
    buffered=12,
    tracked=30,
    mark_every=0.05,
    commit_every=0.2,
    quick=10.0,
    ask_again=1.0,
    backoff=Backoff(first=0.05, longest=0.4),
)
TIMES = Times(drain=2.0, revoke=1.5)


class Quiet:
    """Be a log that nobody reads; what matters is in the story."""

    def __init__(self, world: "World", name: str) -> None:
        self._world = world
        self._name = name

    def debug(self, event: str, **fields: Any) -> None:
        """Say nothing."""

    def info(self, event: str, **fields: Any) -> None:
        """Say nothing."""

    def warning(self, event: str, **fields: Any) -> None:
        self._world.say(f"{self._name}: {event} {fields}")

    error = warning


def plant_of(world: "World", log: Any, **more: Any) -> Plant:
    """Return what the lanes of one process share."""
    clock: Any = SimClock(world.hub)
    chance: Any = SimChance(world.hub)
    deadlines: Any = Deadlines()
    return Plant(
        app=world.app,
        sources=world.sources,
        member=UUID(int=world.random.getrandbits(128), version=4),
        conninfo="",
        store=Store(queries=QUERIES, group=GROUP, schema="packhorse"),
        decoder=Decoder(),
        copies=Producer(world),
        broker=world.broker,
        outbox=None,  # type: ignore[arg-type]  # no handler emits
        clock=clock,
        chance=chance,
        log=log,
        board=Board(clock),
        deadlines=deadlines,
        **more,
    )


class Process:
    """One member of the group."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.life = Life(name)
        self.stopping = False
        self.ended = False
        world.hub.spawn(self.life, f"{name} loop", self._main)

    def is_set(self) -> bool:
        """Be the stop sign."""
        return self.stopping

    def wake(self) -> None:
        """Let a poll that brings nothing end."""
        self.world.hub.wake(self.life.polls)

    def _main(self) -> None:
        try:
            self._run()
        except PackhorseError as error:
            self.world.say(f"{self.name} ends: {error}")
            if "foresaw" in str(error) or "Error at" in str(error):
                self.world.broken = str(error)
        except Exception as error:  # noqa: BLE001 nothing may end a loop that way
            self.world.broken = f"{self.name} met {type(error).__name__}: {error}"
        self.ended = True
        self.world.hub.after(0.0, lambda: self.world.gone(self))

    def _run(self) -> None:
        world = self.world
        clock: Any = SimClock(world.hub)
        chance: Any = SimChance(world.hub)
        log: Any = Quiet(world, self.name)
        plant = plant_of(
            world,
            log,
            reconnected=lambda: loop.void(),  # noqa: PLW0108 it is made below
            broke=lambda why: loop.abort(why),  # noqa: PLW0108 it is made below
        )
        lanes = Lanes(plant, Measure(NO_TELEMETRY, clock, GROUP, log=log), count=world.lanes)
        loop: Loop = Loop(
            consume=self._consume,
            lanes=lanes,
            limits=LIMITS,
            times=TIMES,
            clock=clock,
            chance=chance,
            telemetry=NO_TELEMETRY,
            log=log,
            group=GROUP,
            streams=self._stream_of,
            sort=Intake(world.app),
            board=plant.board,
        )
        watchdog, renewer = Watchdog(plant), Renewer(plant)
        try:
            watchdog.start()
            renewer.start()
            loop.run(self)
        finally:
            watchdog.stop()
            renewer.stop()

    def _consume(self, loop: Loop) -> Any:
        return Consumer(self.world, self, loop)

    def _stream_of(self, place: Place) -> Stream:
        read = self.world.sources[place[0]]
        return Stream(topic=place[0], topic_id=UUID(int=0), source=read.source, tier=read.tier)
