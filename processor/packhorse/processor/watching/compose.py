"""Put together what watches a processor."""

from collections.abc import Callable, Mapping

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.kafka_properties import Property
from packhorse.processor.health.http import HealthServer
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.kafka.probing import Probe
from packhorse.processor.plant import Plant
from packhorse.processor.watching.observer import Observer
from packhorse.processor.watching.prober import Prober
from packhorse.processor.watching.roster import Holding, Roster
from packhorse.processor.watching.settings import WatchFields


class Watching:
    """
    The threads beside the loop that look at it: observer, roster, prober, and whoever answers for health.

    Attributes:
        health: The server, where a port is set.
    """

    def __init__(
        self,
        plant: Plant,
        settings: WatchFields,
        *,
        lanes: int,
        broker: BrokerQuestions,
        consumer: Mapping[str, Property],
        pause: Callable[[Holding], None],
    ) -> None:
        plant.board.reads({topic: read.source for topic, read in plant.sources.items()})
        self.observer = Observer(plant, lanes=lanes, after=settings.stall_after)
        plant.board.say("replay_handlers", list(plant.app.replay_handlers))
        self.roster = Roster(plant, pause=pause, stalls=lambda: self.observer.stalls)
        self._prober = Prober(plant, Probe(broker, consumer, SYSTEM_CLOCK), after=settings.stall_after)
        self.health: HealthServer | None = None
        if settings.health_port:
            self.health = HealthServer(
                plant.board.vitals.health,
                group=plant.app.group,
                host=settings.health_host,
                port=settings.health_port,
            )

    def start(self) -> None:
        """
        Answer for health, read what is paused, start looking.

        Raises:
            DatabaseUnavailable, NotReady: What is paused can't be read.
        """
        if self.health is not None:
            self.health.start()
        self.roster.start()
        self.observer.start()
        self._prober.start()

    def stop(self) -> None:
        """Stop all; health is the last to fall silent."""
        self.observer.stop()
        self._prober.stop()
        self.roster.stop()
        if self.health is not None:
            self.health.stop()
