"""What the database says about itself and about a saved position: values, no judgement."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    One shard's row beside the server that holds it.

    Attributes:
        shard: Which row.
        saved: Incarnation that the position was saved on, `system identifier/timeline`; None: by a version that did not say.
        here: Incarnation of the server that answers; None: a standby, which takes no writes.
        horizon: The saved horizon, for people.
        counter: The transaction id that the server gives out next.
        reached: Whether `counter` has reached the end of horizon and target.
        epoch, published: Counts that only grow; lower than remembered, the database went back in time.
        saved_at: When the position was saved, by the clock of the server that it was saved on; None: never.
        before, moved_age, moved_saved_at: The server before the last move, seconds since a relay took on the new one, and the
            last save that was known then; None: there was no move.
    """

    shard: int
    saved: str | None
    here: str | None
    horizon: str
    counter: int
    reached: bool
    epoch: int
    published: int
    saved_at: str | None
    before: str | None = None
    moved_age: float | None = None
    moved_saved_at: str | None = None

    @property
    def changed(self) -> bool:
        """Return True when another server or timeline answers than the one that the position was saved on."""
        return self.saved is not None and self.saved != self.here

    @property
    def same_system(self) -> bool:
        """Return True when the server goes on from the one that the position was saved on: its WAL holds both."""
        return (
            self.saved is not None and self.here is not None and system_of(self.saved) == system_of(self.here)
        )

    @property
    def moved_within_system(self) -> bool:
        """Return True when the last move was to another timeline: a failover or a restore, which may have lost rows."""
        return (
            self.before is not None
            and self.here is not None
            and system_of(self.before) == system_of(self.here)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """
    Some rows that stand for all of their kind.

    Attributes:
        count: How many, at least.
        more: There may be more than were counted.
        first_id, first_seq: Name the first; payload and key are never told.
    """

    count: int = 0
    more: bool = False
    first_id: str | None = None
    first_seq: int | None = None

    def __str__(self) -> str:
        many = f"at least {self.count:,}" if self.more else f"{self.count:,}"
        return f"{many} rows (first: id {self.first_id}, seq {self.first_seq})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """
    What tells whether transaction ids of the saved position mean the same on this server.

    Attributes:
        running: Transactions that run now and that the position has as past.
        swallowed: Rows drawn after the last save that the position has as published: nobody has published them.
        ahead: Rows whose transaction id this server has not given out yet: no target holds them.
        sequence: Last value of the outbox's sequence.
        highest: Highest seq of a row, or of the last save.
    """

    running: int = 0
    swallowed: Rows = Rows()
    ahead: Rows = Rows()
    sequence: int = 0
    highest: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What this process saw in the row last, through an earlier connection."""

    epoch: int
    published: int


def system_of(incarnation: str) -> str:
    """
    Return the system identifier.

    >>> system_of("7381/00000002")
    '7381'
    """
    return incarnation.partition("/")[0]


def timeline_of(incarnation: str) -> int:
    """
    Return the timeline as people count it.

    >>> timeline_of("7381/0000000B")
    11
    """
    return int(incarnation.partition("/")[2] or "0", 16)
