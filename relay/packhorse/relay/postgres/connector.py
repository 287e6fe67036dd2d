"""What a Debezium connector's slot has to do with our relay's horizon: when it may begin, and how far it has come."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from psycopg.conninfo import conninfo_to_dict

from packhorse.core.errors import NotReady, SettingsError
from packhorse.core.person import Person
from packhorse.core.rights import Right
from packhorse.relay.debezium import sql
from packhorse.relay.debezium.config import Source
from packhorse.relay.postgres.acting import allowed
from packhorse.relay.postgres.connection import OWNER_RIGHTS, Reach, connect, translated

MOST = 1_000
"""Rows are counted up to here."""
_TLS = ("sslmode", "sslrootcert", "sslcert", "sslkey")


def source_of(url: str) -> Source:
    """
    Return where a Java client finds the database of *url*.

    Raises:
        SettingsError: It names no host, several, or a socket's folder; or no database or user.
    """
    parts = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    host = parts.get("host", "")
    if not host or "," in host or host.startswith(("/", "@")):
        raise SettingsError(
            "the connector needs one host that it reaches over TCP, and the database's URL names "
            f"{'none' if not host else repr(host)}; pass --database-url postgresql://user@host:5432/database"
        )
    for name, what in (("dbname", "database"), ("user", "user")):
        if name not in parts:
            raise SettingsError(
                f"the database's URL names no {what}; pass --database-url postgresql://user@host:5432/database"
            )
    tls = {name: parts[name] for name in _TLS if name in parts}
    return Source(
        host=host, port=int(parts.get("port", 5432)), database=parts["dbname"], user=parts["user"], tls=tls
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    How a connector's slot stands to the relay's horizons.

    Attributes:
        active: A connector reads it.
        behind: Bytes of write-ahead log that it has not confirmed.
        older: Committed rows older than the slot that the relay has not published, counted up to MOST.
        holds: Open holds of the relay.
        owners: Who owns a shard at the moment.
    """

    active: bool
    behind: int
    older: int
    holds: int
    owners: tuple[str, ...]

    def obstacles(self) -> list[str]:
        """Return what keeps the connector from being started, or the horizon from following it."""
        found = []
        if self.older:
            count = f"{MOST} or more" if self.older >= MOST else str(self.older)
            found.append(f"{count} rows older than the slot are not published; the relay must run on")
        if self.holds:
            found.append(
                f"{self.holds} holds are open, and the connector knows none; "
                "`packhorse relay holds` lists them: release or discard them first"
            )
        return found


class ConnectorSlot:
    """One slot, looked at through one connection."""

    def __init__(self, url: str, schema: str, slot: str, *, reach: Reach | None = None) -> None:
        """Connect; raises DatabaseUnavailable."""
        self._connection = connect(url, reach or Reach())
        self._schema = schema
        self._slot = slot

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def _rows(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        text = statement.format(schema=self._schema, count=MOST)
        cursor = self._connection.execute(text.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def standing(self) -> Standing:
        """
        Return how the slot stands.

        Raises:
            NotReady: The slot is missing, lost, of another kind, or was not made by the printed steps.
        """
        with translated(self._connection, rights=OWNER_RIGHTS):
            fence, active, behind = self._found()
            shards = self._rows(sql.SHARDS)
            return Standing(
                active=active,
                behind=behind,
                older=self._rows(sql.OLDER, fence=fence)[0][0],
                holds=self._rows(sql.HOLDS)[0][0],
                owners=_owners(shards),
            )

    def _found(self) -> tuple[str, bool, int]:
        found = self._rows(sql.SLOT, slot=self._slot)
        if not found:
            raise NotReady(
                f"slot {self._slot} is not there; `packhorse relay debezium-config --format sql` says how"
            )
        fitting, active, status, _, behind, fence = found[0]
        if not fitting:
            raise NotReady(
                f"slot {self._slot} is not one of this database for pgoutput; name the connector's own"
            )
        if status == "lost":
            raise NotReady(
                f"slot {self._slot} is lost: the server had to remove what it still needed. Run the relay, which polls "
                "and misses nothing; then drop the slot and make it anew as `debezium-config --format sql` says"
            )
        if fence is None:
            raise NotReady(
                f"nothing says which rows are older than slot {self._slot}; drop it and make it anew by "
                "`packhorse relay debezium-config --format sql`, statement 4 too"
            )
        return fence, active, behind

    def follow(self, *, wait: float, pause: Callable[[float], object], person: Person) -> int:
        """
        Move the horizon of every shard to where the connector has published all; return how many. *person* asks.

        The snapshot is taken before the position that the slot must have confirmed: what it shows is on the topics when
        it becomes the horizon. A crash before the last statement changes nothing.

        Raises:
            Forbidden: *person* may not administer.
            NotReady: As `standing`; a relay owns a shard, rows or holds are in the way, or the connector does not come
                so far within *wait* seconds.
        """
        standing = self.standing()
        _refuse([*_owned(standing.owners), *standing.obstacles()])
        with translated(self._connection, rights=OWNER_RIGHTS):
            horizon, at = self._rows(sql.MARK)[0]
        self._await(at, wait=wait, pause=pause)
        with translated(self._connection, rights=OWNER_RIGHTS), self._connection.transaction():
            actor = allowed(
                self._connection, self._schema, person, Right.ADMINISTER, doing="move the horizon"
            )
            return self._move(horizon, actor)

    def _await(self, at: str, *, wait: float, pause: Callable[[float], object], every: float = 0.2) -> None:
        for _ in range(max(1, round(wait / every))):
            with translated(self._connection, rights=OWNER_RIGHTS):
                found = self._rows(sql.CONFIRMED, slot=self._slot, at=at)
            if found and found[0][0]:
                return
            pause(every)
        stands = f"stands at {found[0][1]}, {found[0][2]} bytes before {at}" if found else "is gone"
        raise NotReady(
            f"slot {self._slot} {stands}, {wait:g} s after it was asked for; does the connector run, with heartbeats? "
            "Its log and the topic of its heartbeats say more; wait longer with --wait"
        )

    def _move(self, horizon: str, actor: str) -> int:
        shards = self._rows(sql.LOCKED, horizon=horizon)
        _refuse(_owned(_owners(shards)))
        if any(not ours for *_, ours in shards):
            raise NotReady(
                "the relay's position was saved on another server, or before this one took over; start the relay once: "
                "it looks at the rows, goes on or says what to do"
            )
        if holds := self._rows(sql.HOLDS)[0][0]:
            raise NotReady(f"{holds} holds were opened meanwhile; release or discard them first")
        self._rows(sql.MOVE, horizon=horizon)
        self._rows(sql.AUDIT, actor=actor, slot=self._slot, horizon=horizon)
        return len(shards)


def _owners(shards: list[tuple[Any, ...]]) -> tuple[str, ...]:
    return tuple(f"{owner} (shard {shard})" for shard, owner, leased, *_ in shards if leased)


def _owned(owners: tuple[str, ...]) -> list[str]:
    return [f"a relay runs and moves the horizon itself: {', '.join(owners)}; stop it"] if owners else []


def _refuse(obstacles: list[str]) -> None:
    if obstacles:
        raise NotReady("; ".join(obstacles))
