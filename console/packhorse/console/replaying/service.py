"""Plan replays, let them run, and act on them: for one person."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.paging import checked_limit
from packhorse.console.replaying.checks import (
    Check,
    GroupFacts,
    check_allowed,
    check_handler,
    checks_of,
)
from packhorse.console.replaying.ranges import Log, Range, check_topic, ranges_of
from packhorse.console.replaying.reading import Ranges
from packhorse.console.replaying.records import Seen, matcher_of
from packhorse.console.replaying.run import Run
from packhorse.console.replaying.scanning import Decodes, Scan, Tell
from packhorse.console.replaying.tally import Tally
from packhorse.console.replaying.wanted import Wanted
from packhorse.core.acts import checked_why
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.errors import SettingsError, UsageError


class ReplaySource(Protocol):
    """The tables of replays; raises Forbidden, DatabaseUnavailable, NotReady, and from acts OwnershipLost."""

    def watermarks(self, person: Person, group: str, topic: str) -> dict[UUID, dict[int, int]]:
        """Return the group's watermarks in the topic, by the topic's ids and partitions."""

    def group(self, person: Person, group: str, topic: str) -> GroupFacts:
        """Return how the group stands."""

    def seen(self, person: Person, group: str, topic: str, ids: Sequence[UUID]) -> dict[UUID, Seen]:
        """Return what the inbox knows of *ids*."""

    def stuck(self, person: Person, group: str, topic: str) -> frozenset[str]:
        """Return the hashes of keys that wait for a person."""

    def plan(
        self,
        person: Person,
        wanted: Wanted,
        topic_id: UUID,
        ranges: Sequence[tuple[Range, int]],
        *,
        counts: dict[str, object],
        checks: Sequence[Check],
    ) -> int:
        """Keep a plan and return its number."""

    def confirm(self, person: Person, run: Run, *, why: str) -> None:
        """Let a plan run."""

    def pause(self, person: Person, run: Run, *, why: str) -> None:
        """Have nothing more handed over for now."""

    def resume(self, person: Person, run: Run, *, why: str, most_failures: int | None) -> None:
        """Go on."""

    def stop(self, person: Person, run: Run, *, why: str) -> None:
        """End it for good."""

    def run(self, person: Person, run: int) -> Run:
        """Return how replay *run* stands."""

    def runs(self, person: Person, *, group: str | None, topic: str | None, limit: int) -> list[Run]:
        """Return the latest replays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """
    What a replay would do.

    Attributes:
        run: Its number; None: it was a dry run, and nothing is kept.
        seconds: How long it takes at its rate, at least; of a dry run how long the scan took.
    """

    run: int | None
    wanted: Wanted
    topic_id: UUID
    ranges: tuple[Range, ...]
    tally: Tally
    checks: tuple[Check, ...]
    seconds: float


