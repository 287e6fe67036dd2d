"""What is kept of a person in the tables: found in portions, erased in transactions that are each on the record."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Acting, Database
from packhorse.console.purging import sql
from packhorse.console.purging.model import Erased, Found, Kind, Left, Place, Schemas, Table, Wanted
from packhorse.console.purging.service import EraserFailed, Order, Portion
from packhorse.core.naming import quarantine_topic, retry_topic
from packhorse.core.rights import Right
from packhorse.processor.erasing import Eraser
from packhorse.processor.running.faults import describe
from packhorse.schemas.framing import prefix

DOING = "purge"
NOBODY = UUID(int=0)
LIMIT = 200
"""Messages of one portion."""
WINDOW, NARROW = 50_000, 2_000
"""Rows of the outbox that one look goes over, by key, and where payloads have to be decoded."""
PATIENCE = 60.0
"""Seconds for one look: payloads of a large table may have to be read."""
_FIND = {Table.PARKED: sql.PARKED, Table.RETRY: sql.RETRY, Table.QUARANTINE: sql.QUARANTINED}
_UNKNOWN = {
    Table.PARKED: sql.UNKNOWN_PARKED,
    Table.RETRY: sql.UNKNOWN_RETRY,
    Table.QUARANTINE: sql.UNKNOWN_QUARANTINED,
}


class PurgeTables:
    """The tables of one database; each method raises what `Database.reading` or `Database.acting` does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def schemas(self, person: Person) -> dict[int, str]:
        """Return all registered schemas by id."""
        with self._database.reading(person, right=Right.ADMINISTER, doing=DOING) as rows:
            return {row["id"]: row["text"] for row in rows.all(sql.SCHEMAS)}

    def portion(
        self, person: Person, table: Table, wanted: Wanted, *, schemas: Schemas | None, after: Any
    ) -> Portion:
        """
        Return the next messages of the subject in *table*, behind *after*, with payloads where *schemas* are given.

        Where it goes by a field they are candidates alone: their schema has the field. Those whose schema nobody knows are counted:
        of the outbox with each portion, of the others with the first.
        """
        values = _values(wanted, schemas)
        with self._database.reading(person, right=Right.ADMINISTER, doing=DOING, timeout=PATIENCE) as rows:
            if table is Table.JOB:
                seen = rows.all(sql.JOBS, {**values, "after": after or NOBODY, "window": NARROW})
                found = [row for row in seen if row["topic"] is not None]
                unknown = [row for row in seen if row["n"] is not None]
                next_ = next((row["id"] for row in seen if row["topic"] is None and row["n"] is None), None)
            elif table is Table.OUTBOX:
                span = rows.all(sql.SPAN)[0]
                first = span["first"] if after is None else after
                until = first + (WINDOW if schemas is None else NARROW)
                window = {**values, "after": first, "until": until}
                found = rows.all(sql.OUTBOX, window)
                unknown = [] if schemas is None else rows.all(sql.UNKNOWN_OUTBOX, window)
                next_ = None if until >= span["last"] else until
            else:
                at = after or (None, None, None)
                behind = {"after_id": at[0], "after_group": at[1], "after_topic": at[2], "limit": LIMIT}
                found = rows.all(_FIND[table], {**values, **behind})
                unknown = [] if schemas is None or after else rows.all(_UNKNOWN[table], values)
                last = found[-1] if len(found) == LIMIT else None
                next_ = last and (last["id"], last["group"], last["topic"])
        return _portion(table, found, unknown, next_=next_)

    def staying(self, person: Person, ids: Sequence[UUID], *, unpublished: bool) -> list[Left]:
        """Return which rows of the outbox a purge would leave now, and why."""
        with self._database.reading(person, right=Right.ADMINISTER, doing=DOING, timeout=PATIENCE) as rows:
            found = rows.all(sql.FATES, {"ids": list(ids), "unpublished": unpublished})
        return [Left(**row) for row in found]

    def running(self, person: Person, ids: Sequence[UUID]) -> list[Left]:
        """Return which jobs run now: a purge would ask them to stop, and leave them."""
        with self._database.reading(person, right=Right.ADMINISTER, doing=DOING, timeout=PATIENCE) as rows:
            return [Left(**row) for row in rows.all(sql.RUNNING, {"ids": list(ids)})]

    def begin(self, person: Person, order: Order) -> str:
        """Put on the record that a purge begins, and return what stands for its subject there."""
        with self._database.acting(person, Right.ADMINISTER, doing=DOING) as act:
            mark = str(act.all(sql.MARK, {"subject": order.wanted.marked})[0]["mark"])
            _record(act, order, mark, "begun")
        return mark

    def erase(self, person: Person, order: Order, mark: str, table: Table, found: Sequence[Found]) -> Erased:
        """
        Erase *found* of *table*, on the record with counts and places, all of it or nothing.

        Rows are locked as processors do: the inbox first, then the message, keys last.
        """
        with self._database.acting(person, Right.ADMINISTER, doing=DOING, timeout=PATIENCE) as act:
            values = _members(order, found)
            if table is Table.OUTBOX:
                erased = self._outbox(act, order, values)
            elif table is Table.JOB:
                erased = _erase_jobs(act, order, found)
            else:
                erased = Erased(counts=_messages(act, values))
            texts = {
                "inbox texts cut": act.count(sql.INBOX_TEXTS, values),
                "attempt texts cut": act.count(sql.ATTEMPT_TEXTS, values),
                "traces in runs erased": act.count(sql.RUN_TRACES, values),
            }
            counts = {name: count for name, count in {**erased.counts, **texts}.items() if count}
            places = [place.row() for one in found for place in one.places]
            _record(act, order, mark, "erased", counts=counts, places=places, table=table.value)
        return Erased(counts=counts, left=erased.left)

    def traces(self, person: Person, order: Order, mark: str) -> Erased:
        """Erase the key where it is named beside messages: in holds and runs that are over."""
        if order.wanted.subject.key is None:
            return Erased(counts={})
        with self._database.acting(person, Right.ADMINISTER, doing=DOING) as act:
            values = _values(order.wanted, None)
            counts = {
                "holds that are over, key erased": act.count(sql.HOLDS, values),
                "runs that are over, key erased": int(act.all(sql.RUNS, values)[0]["n"]),
            }
            counts = {name: count for name, count in counts.items() if count}
            if counts:
                _record(act, order, mark, "erased", counts=counts)
            else:
                act.left_alone()
        return Erased(counts=counts)

    def application(self, person: Person, order: Order, mark: str, name: str, eraser: Eraser) -> Erased:
        """
        Let an application erase what it has, on the record, all of it or nothing.

        Raises:
            EraserFailed: It raised; names class and place, since its text may quote values.
        """
        with self._database.acting(person, Right.ADMINISTER, doing=DOING, timeout=PATIENCE) as act:
            try:
                rows = eraser(act.connection, order.wanted.subject)
            except Exception as error:  # noqa: BLE001 the application's own fault, told without its text
                raise EraserFailed(
                    f"eraser {name} failed: {describe(error)}; nothing of it was done"
                ) from None
            counts = {f"by {name}": rows or 0}
            _record(act, order, mark, "erased", counts=counts)
        return Erased(counts=counts)

    def end(
        self, person: Person, order: Order, mark: str, *, counts: Mapping[str, int], left: int, unread: int
    ) -> tuple[list[Place], int]:
        """Put on the record that the purge is through; return where its records lay, and how many parked keys are left."""
        with self._database.acting(person, Right.ADMINISTER, doing=DOING, timeout=PATIENCE) as act:
            _record(act, order, mark, "ended", counts=counts, left=left, unread=unread)
            keys = 0
            if order.wanted.subject.path is None:
                keys = int(act.all(sql.KEYS, _values(order.wanted, None))[0]["n"])
            places = [
                Place(**{**row, "kind": Kind(row["kind"])}) for row in act.all(sql.PLACES, {"mark": mark})
            ]
        return places, keys

    def sources(self, person: Person, topic: str | None) -> list[str]:
        """Return the source topics that groups read here, *topic* alone where it is given."""
        with self._database.reading(person) as rows:
            return [row["topic"] for row in rows.all(sql.SOURCES, {"topic": topic})]

    def _outbox(self, act: Acting, order: Order, values: Mapping[str, Any]) -> Erased:
        rows = act.all(sql.PURGE_OUTBOX, {**values, "unpublished": order.wanted.unpublished})
        gone = [row for row in rows if row["gone"]]
        lost = [row for row in gone if row["fate"] == "unpublished"]
        for row in lost:
            act.count(sql.DISCARD, {**row, "actor": act.actor, "why": order.why})
            act.record("discard", why=order.why, message_id=row["id"], detail={"purge": str(order.run)})
        left = [
            Left(id=row["id"], aggregatetype=row["aggregatetype"], fate=row["fate"])
            for row in rows
            if not row["gone"]
        ]
        counts = {"outbox rows deleted": len(gone), "of these never published": len(lost)}
        return Erased(counts=counts, left=tuple(left))


