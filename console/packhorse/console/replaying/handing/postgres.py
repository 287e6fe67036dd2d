"""The runner's tables: portions that are handed over, and what has come of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from packhorse.console.acting.postgres import Rows
from packhorse.console.replaying import sql as plan_sql
from packhorse.console.replaying.handing import sql
from packhorse.console.replaying.postgres import seen_in
from packhorse.console.replaying.records import Handing, handing, is_handed, standing_of
from packhorse.console.replaying.run import PROVED_BAD, PROVED_GOOD, Counted, Part, Run
from packhorse.console.running.lease import Lease
from packhorse.console.running.postgres import Leases
from packhorse.console.running.sql import REPLAYS
from packhorse.core.errors import DatabaseUnavailable
from packhorse.core.ids import foreign_id, id_of
from packhorse.processor.record import Delivery, Record, digest_of, text_of
from packhorse.processor.storing.rows import headers_text, uuids

SETTLE = 1.0
"""Seconds until a key that is parked anew is woken: a live message of it that a lane has in hand is done first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """
    Records that are passed in one transaction.

    Attributes:
        part: Of which range, as it stood before.
        to: Where the next one begins.
        deliveries: The wanted records among them.
        more: Hashes of keys of which more is to come behind `to`.
        through: Hashes of keys of which nothing more comes.
        moved: Wanted records that are left out, since newer ones of their key are done.
        gone: Offsets that were no longer there.
    """

    part: Part
    to: int
    deliveries: Sequence[Delivery]
    more: frozenset[str]
    through: frozenset[str]
    moved: int = 0
    gone: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """
    What has come of what was handed over.

    Attributes:
        waiting: What has no outcome yet, by what the inbox says.
        bad: How many were counted off now that are in quarantine or uncertain.
        rate, most_failures: As people have set them.
    """

    waiting: Counter[str]
    bad: int
    rate: float
    most_failures: int


