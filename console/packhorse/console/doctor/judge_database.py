"""Judge what the database says about itself and about Packhorse's tables. Pure: no I/O, no clock."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from packhorse.console.doctor.findings import Finding, failed, ok, skipped, span, warning

OLDEST_POSTGRES = 150000
CLOCK_WARNING = 1.0
CLOCK_LIMIT = 60.0
DAYS_WANTED = 3
LONG_TRANSACTION = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """
    The server.

    Attributes:
        version: As server_version_num.
        standby: It only reads.
        skew: Its clock minus ours, in seconds.
        uncertainty: Half of the round trip in which the skew was measured, in seconds.
        oldest_transaction: Age of the oldest transaction that is open in this database.
    """

    version: int
    standby: bool
    skew: float
    uncertainty: float
    oldest_transaction: timedelta | None


def judge_server(server: Server) -> Iterator[Finding]:
    """Yield what is to be said about *server*."""
    version = f"PostgreSQL {server.version // 10000}.{server.version % 10000}"
    if server.version < OLDEST_POSTGRES:
        yield failed(
            "database version",
            version,
            cause="Packhorse needs 15 or later",
            next_step="upgrade the server, or set PACKHORSE_DATABASE_URL to another",
        )
    else:
        yield ok("database version", version)
    if server.standby:
        yield failed(
            "database role",
            "a standby that only reads",
            cause="the relay must read the primary: a standby's snapshot lists no running transactions",
            next_step="set PACKHORSE_DATABASE_URL to the primary (target_session_attrs=read-write finds it)",
        )
    yield _clock(server)
    yield _transactions(server.oldest_transaction)


def _clock(server: Server) -> Finding:
    found = f"the database's clock is {server.skew:+.3f} s from this machine's (± {server.uncertainty:.3f} s)"
    distance = max(0.0, abs(server.skew) - server.uncertainty)
    if distance < CLOCK_WARNING:
        return ok("clock", found)
    tell = failed if distance > CLOCK_LIMIT else warning
    return tell(
        "clock",
        found,
        cause="due times and leases go by the database's clock and are safe; times in logs and message ids are not comparable",
        next_step="run NTP on both machines",
    )


def _transactions(oldest: timedelta | None) -> Finding:
    if oldest is None or oldest < LONG_TRANSACTION:
        return ok("transactions", "none open for long")
    return warning(
        "transactions",
        f"one is open for {span(oldest)}",
        cause="its own messages wait until it ends, and the database can't clean up behind it",
        next_step="look in pg_stat_activity, ORDER BY xact_start, and end it if nobody misses it",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """
    Packhorse's tables.

    Attributes:
        pending: Migrations that have not run.
        sequence_cache: Values that each connection draws ahead from the outbox's sequence.
        without_trigger: Tables of the outbox without an enabled trigger that refuses changes.
        missing: Tables that the migrations made and that are gone.
        partitions_until: Last day with a partition.
        today: By the database's clock, UTC.
        default_rows: Whether rows lie in the default partition.
    """

    current: str | None
    head: str
    pending: tuple[str, ...]
    sequence_cache: int | None = None
    without_trigger: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    partitions_until: date | None = None
    today: date
    default_rows: bool = False


def judge_tables(tables: Tables) -> Iterator[Finding]:
    """Yield what is to be said about *tables*."""
    if tables.pending:
        yield failed(
            "migrations",
            f"{tables.current or 'none'} of {tables.head} ran; pending: {', '.join(tables.pending)}",
            cause="the tables are older than this version of Packhorse, or in another database schema",
            next_step="packhorse migrate up",
        )
    else:
        yield ok("migrations", f"{tables.current} of {tables.head}")
    if tables.current is None:
        yield skipped("outbox", "there are no tables", next_step="packhorse migrate up")
        return
    if tables.missing:
        yield failed(
            "tables",
            f"gone: {', '.join(tables.missing)}, though the migrations ran",
            cause="they were dropped or renamed by hand, or a restore left them out",
            next_step="restore them from a backup; `packhorse migrate sql` shows how they are made",
        )
    yield _sequence(tables.sequence_cache)
    yield _triggers(tables.without_trigger)
    yield _partitions(tables)


def _sequence(cache: int | None) -> Finding:
    if cache == 1:
        return ok("sequence", "the outbox's sequence has cache 1")
    found = "the outbox has no sequence" if cache is None else f"the outbox's sequence has cache {cache}"
    return failed(
        "sequence",
        found,
        cause="connections draw numbers ahead, so messages of one key can be published out of order",
        next_step="ALTER SEQUENCE of outbox.seq CACHE 1, as the owner of the tables, while no writer runs",
    )


def _triggers(without: tuple[str, ...]) -> Finding:
    if not without:
        return ok("triggers", "outbox and audit refuse UPDATE and DELETE")
    return failed(
        "triggers",
        f"no trigger, or a disabled one, on {', '.join(without)}",
        cause="a row of the outbox changed by hand would never be published, one of the audit is forgotten, and nobody would be told",
        next_step="ALTER TABLE … ENABLE TRIGGER refuse_change (of audit: refuse_forgetting and stamp_act), or make the partition anew by `packhorse migrate up`",
    )


def _partitions(tables: Tables) -> Finding:
    until = tables.partitions_until
    ahead = -1 if until is None else (until - tables.today).days
    found = f"made until {until or 'never'}, {max(ahead, 0)} days ahead"
    if tables.default_rows:
        return warning(
            "partitions",
            f"rows lie in outbox_default; day partitions {found}",
            cause="partitions were not made in time; nothing is lost, and it is emptied once all of it is old and published",
            next_step="let a relay run, or run `packhorse retention run` daily; see docs/how-to/retention.md",
        )
    if ahead < DAYS_WANTED:
        return warning(
            "partitions",
            found,
            cause="soon rows fall into outbox_default; nothing is lost, but these days can't be dropped by partition",
            next_step="let a relay run, or run `packhorse retention run` daily",
        )
    return ok("partitions", found)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """One group's open inbox rows; `overdue` is how long the oldest due retry waits."""

    group: str
    quarantined: int
    overdue: timedelta | None


OVERDUE = timedelta(seconds=60)


def judge_groups(groups: list[GroupState]) -> Iterator[Finding]:
    """Yield what is to be said about the groups that work in this database."""
    if not groups:
        yield skipped("groups", "no group has open messages in this database")
    for group in groups:
        if group.overdue is not None and group.overdue > OVERDUE:
            yield failed(
                f"group {group.group}",
                f"a retry is overdue by {span(group.overdue)}; {group.quarantined} in quarantine",
                cause="no processor of the group runs, or it is paused",
                next_step=f"packhorse processor status --group {group.group}; see docs/runbooks/processor-paused.md",
            )
        elif group.quarantined:
            yield warning(
                f"group {group.group}",
                f"{group.quarantined} in quarantine",
                cause="they wait for a person",
                next_step=f"packhorse quarantine list --group {group.group}",
            )
        else:
            yield ok(f"group {group.group}", "nothing in quarantine, no retry overdue")