def _erase_jobs(act: Acting, order: Order, found: Sequence[Found]) -> Erased:
    """Take back or give up what waits of jobs, and empty them; what runs is asked to stop and left."""
    locked = act.all(sql.LOCK_JOBS, {"ids": [one.id for one in found]})
    running = [row for row in locked if row["state"] == "running"]
    rest = [
        Found(id=row["id"], group=row["group"], topic=row["topic"])
        for row in locked
        if row["state"] != "running"
    ]
    values = {**_members(order, rest), "actor": act.actor}
    messages = _messages(act, values)
    cancelled = int(act.all(sql.CANCEL, {**values, "ids": [row["id"] for row in locked]})[0]["n"])
    erased = act.count(sql.ERASE_JOBS, values)
    return Erased(
        counts={"jobs erased": erased, "jobs taken back": cancelled, **messages},
        left=tuple(Left(id=row["id"], aggregatetype=row["type"], fate="running") for row in running),
    )


def _messages(act: Acting, values: Mapping[str, Any]) -> dict[str, int]:
    ended = act.count(sql.END, values)
    return {
        "messages given up": ended,
        "quarantined emptied": act.count(sql.EMPTY_QUARANTINED, values),
        "retries deleted": act.count(sql.DELETE_RETRY, values),
        "followers deleted": act.count(sql.DELETE_PARKED, values),
        "keys woken": act.count(sql.WAKE, values),
    }


