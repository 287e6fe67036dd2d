"""Judge the relay: who owns it, what it holds, how it reads, and the slots that it left. Pure: no I/O, no clock."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from packhorse.console.doctor.findings import Finding, failed, ok, span, warning

STILL = "docs/runbooks/relay-does-not-move.md"
HELD = "docs/runbooks/relay-holds.md"
SLOTS = "docs/runbooks/slot-holds-log.md"
SHOWN = 5
"""Ids of holds in one line, at most."""
BEHIND = timedelta(minutes=1)
"""A row that waits longer is worth a word, though a relay is at work."""
BUDGET = 4 * 1024**3
"""Bytes that a slot may hold by default before the relay gives it up; half of it is worth a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """
    One shard's row, as the database sees it.

    Attributes:
        owned: The lease runs.
        lease_age: Since the lease ran out, when it does not run.
        waiting: Whether rows are committed and not published.
        oldest: Age of the oldest of them.
        mode, mode_cause, mode_age: How the owner reads the outbox, why, and since when.
        heal: Open holds that the relay ends by itself, or that are on their way.
        people: Ids of those that wait for a person.
        oldest_hold: Age of the oldest open hold.
        what: Codes and aggregate types of open holds, each pair once, some of them.
        shards_wanted: The number of shards that an order on its way asks for.
    """

    shard: int = 0
    shards: int = 1
    epoch: int
    owner: str | None
    owned: bool
    lease_age: timedelta | None
    trouble: str | None
    trouble_since: datetime | None
    waiting: bool
    oldest: timedelta | None
    mode: str = "polling"
    mode_cause: str | None = None
    mode_age: timedelta | None = None
    heal: int = 0
    people: Sequence[int] = ()
    oldest_hold: timedelta | None = None
    what: Sequence[str] = ()
    shards_wanted: int | None = None

    def name(self, check: str) -> str:
        """Return the name of a check, with the shard where there are several."""
        return check if self.shards == 1 else f"{check} of shard {self.shard}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """
    A replication slot of Packhorse in this database.

    Attributes:
        ours: It is the one of a shard; False: left by a rename, another number of shards, or another mode.
        active: Somebody reads from it.
        held: Bytes of write-ahead log that it keeps the server from removing.
        lost: The server has removed what it needed.
        bounded: max_slot_wal_keep_size bounds what slots hold.
    """

    name: str
    ours: bool
    active: bool
    held: int
    lost: bool
    bounded: bool


def judge_relay(relay: Relay | None) -> Iterator[Finding]:
    """Yield what is to be said about a shard's row; None when there is none."""
    if relay is None:
        yield failed(
            "relay",
            "the row of shard 0 is missing",
            cause="somebody deleted it; a relay can't start without a horizon",
            next_step="restore the row from a backup, or ask before inserting one: a new horizon publishes all rows again",
        )
        return
    yield _owner(relay)
    yield _holds(relay)
    yield _mode(relay)


def _owner(relay: Relay) -> Finding:
    check = relay.name("relay")
    waits = "no row waits" if not relay.waiting else f"rows wait, the oldest for {span(relay.oldest)}"
    owner = relay.owner or "nobody"
    if relay.trouble is not None:
        return failed(
            check,
            f"paused by {owner}: {relay.trouble}; {waits}",
            cause="the relay tries again by itself with growing delay; nothing is lost",
            next_step=f"remove the named cause; packhorse relay status follows it; see {STILL}",
        )
    if relay.shards_wanted is not None:
        return (failed if relay.waiting else warning)(
            check,
            f"a change to {relay.shards_wanted} shards is on its way, owned by {owner if relay.owned else 'nobody'}; {waits}",
            cause="until the change is done or taken back, no new row is sent",
            next_step=f"packhorse relay shards {relay.shards_wanted} goes on with it, packhorse relay shards --abort takes it back",
        )
    if relay.owned and relay.waiting and (relay.oldest or timedelta()) > BEHIND:
        return warning(
            check,
            f"owned by {owner}, and {waits}",
            cause="more is written than sent: a backlog, a broker that throttles its clients, or one that is slow to confirm",
            next_step=f"packhorse relay status shows the rate, the relay's log says when it is throttled; see {STILL}",
        )
    if relay.owned:
        return ok(check, f"owned by {owner}, epoch {relay.epoch}; {waits}")
    if not relay.waiting:
        return ok(check, "nobody owns it, and no row waits")
    if relay.epoch == 0:
        return warning(
            check,
            f"none has ever run here; {waits}",
            cause="no relay of ours runs for this database (or Debezium carries its rows)",
            next_step="packhorse relay run",
        )
    return failed(
        check,
        f"nobody owns it since {span(relay.lease_age)}; {waits}",
        cause="the relay is down or can't reach the database",
        next_step=f"start it: packhorse relay run; see {STILL}",
    )