class Replays:
    """The replays of one installation, as one person sees them."""

    def __init__(
        self,
        tables: ReplaySource,
        person: Person,
        *,
        broker: Callable[[], Ranges] | None,
        decodes: Decodes | None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._tables = tables
        self._person = person
        self._broker = broker
        self._decodes = decodes
        self._clock = clock

    def plan(self, wanted: Wanted, *, tell: Tell, dry: bool = False) -> Plan:
        """
        Fix the ends of the range, read it once, and say what would happen; unless *dry*, keep that for an hour.

        A dry run also decodes every wanted payload. Blocks as long as the reading takes; *tell* takes words of progress.

        Raises:
            UsageError: The range or the filter holds nothing, the group is unknown, or something newer would be overwritten.
            NotReady: The topic is missing or was made anew.
            SettingsError: No broker is set; of a dry run, no registry.
            BrokerUnavailable, RegistryUnavailable, DatabaseUnavailable, Forbidden: Nothing was kept.
        """
        if self._broker is None:
            raise SettingsError("PACKHORSE_KAFKA_BOOTSTRAP_SERVERS is not set; a replay reads the topic")
        if dry and self._decodes is None:
            raise SettingsError(
                "PACKHORSE_REGISTRY_URL is not set; a dry run decodes payloads by its schemas"
            )
        begun, ranges = self._clock.monotonic(), self._broker()
        topic_id, logs = self._logs(ranges, wanted)
        found = ranges_of(wanted, logs)
        group = self._tables.group(self._person, wanted.group, wanted.topic)
        check_handler(wanted, group)
        tally, matches = self._scanned(ranges, wanted, topic_id, found, logs, group, dry=dry, tell=tell)
        if not dry:
            check_allowed(wanted, tally)
        checks = checks_of(wanted, found, tally, group)
        run = None
        if not dry:
            run = self._tables.plan(
                self._person,
                wanted,
                topic_id,
                list(zip(found, matches, strict=True)),
                counts=tally.as_json(),
                checks=checks,
            )
        return Plan(
            run=run,
            wanted=wanted,
            topic_id=topic_id,
            ranges=tuple(found),
            tally=tally,
            checks=tuple(checks),
            seconds=self._clock.monotonic() - begun if dry else tally.handed / wanted.rate,
        )

    def _logs(self, ranges: Ranges, wanted: Wanted) -> tuple[UUID, list[Log]]:
        """Return the topic's id, and how log and group stand in each partition."""
        topic_id, count = ranges.topic(wanted.topic)
        known = self._tables.watermarks(self._person, wanted.group, wanted.topic)
        check_topic(wanted, topic_id, {each: len(marks) for each, marks in known.items()})
        marks = known.get(topic_id, {})
        bounds = ranges.bounds(wanted.topic, count, wanted.since, wanted.until)
        return topic_id, [
            Log(
                partition=one.partition,
                low=one.low,
                high=one.high,
                watermark=marks.get(one.partition),
                since=one.since,
                until=one.until,
            )
            for one in bounds
        ]

    def _scanned(
        self,
        ranges: Ranges,
        wanted: Wanted,
        topic_id: UUID,
        found: Sequence[Range],
        logs: Sequence[Log],
        group: GroupFacts,
        *,
        dry: bool,
        tell: Tell,
    ) -> tuple[Tally, list[int]]:
        """Read all ranges, and behind them; return the counts, and of each range how many are wanted."""
        scan = Scan(
            wanted=wanted,
            matcher=matcher_of(wanted, topic_id),
            group=group,
            look_up=lambda ids: self._tables.seen(self._person, wanted.group, wanted.topic, ids),
            decodes=self._decodes if dry else None,
            stuck=self._tables.stuck(self._person, wanted.group, wanted.topic),
            tell=tell,
            clock=self._clock,
        )
        tally, matches = Tally(), list[int]()
        total, before = sum(one.size for one in found), 0
        marks = {log.partition: log.watermark or 0 for log in logs}
        reader = ranges.reader(wanted.topic)
        try:
            for one in found:
                matches.append(scan.range(reader, one, tally, total=total, before=before))
                before += one.size
            for one in found if tally.keys and wanted.handler is None and not dry else ():
                scan.beyond(reader, one.partition, one.past, marks[one.partition], tally)
        finally:
            reader.close()
        return tally, matches

    def confirm(self, run: int, *, why: str) -> Run:
        """
        Let plan number *run* run, exactly as it was planned, once; return how it stands.

        Raises:
            UnknownId, UsageError, Forbidden, OwnershipLost: Nothing was done; says what is true now.
        """
        found = self._tables.run(self._person, run)
        self._tables.confirm(self._person, found, why=checked_why(why))
        return self.show(run)

    def pause(self, run: int, *, why: str) -> Run:
        """Hand over nothing more for now; raises what `confirm` does. Keys that it holds stay parked."""
        self._tables.pause(self._person, self.show(run), why=checked_why(why))
        return self.show(run)

    def resume(self, run: int, *, why: str, most_failures: int | None = None) -> Run:
        """
        Go on with a paused or halted replay; raises what `confirm` does.

        Of a halted one so many more failures are borne as before, or *most_failures* altogether.
        """
        found = self.show(run)
        if most_failures is not None and most_failures < 0:
            raise UsageError(f"--most-failures {most_failures} is not allowed: 0 or more")
        if most_failures is None and found.state == "halted":
            most_failures = found.progress.failed + found.progress.retry + found.wanted.most_failures
        self._tables.resume(self._person, found, why=checked_why(why), most_failures=most_failures)
        return self.show(run)

    def stop(self, run: int, *, why: str) -> Run:
        """
        End a replay for good; raises what `confirm` does.

        What was handed over stays with the group, and live messages of the keys that it held go on.
        """
        self._tables.stop(self._person, self.show(run), why=checked_why(why))
        return self.show(run)

    def show(self, run: int) -> Run:
        """Return how replay *run* stands. Raises UnknownId, Forbidden."""
        return self._tables.run(self._person, run)

    def list(self, *, group: str | None = None, topic: str | None = None, limit: int = 50) -> list[Run]:
        """Return the latest replays. Raises UsageError, Forbidden."""
        limit = checked_limit(limit)
        return self._tables.runs(self._person, group=group, topic=topic, limit=limit)