def _record(act: Acting, order: Order, mark: str, step: str, **detail: Any) -> None:
    wanted = order.wanted
    named = {"run": str(order.run), "subject": mark, "by": wanted.by, "step": step, **detail}
    act.record(DOING, why=order.why, group=wanted.group, topic=wanted.topic, detail=named)


def _values(wanted: Wanted, schemas: Schemas | None) -> dict[str, Any]:
    return {
        "group": wanted.group,
        "topic": wanted.topic,
        "aggregatetype": wanted.aggregatetype,
        "text": wanted.subject.key,
        "key": wanted.subject.key_bytes,
        "schemas": None if schemas is None else [prefix(number) for number in schemas.having],
        "known": None if schemas is None else [prefix(number) for number in schemas.known],
    }


def _members(order: Order, found: Sequence[Found]) -> dict[str, Any]:
    return {
        "ids": [one.id for one in found],
        "groups": [one.group for one in found],
        "topics": [one.topic for one in found],
        "group": order.wanted.group,
    }


def _portion(
    table: Table, rows: Sequence[Mapping[str, Any]], unknown: Sequence[Mapping[str, Any]], *, next_: Any
) -> Portion:
    return Portion(
        found=tuple((_found(table, row), row["payload"]) for row in rows),
        unknown={
            None if row["schema"] is None else int.from_bytes(row["schema"]): row["n"] for row in unknown
        },
        next=next_,
    )


def _found(table: Table, row: Mapping[str, Any]) -> Found:
    named = table is Table.JOB and row["named"]
    places = _places(table, row)
    return Found(id=row["id"], group=row["group"], topic=row["topic"], places=places, named=named)


def _places(table: Table, row: Mapping[str, Any]) -> tuple[Place, ...]:
    if table in {Table.OUTBOX, Table.JOB}:
        return ()
    found = [Place(topic=row["topic"], partition=row["partition"], offset=row["offset"])]
    at = row["partition"] if row["at"] is None else row["at"]
    if table is Table.RETRY:
        topic = retry_topic(row["topic"], row["group"], row["tier"])
        found.append(Place(topic=topic, partition=at, offset=row["spot"], kind=Kind.TIER))
    if table is Table.QUARANTINE:
        topic = quarantine_topic(row["topic"], row["group"])
        found.append(Place(topic=topic, partition=at, offset=row["spot"], kind=Kind.QUARANTINE))
    return tuple(found)
