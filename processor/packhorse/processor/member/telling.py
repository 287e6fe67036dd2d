"""What a member says of itself to log and metrics; an outage of hours writes a bounded log."""

from packhorse.core.clock import Clock
from packhorse.core.logs import Log
from packhorse.core.telemetry import Metric, Telemetry
from packhorse.processor.breaking.stops import Told
from packhorse.processor.kafka.consumer import CommitReport, Trouble
from packhorse.processor.member.gathering import Cause, Gathering, Line
from packhorse.processor.member.jobs import Place
from packhorse.processor.partition.orders import Alarm

TROUBLE_EVERY = 10.0
"""Seconds between two log lines about the same trouble."""
NAMED = 5
"""Partitions that one line names; it says the number of all."""


class Telling:
    """Tell what happens; for one thread."""

    def __init__(self, telemetry: Telemetry, log: Log, clock: Clock, group: str) -> None:
        self._telemetry = telemetry
        self._log = log
        self._clock = clock
        self._group = group
        self._told: dict[tuple[str | int | None, ...], float] = {}
        self._gathering = Gathering()

    def commit(self, report: CommitReport) -> None:
        """Tell how a commit ended."""
        failed = report.ended != "ok"
        where: dict[str, str | int] = {"topic": report.topic, "partition": report.partition} if failed else {}
        self._telemetry.record(
            Metric.PROCESSOR_COMMITS, 1, {"group": self._group, "outcome": report.ended, **where}
        )
        if failed and self._is_news("commit", report.topic, report.partition, report.text.partition(":")[0]):
            self._log.warning(
                "offset commit failed",
                topic=report.topic,
                partition=report.partition,
                offset=report.position,
                cause=report.text,
            )

    def trouble(self, trouble: Trouble) -> None:
        """Tell what the broker's client reports."""
        # The text holds times and counts; the name of the error before it does not.
        if self._is_news(trouble.kind, trouble.topic, trouble.partition, trouble.text.partition(":")[0]):
            self._log.warning(
                "trouble with the broker",
                kind=trouble.kind,
                topic=trouble.topic,
                partition=trouble.partition,
                cause=trouble.text,
            )

    def alarm(self, place: Place, alarm: Alarm) -> None:
        """Tell that a partition does not move: at once for a new cause, later and together with others for one that is known."""
        topic = place[0]
        self._telemetry.record(
            Metric.PROCESSOR_PAUSES, 1, {"group": self._group, "topic": topic, "reason": alarm.what}
        )
        now = self._clock.monotonic()
        line = self._gathering.note(place, Cause(alarm.what, alarm.text), wait=alarm.wait, now=now)
        if line is not None:
            self._say(line)

    def turned(self) -> None:
        """Tell what has gathered, when it is due."""
        for line in self._gathering.due(self._clock.monotonic()):
            self._say(line)

    def _say(self, line: Line) -> None:
        """Write one line for all partitions that stand still for one cause: an outage stops hundreds at once."""
        (topic, partition), number = line.places[0], len(line.places)
        say = self._log.error if line.cause.what == "refused" else self._log.warning
        named = ", ".join(f"{topic}[{partition}]" for topic, partition in line.places[:NAMED])
        more = f" and {number - NAMED} more" if number > NAMED else ""
        where = {"topic": topic, "partition": partition} if number == 1 else {"partitions": f"{named}{more}"}
        say(
            "partition does not move" if number == 1 else f"{number} partitions do not move",
            **where,
            reason=line.cause.what,
            cause=line.cause.text,
            again_in=round(line.wait, 3),
        )

    def stopped(self, told: Told) -> None:
        """Tell that a handler is stopped, or takes messages again."""
        say = self._log.error if told.alarms else self._log.info
        say(str(told), group=self._group)

    def _is_news(self, *about: str | int | None) -> bool:
        """Return whether nothing was said *about* this within TROUBLE_EVERY."""
        now = self._clock.monotonic()
        if now - self._told.get(about, -TROUBLE_EVERY) < TROUBLE_EVERY:
            return False
        self._told[about] = now
        return True
