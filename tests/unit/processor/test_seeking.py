"""Where the client is sent to, when it can't go there at once."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from packhorse.processor.app import Processor
from packhorse.processor.member.desk import Desk
from packhorse.processor.member.intake import Intake
from packhorse.processor.member.jobs import Job, OpenJob, Report
from packhorse.processor.partition.events import Opened
from packhorse.processor.partition.state import Limits
from packhorse.processor.record import Stream

PLACE = ("unit.orders", 0)
STREAM = Stream(topic=PLACE[0], topic_id=UUID(int=1), source=PLACE[0])


@dataclass
class World:
    """One partition of an empty topic, a database that answers at once, and a client that can seek or can't."""

    able: bool = True
    now: float = 0.0
    opened: int = 0
    sought: list[tuple[int, bool]] = field(default_factory=list)
    desk: Desk = field(init=False)

    def __post_init__(self) -> None:
        self.desk = Desk(
            fetcher=self,
            works=self,
            lanes=1,
            streams=lambda place: STREAM,
            sort=Intake(Processor("unit")),
            limits=Limits(),
            clock=self,  # type: ignore[arg-type]
            chance=self,
            alarm=lambda place, alarm: None,
        )
        self.desk.assigned([PLACE])

    def monotonic(self) -> float:
        return self.now

    def fraction(self) -> float:
        return 0.0

    def submit(self, job: Job) -> None:
        assert isinstance(job, OpenJob)
        self.opened += 1
        event = Opened(start=0, position=0, leader_epoch=None, committed=None, topic_id=UUID(int=1))
        self.desk.reported(Report(place=job.place, generation=job.generation, event=event, number=job.number))

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        assert (topic, partition) == PLACE
        self.sought.append((offset, self.able))
        return self.able

    def __getattr__(self, name: str) -> Any:
        return lambda *given: True

    def turn(self) -> None:
        """Let so much time go by that everything that waits is due."""
        self.now += 60.0
        self.desk.tick()


def test_a_seek_that_failed_is_not_forgotten_when_the_database_answers_anew() -> None:
    """
    Fails when reading the watermark again drops a seek that is still to be made: what is remembered may be found good then, so
    nobody sends the client anywhere, and a partition into which nobody writes stands still for ever.
    """
    world = World(able=False)
    world.desk.fetch_stopped(PLACE, "offset out of range")
    world.turn()
    assert world.sought[0] == (0, False)
    world.desk.voided()
    world.turn()
    assert world.opened == 3
    world.able = True
    world.turn()
    assert world.sought[-1] == (0, True)
    tried = len(world.sought)
    world.turn()
    assert len(world.sought) == tried
