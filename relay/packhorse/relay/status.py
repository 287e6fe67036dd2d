"""How the relay stands, as a value and as text; read from the database alone, so it works when no relay runs."""

from dataclasses import dataclass
from typing import Any

COUNTED = 100_000
"""Waiting rows are counted up to here."""
SHOWN = 10
"""Ids of holds in one line, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStatus:
    """
    One shard's relay; ages are in seconds by the database's clock.

    Attributes:
        owner, epoch: Who owns the shard, and how often it changed hands; None: nobody.
        lease_left: Until a standby may take over; negative when the lease is over.
        horizon, target, progress: How far the outbox is published.
        published: Rows confirmed by the broker, ever.
        rate: Rows a second over the sample; None without one.
        saved_age: Since the last save.
        lag_rows: Rows committed and not published, counted up to COUNTED.
        lag_seconds: Age of the oldest of them; None without any.
        trouble, trouble_age: What is wrong, and since when.
        server: Which database server this is, and whether it changed.
        mode, mode_cause, mode_age: How the owner reads the outbox, why, and since when; moves: how often that changed.
        holds, oldest_hold: Open holds, and the age of the oldest.
        people: Ids of those that wait for a person's order.
        shards_wanted: The number of shards that an order on its way asks for; None: no such order.
    """

    owner: str | None
    epoch: int
    lease_left: float | None
    horizon: str
    target: str | None
    progress: int
    published: int
    rate: float | None
    saved_age: float | None
    lag_rows: int
    lag_seconds: float | None
    trouble: str | None
    trouble_age: float | None
    server: str = ""
    shard: int = 0
    mode: str = "polling"
    mode_cause: str | None = None
    mode_age: float | None = None
    moves: int = 0
    holds: int = 0
    oldest_hold: float | None = None
    people: tuple[int, ...] = ()
    shards_wanted: int | None = None

    @property
    def healthy(self) -> bool:
        """Return True when somebody owns the shard, nothing is wrong, and no hold waits for a person."""
        return self.owner is not None and self.trouble is None and not self.people

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {"healthy": self.healthy, **fields, "lag_rows_counted_up_to": COUNTED}

    def lines(self) -> list[tuple[str, str]]:
        """Return what people read: pairs of a name and a text."""
        working = f", working towards {self.target} (seq {self.progress} confirmed)" if self.target else ""
        more = "+" if self.lag_rows >= COUNTED else ""
        oldest = "" if self.lag_seconds is None else f", the oldest {self.lag_seconds:.1f} s old"
        rate = "" if self.rate is None else f", {self.rate:,.0f} a second"
        saved = "never" if self.saved_age is None else f"{self.saved_age:.1f} s ago"
        trouble = "none" if self.trouble is None else f"{self.trouble} (for {self.trouble_age or 0:.0f} s)"
        return [
            ("owner", self._owner),
            ("published", f"{self.published:,} rows{rate}"),
            ("waiting", f"{self.lag_rows:,}{more} rows{oldest}"),
            ("horizon", f"{self.horizon}{working}"),
            ("saved", saved),
            ("server", self.server),
            ("mode", self._mode),
            ("holds", self._holds),
            ("trouble", trouble),
        ]

    @property
    def _owner(self) -> str:
        wanted = self.shards_wanted
        if self.owner is not None and self.lease_left is not None:
            finishes = (
                "" if wanted is None else f"; it finishes what is in work for a change to {wanted} shards"
            )
            return f"{self.owner}, epoch {self.epoch}, lease {self.lease_left:.1f} s more{finishes}"
        if wanted is not None:
            return (
                f"nobody; rows wait for the change to {wanted} shards: `packhorse relay shards {wanted}` goes on with it, "
                "`packhorse relay shards --abort` takes it back"
            )
        return "nobody; rows wait until a relay runs"

    @property
    def _mode(self) -> str:
        since = "" if self.mode_age is None else f", for {self.mode_age:,.0f} s"
        cause = "" if self.mode_cause is None else f" (cause: {self.mode_cause})"
        return f"{self.mode}{since}{cause}; changed {self.moves} times"

    @property
    def _holds(self) -> str:
        if not self.holds:
            return "none"
        ids = ", ".join(map(str, self.people[:SHOWN])) + (", …" if len(self.people) > SHOWN else "")
        people = f"{len(self.people)} wait for a person: {ids}" if self.people else "none waits for a person"
        return f"{self.holds:,}, the oldest for {self.oldest_hold or 0:,.0f} s; {people}; see `packhorse relay holds`"