def _holds(relay: Relay) -> Finding:
    check = relay.name("holds")
    since = f"the oldest for {span(relay.oldest_hold)} ({', '.join(relay.what[:SHOWN])}{', …' if len(relay.what) > SHOWN else ''})"
    if relay.people:
        ids = ", ".join(map(str, relay.people[:SHOWN])) + (", …" if len(relay.people) > SHOWN else "")
        return failed(
            check,
            f"{len(relay.people)} wait for a person: {ids}; {since}",
            cause="a row can't be sent for a fault of its own; its key waits behind it, everything else flows",
            next_step=f"packhorse relay holds; see {HELD}",
        )
    if relay.heal:
        return warning(
            check,
            f"{relay.heal} open, {since}",
            cause="a topic is missing or forbidden, a partition has no leader, or a release is on its way; it ends by itself",
            next_step=f"packhorse relay holds names the topic; see {HELD}",
        )
    return ok(check, "nothing is held")


_NO_STREAM = {
    "slot_lost": "the slot was lost or removed; the relay polls, makes a new one and goes back",
    "slot_in_use": "another process reads the slot: an old relay, or somebody else's tool",
    "over_budget": "the slot held more log than wal_budget and was given up; the broker or the relay was too slow",
    "lagging": "the stream was too far behind; polling catches up, then the relay goes back",
    "stream_failed": "the stream broke or can't be had",
    "not_set_up": "the publication, the slot, wal_level or a right is missing",
}


def _mode(relay: Relay) -> Finding:
    check = relay.name("mode")
    cause = _NO_STREAM.get(relay.mode_cause or "")
    if relay.mode == "polling" and cause is not None:
        return warning(
            check,
            f"polling instead of streaming for {span(relay.mode_age)}: {relay.mode_cause}",
            cause=f"{cause}; nothing is lost, latency is that of polling",
            next_step=f"packhorse relay cdc-setup --dry-run says what is missing; see {SLOTS}",
        )
    return ok(check, "polling" if relay.mode == "polling" else f"{relay.mode}, for {span(relay.mode_age)}")


def judge_slots(slots: Sequence[Slot]) -> Iterator[Finding]:
    """Yield what is to be said about *slots*; nothing when there are none."""
    for slot in slots:
        yield _slot(slot)


def _slot(slot: Slot) -> Finding:
    check, held = f"slot {slot.name}", f"{slot.held / 1024**2:,.0f} MiB of log held"
    if slot.lost:
        return warning(
            check,
            "lost: the server has removed the log that it needed",
            cause="it held more than max_slot_wal_keep_size; the relay polls and makes it anew",
            next_step=f"packhorse relay status; a slot that is nobody's: packhorse relay cdc-setup --drop-slot {slot.name}",
        )
    if not slot.ours:
        tell = warning if slot.active else failed
        return tell(
            check,
            f"{held}, and it belongs to no shard of this schema; {'somebody' if slot.active else 'nobody'} reads it",
            cause="left by a rename of the schema, another number of shards or a copy; a slot that nobody reads fills the disk",
            next_step=f"packhorse relay cdc-setup --drop-slot {slot.name}, once nobody needs it; see {SLOTS}",
        )
    if not slot.active:
        return failed(
            check,
            f"{held}, and nobody reads it",
            cause="no relay streams: it is down, or was set to polling; the log grows until the disk is full or the slot is lost",
            next_step=f"start the relay, or packhorse relay cdc-setup --drop-slot {slot.name}; see {SLOTS}",
        )
    if slot.held > BUDGET // 2 or not slot.bounded:
        why = (
            "nothing bounds it while the relay is away" if not slot.bounded else "the broker is slow or away"
        )
        return warning(
            check,
            held,
            cause=f"{why}; the relay gives the slot up at wal_budget, and polls",
            next_step=f"set max_slot_wal_keep_size; see {SLOTS}",
        )
    return ok(check, f"read by the relay, {held}")
