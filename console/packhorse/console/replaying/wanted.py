"""What a person wants to be replayed; checked where it is made, and kept as JSON beside the run. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from packhorse.core.errors import UsageError
from packhorse.core.text import inert

MOST_RATE = 20_000.0
"""Messages a second that a replay may be asked to hand over at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    Which messages of a topic are to be handed to which handlers of a group.

    Attributes:
        group, topic: Whose handlers, and the source topic.
        partitions: These alone; empty: all.
        from_offset, to_offset: The range of the one partition, the second not included.
        since, until: The range by the records' times, aware, the second not included.
        types: Message types; empty: all.
        keys: Keys; empty: all.
        left_out: Keys that are not replayed.
        again: Also messages that are done are done once more.
        with_discarded: Also those that a person discarded; never those that an edited copy took the place of, or that were purged.
        beyond: Also those of keys that have messages done beyond the range, or since.
        handler: A named handler, instead of the ones that live messages go to.
        rate: Messages a second.
        most_failures: How many may fail before the run halts by itself.

    Raises:
        UsageError: Something is not allowed, or does not go together.
    """

    group: str
    topic: str
    partitions: tuple[int, ...] = ()
    from_offset: int | None = None
    to_offset: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    types: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    again: bool = False
    with_discarded: bool = False
    beyond: bool = False
    handler: str | None = None
    rate: float = 500.0
    most_failures: int = 10

    def __post_init__(self) -> None:
        self._check_range()
        if self.beyond and not self.again:
            raise UsageError("--beyond belongs to --again: without it nothing that is done is done once more")
        if self.with_discarded and not self.again:
            raise UsageError(
                "--with-discarded belongs to --again: without it nothing that was given up is done after all"
            )
        if self.again and self.handler is not None:
            raise UsageError("--handler takes every message of the range anyway; leave --again out")
        if not 0.1 <= self.rate <= MOST_RATE:
            raise UsageError(f"--rate {self.rate:g} is not allowed: 0.1 to {MOST_RATE:g} messages a second")
        if self.most_failures < 0:
            raise UsageError(f"--most-failures {self.most_failures} is not allowed: 0 or more")
        if both := set(self.keys) & set(self.left_out):
            raise UsageError(f"key {inert(min(both), limit=80)} is both wanted and left out")

    def _check_range(self) -> None:
        by_offset = self.from_offset is not None or self.to_offset is not None
        by_time = self.since is not None or self.until is not None
        if by_offset == by_time:
            raise UsageError(
                "say the range either by --from-offset/--to-offset of one --partition, or by --since/--until"
            )
        if by_offset and len(self.partitions) != 1:
            raise UsageError("--from-offset and --to-offset are of one partition: name it with --partition")
        for name, value in (("--from-offset", self.from_offset), ("--to-offset", self.to_offset)):
            if value is not None and value < 0:
                raise UsageError(f"{name} {value} is not allowed: 0 or more")
        if self.from_offset is not None and self.to_offset is not None and self.from_offset >= self.to_offset:
            raise UsageError(
                f"the range is empty: --from-offset {self.from_offset} is not below --to-offset {self.to_offset}"
            )
        for moment in (self.since, self.until):
            if moment is not None and moment.tzinfo is None:
                raise UsageError(f"time {moment.isoformat()} has no zone; write e.g. 2026-11-30T10:00Z")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise UsageError("the range is empty: --since is not before --until")

    @property
    def own_identity(self) -> bool:
        """Return whether what is done is known by run and message, so that what was done before does not count."""
        return self.again or self.handler is not None

    @property
    def filtered(self) -> bool:
        """Return whether not all of the range is wanted."""
        return bool(self.types or self.keys or self.left_out)

    def as_json(self) -> dict[str, Any]:
        """Return what the run's row keeps."""
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in asdict(self).items()
        }


def wanted_from(kept: Mapping[str, Any]) -> Wanted:
    """Return what `as_json` has kept; more names in it are passed over."""
    known = {field.name for field in fields(Wanted)}
    values = {name: value for name, value in kept.items() if name in known}
    for name in ("since", "until"):
        if values.get(name) is not None:
            values[name] = datetime.fromisoformat(values[name])
    for name in ("partitions", "types", "keys", "left_out"):
        values[name] = tuple(values.get(name) or ())
    return Wanted(**values)
