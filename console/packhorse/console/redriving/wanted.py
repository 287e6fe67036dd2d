"""What somebody wants redriven, and how: values that check themselves. Pure: no I/O, no clock."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from packhorse.core.errors import UsageError

MOST_MEMBERS = 1_000_000
"""Members that one set may have."""
DEFAULT_LIMIT = 100_000
DEFAULT_RATE = 500.0
MOST_RATE = 100_000.0
DEFAULT_STAGES = (1, 5, 20, 100)
DEFAULT_CAP = 10
"""Redrives after which one message is left out, unless somebody insists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """One message in quarantine as somebody has ticked it: an id alone may rest there in several groups."""

    id: UUID
    group: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    Which quarantined messages are to be in the set; None lets all pass.

    Attributes:
        failure: The print of a group of failures, whole or its first characters (8 at least).
        key: Exactly this key, as text.
        text: Part of the recorded error, whatever its case.
        since, until: When they came to quarantine: from, and before.
        ids: Exactly these messages; empty: all.
        picked: Exactly these messages of exactly these groups and topics; empty: all.

    Raises:
        UsageError: A value is not allowed.
    """

    group: str | None = None
    topic: str | None = None
    type: str | None = None
    reason: str | None = None
    failure: str | None = None
    tenant: str | None = None
    key: str | None = None
    text: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    ids: tuple[UUID, ...] = ()
    picked: tuple[Picked, ...] = ()

    def __post_init__(self) -> None:
        if self.failure is not None and not _is_print(self.failure):
            raise UsageError(f"--failure {self.failure[:80]!r}: give 8 to 32 hexadecimal digits of the print")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise UsageError(f"--since {self.since} is not before --until {self.until}")
        for name, value in (("--text", self.text), ("--key", self.key)):
            if value is not None and not 1 <= len(value) <= 1_000:
                raise UsageError(f"{name} of {len(value)} characters; 1 to 1000 are allowed")

    @property
    def is_everything(self) -> bool:
        """Return whether nothing narrows it."""
        return self == Wanted()

    def public(self) -> dict[str, object]:
        """Return it for rows and the audit: without the text of a key, which may say who somebody is."""
        shown: dict[str, object] = {
            name: getattr(self, name)
            for name in ("group", "topic", "type", "reason", "failure", "tenant", "text")
            if getattr(self, name) is not None
        }
        if self.key is not None:
            shown["key"] = "(not recorded)"
        for name, at in (("since", self.since), ("until", self.until)):
            if at is not None:
                shown[name] = at.isoformat()
        if self.ids:
            shown["ids"] = len(self.ids)
        if self.picked:
            shown["picked"] = len(self.picked)
        return shown


def _is_print(text: str) -> bool:
    return 8 <= len(text) <= 32 and all(letter in "0123456789abcdef" for letter in text)


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """
    How a set is redriven.

    Attributes:
        limit: Members that the set may have at most; more is refused, not cut.
        rate: Messages that are asked for in a second, at most.
        stages: How many are asked for before all of them must be proved, stage by stage; then five times as many each time.
        most_failures: Failures in one stage that are borne; None: none in stages of fewer than 20, else a tenth.
        cap: Redrives after which a message is left out; None: there is no cap.

    Raises:
        UsageError: A value is not allowed.
    """

    limit: int = DEFAULT_LIMIT
    rate: float = DEFAULT_RATE
    stages: tuple[int, ...] = DEFAULT_STAGES
    most_failures: int | None = None
    cap: int | None = DEFAULT_CAP

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MOST_MEMBERS:
            raise UsageError(f"--limit {self.limit} is not allowed: 1 to {MOST_MEMBERS}")
        if not 0.1 <= self.rate <= MOST_RATE:
            raise UsageError(f"--rate {self.rate:g} is not allowed: 0.1 to {MOST_RATE:g} messages a second")
        if not self.stages or min(self.stages) < 1 or list(self.stages) != sorted(self.stages):
            raise UsageError(
                f"--stages {','.join(map(str, self.stages))!r} is not allowed: rising numbers from 1, as 1,5,20,100"
            )
        if self.most_failures is not None and self.most_failures < 0:
            raise UsageError(f"--most-failures {self.most_failures} is not allowed: 0 or more")


def stages_from(text: str) -> tuple[int, ...]:
    """
    Return the stages that *text* names.

    >>> stages_from("1,5,20")
    (1, 5, 20)

    Raises:
        UsageError: It is no list of numbers.
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--stages {text[:80]!r}: give numbers with commas, as 1,5,20,100") from None