class HandingTables:
    """
    What the runner of one replay reads and writes; each write asks for its token first.

    Raises, each of its methods:
        LeaseLost: Nothing was written.
        DatabaseUnavailable, NotReady: Nothing was written, unless the connection was lost in the commit itself.
    """

    def __init__(self, leases: Leases, lease: Lease, run: Run) -> None:
        self._leases = leases
        self._lease = lease
        self._run = run
        self._of = {
            "id": run.id,
            "group": run.wanted.group,
            "topic": run.wanted.topic,
            "topic_id": run.topic_id,
        }

    def hand(self, portion: Portion) -> Counter[str]:
        """
        Pass *portion*: hand over what the inbox says is to be handed over, count the rest, and move the position; all of it in
        one transaction, so a crash leaves all or nothing, and whoever goes on begins behind it. Returns what was counted.
        """
        with self._leases.writing(self._lease) as rows:
            handed, counts = self._sorted(rows, portion)
            handed = self._inserted(rows, handed, counts)
            self._move(rows, portion, counts)
            self._keys(rows, portion, handed)
        return counts

    def _sorted(self, rows: Rows, portion: Portion) -> tuple[list[Handing], Counter[str]]:
        """Return what is to be handed over, and count what is not."""
        counts: Counter[str] = Counter({"moved": portion.moved} if portion.moved else {})
        if not portion.deliveries:
            return [], counts
        wanted = self._run.wanted
        seen = seen_in(rows, wanted.group, wanted.topic, [one.id for one in portion.deliveries])
        kept = rows.first(sql.KEPT_FROM, self._of)
        kept_from = None if kept is None else kept["kept_from"]
        found = []
        for delivery in portion.deliveries:
            standing = standing_of(delivery, seen.get(delivery.id), kept_from)
            if is_handed(standing, wanted):
                found.append(handing(delivery, standing, wanted, self._run.id))
            else:
                counts[f"was-{standing.value}"] += 1
        return found, counts

    def _inserted(self, rows: Rows, handed: Sequence[Handing], counts: Counter[str]) -> list[Handing]:
        """Make them known to the inbox; what somebody else was first with is left to them."""
        if not handed:
            return []
        columns = _columns(handed)
        there = {row["message_id"] for row in rows.all(sql.INSERT_INBOX, self._of | columns)}
        new = []
        for one in handed:
            if one.id in there:
                there.discard(one.id)
                new.append(one)
            else:
                counts["was-open"] += 1
        if new:
            columns = self._of | _columns(new)
            rows.count(sql.INSERT_FOLLOWERS, columns)
            rows.count(sql.INSERT_HANDED, columns)
            counts["handed"] += len(new)
        return new

    def _move(self, rows: Rows, portion: Portion, counts: Mapping[str, int]) -> None:
        values = {
            "id": self._run.id,
            "partition": portion.part.partition,
            "was": portion.part.position,
            "to": portion.to,
            "gone": portion.gone,
            "more": Jsonb(dict(counts)),
        }
        if rows.first(sql.MOVE_POSITION, values) is None:
            raise DatabaseUnavailable(
                f"replay {self._run.id} is elsewhere in partition {portion.part.partition} than at {portion.part.position}"
            )

    def _keys(self, rows: Rows, portion: Portion, handed: Sequence[Handing]) -> None:
        """Park and hold the keys of *handed*, and let go of those that are through; keys last, and sorted."""
        parks: dict[str, Handing] = {one.hash: one for one in handed}
        hashes = sorted(parks.keys() | portion.through)
        if not hashes:
            return
        there = {row["key_hash"] for row in rows.all(sql.LOCK_KEYS, self._of | {"hashes": hashes})}
        values = {**self._of, "past": portion.part.past, "settle": SETTLE}
        if known := [one for one in hashes if one in there]:
            held = [one in portion.more for one in known]
            rows.count(sql.HOLD_KEYS, values | {"hashes": known, "held": held})
        if new := [one for one in sorted(parks) if one not in there]:
            first = [parks[one] for one in new]
            columns = {
                "hashes": new,
                "keys": [one.stand_in or one.delivery.record.key for one in first],
                "partitions": [one.delivery.record.partition for one in first],
                "held": [one in portion.more for one in new],
            }
            if rows.count(sql.PARK_KEYS, values | columns) != len(new):
                # It was parked between the two statements, and is not locked: it might be let go before these are there.
                raise DatabaseUnavailable("a key was parked by another at this moment; nothing was done")

    def proved(self) -> Proved:
        """Count off what has an outcome, and return what is left and what people have set."""
        with self._leases.writing(self._lease) as rows:
            control = rows.all(sql.CONTROL, self._of)[0]
            waiting: Counter[str] = Counter()
            more: dict[int, Counter[str]] = {}
            for row in rows.all(sql.TAKE_PROVED, self._of):
                if row["outcome"] in (*PROVED_GOOD, *PROVED_BAD):
                    more.setdefault(row["partition"], Counter())[row["outcome"]] += row["n"]
                else:
                    waiting[row["outcome"]] += row["n"]
            for partition, counts in more.items():
                rows.count(sql.COUNT, self._of | {"partition": partition, "more": Jsonb(dict(counts))})
        bad = sum(counts[name] for counts in more.values() for name in PROVED_BAD)
        return Proved(waiting=waiting, bad=bad, rate=control["rate"], most_failures=control["most_failures"])

    def standing(self) -> tuple[tuple[Part, ...], dict[str, Counted]]:
        """Return how far the run is, and what waits."""
        with self._leases.writing(self._lease) as rows:
            parts = tuple(Part(**row) for row in rows.all(plan_sql.RANGES, self._of))
            found = rows.all(plan_sql.UNPROVED, self._of)
        return parts, {row["outcome"]: Counted(row["n"], row["behind"]) for row in found}

    def watermark(self, partition: int) -> int:
        """Return how far the live group is."""
        with self._leases.writing(self._lease) as rows:
            row = rows.first(sql.WATERMARK, self._of | {"partition": partition})
        return 0 if row is None else int(row["offset"])

    def begun(self, records: Sequence[Record]) -> list[Record]:
        """Return those of *records* that the live group has dealt with or has begun; what waits behind its key it has not."""
        ids = {_id_of(record, self._run.topic_id): record for record in records}
        with self._leases.writing(self._lease) as rows:
            seen = seen_in(rows, self._run.wanted.group, self._run.wanted.topic, list(ids))
        return [ids[one] for one, row in seen.items() if row.outcome != "parked"]

    def keys(self) -> set[str]:
        """Return the hashes of the keys that the run holds."""
        with self._leases.writing(self._lease) as rows:
            return {row["key_hash"] for row in rows.all(sql.OUR_KEYS, self._of)}

    def through(self, partition: int) -> None:
        """Let go of what is still held of *partition*, which is through."""
        with self._leases.writing(self._lease) as rows:
            rows.count(sql.LET_GO_OF_PARTITION, self._of | {"partition": partition})

    def close(self, state: str, said: str | None, *, final: bool) -> None:
        """Bring the run to *state*; at its end it lets go of all keys in the same transaction."""
        lease = self._lease
        with self._leases.writing(lease) as rows:
            if final:
                rows.count(plan_sql.LET_GO, self._of)
            values = {"id": lease.run, "token": lease.token, "state": state, "said": said, "final": final}
            rows.first(REPLAYS.close, values)


def _id_of(record: Record, topic_id: UUID) -> UUID:
    return id_of(dict(record.headers).get("id")) or foreign_id(topic_id, record.partition, record.offset)


def _columns(handed: Sequence[Handing]) -> dict[str, Any]:
    records = [one.delivery.record for one in handed]
    return {
        "ids": uuids([one.id for one in handed]),
        "hashes": [one.hash for one in handed],
        "partitions": [record.partition for record in records],
        "offsets": [record.offset for record in records],
        "epochs": [record.leader_epoch for record in records],
        "timestamps": [record.timestamp_ms for record in records],
        "keys": [record.key for record in records],
        "payloads": [record.value for record in records],
        "headers": [headers_text(one.headers) for one in handed],
        "types": [one.delivery.type for one in handed],
        "tenants": [text_of(one.delivery.headers.get("tenant")) for one in handed],
        "digests": [digest_of(record.value) for record in records],
    }
