"""Offsets on their way to the group's coordinator, and its answers."""

from collections.abc import Sequence

from packhorse.core.clock import Clock
from packhorse.processor.kafka.consumer import CommitReport, GroupConsumer
from packhorse.processor.member.desk import Desk
from packhorse.processor.member.ports import Positions
from packhorse.processor.member.telling import Telling

ANSWER_WAIT = 0.05
"""Seconds that one poll for the answers to the last commits may take."""
COMMIT_WAIT = 3.0
"""Seconds that the last commit of a partition may take; without it the next owner finds duplicates by the watermark."""


class Commits:
    """Send what is durable, and take what the coordinator says of it; for the loop's thread."""

    def __init__(self, consumer: GroupConsumer, desk: Desk, telling: Telling, clock: Clock) -> None:
        self._consumer = consumer
        self._desk = desk
        self._telling = telling
        self._clock = clock

    def send(self, positions: Positions) -> None:
        """
        Send commits and wait for no answer: it comes with a later poll.

        The request goes before the one that gives the partitions back, on the same connection, so the next owner sees it;
        while the coordinator is away, the client would wait for minutes.
        """
        for (topic, partition), (position, epoch) in positions.items():
            self._consumer.commit(topic, partition, position, epoch)

    def take(self, reports: Sequence[CommitReport]) -> None:
        """Take answers."""
        for report in reports:
            place = report.topic, report.partition
            self._telling.commit(report)
            if report.ended == "ok":
                self._desk.committed(place, report.position)
            else:
                self._desk.commit_failed(place, report.position, refused=report.ended == "refused")

    def finish(self, positions: Positions) -> None:
        """Send the last commits, and poll until the coordinator has answered or COMMIT_WAIT is over."""
        self.send(positions)
        missing, deadline = set(positions), self._clock.monotonic() + COMMIT_WAIT
        while missing and self._clock.monotonic() < deadline:
            reports = self._consumer.poll(ANSWER_WAIT, 1).commits
            self.take(reports)
            missing.difference_update((report.topic, report.partition) for report in reports)
        text = f"not confirmed: no answer within {COMMIT_WAIT:g} s"
        self.take([CommitReport(*place, positions[place][0], "failed", text) for place in missing])
