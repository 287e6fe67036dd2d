"""The quarantine's tables: pages of them, and acts on one message."""

import base64
import binascii
from dataclasses import asdict
from datetime import datetime
from typing import Any

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Acting, Database, Rows
from packhorse.console.facts import Act, QuarantinedMessage, State
from packhorse.console.paging import LOOK
from packhorse.console.pausing.sql import GROUP
from packhorse.console.quarantine import sql
from packhorse.console.quarantine.around import sql as around_sql
from packhorse.console.quarantine.around.model import (
    FIRST_FOLLOWERS,
    Around,
    Bytes,
    Caused,
    InRedrive,
    caused_said,
    follow_ups,
)
from packhorse.console.quarantine.groups.model import Known
from packhorse.console.quarantine.groups.postgres import print_of
from packhorse.console.quarantine.pages import Filter, Page, Position, page_of
from packhorse.console.quarantine.redrive import Order, acted_already
from packhorse.console.truth.postgres import quarantined_of
from packhorse.console.truth.sql import QUARANTINED_OF
from packhorse.core.errors import OwnershipLost, UnknownId
from packhorse.core.rights import Right


class QuarantineTables:
    """The quarantine of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self, person: Person, wanted: Filter, *, after: Position | None, limit: int, look: int = LOOK
    ) -> Page:
        """Return at most *limit* quarantined messages, the newest first, behind *after*, out of the next *look*."""
        with self._database.reading(person) as rows:
            values = _values(wanted, after, limit, look)
            if wanted.failure is not None:
                values["failure"] = print_of(rows, wanted.failure)
                rows.all(sql.IN_ORDER)
            page, far = _statements(wanted)
            found = [quarantined_of(row) for row in rows.all(page, values)]
            place = None if far is None or len(found) > limit else rows.first(far, values)
        return page_of(found, limit=limit, far=None if place is None else Position(**place))

    def knows(self, person: Person, group: str) -> bool:
        """Return whether anything is known of *group* in this database."""
        with self._database.reading(person) as rows:
            return bool(rows.all(GROUP, {"group": group})[0]["known"])

    def bytes_of(self, person: Person, message: QuarantinedMessage) -> Bytes:
        """Return payload and headers of *message* as they arrived."""
        with self._database.reading(person) as rows:
            return _bytes(rows, message)

    def unmask(self, person: Person, message: QuarantinedMessage, *, why: str) -> Bytes:
        """
        Return payload and headers of *message* for somebody who may see personal fields, on record in the same transaction.

        Raises:
            Forbidden: The person may not; nothing was read.
        """
        with self._database.acting(person, Right.PERSONAL, doing="see personal fields") as act:
            found = _bytes(act, message)
            act.record("unmask", why=why, group=message.group, topic=message.topic, message_id=message.id)
        return found

    def around(self, person: Person, message: QuarantinedMessage) -> Around:
        """Return what stands around *message*, from one snapshot."""
        names = _names(message)
        with self._database.reading(person) as rows:
            behind = rows.all(around_sql.BEHIND, {**names, "first": FIRST_FOLLOWERS})[0]
            ids = follow_ups(message.id, message.group)
            caused = rows.all(around_sql.CAUSED, {"ids": ids, "cause": str(message.id)})
            redrives = rows.all(around_sql.REDRIVES, names)
            known = rows.all(around_sql.FAILURE, names)[0]
        return Around(
            behind=behind["behind"],
            followers=tuple(behind["followers"] or ()),
            caused=tuple(Caused(**row) for row in caused),
            caused_said=caused_said(len(caused)),
            redrives=tuple(InRedrive(**row) for row in redrives),
            failure=known.pop("failure"),
            known=Known(**known),
        )

    def followers(self, person: Person, message: QuarantinedMessage) -> int:
        """Return how many messages wait behind *message*, because it is the head of its parked key."""
        with self._database.reading(person) as rows:
            return int(rows.all(sql.FOLLOWERS_OF, _names(message))[0]["waiting"])

    def redrive(self, person: Person, order: Order, *, why: str) -> datetime:
        """
        Order the redrive and record the act, as `order_redrive` does; return when. A crash before the commit leaves none of it.

        Raises:
            Forbidden: The person may not act.
            OwnershipLost: A row is no longer as *order* says; names who acted and when.
        """
        with self._database.acting(person, Right.ACT, doing="redrive messages") as act:
            return order_redrive(act, order, why=why)

    def discard(self, person: Person, order: Order, *, why: str) -> datetime:
        """
        Give the message up and record the act; return when.

        The order of effects and what a crash leaves are those of `redrive`. What waits behind it goes on at a running
        processor's next look.

        Raises:
            Forbidden, OwnershipLost: As `redrive`.
        """
        with self._database.acting(person, Right.ACT, doing="discard messages") as act:
            claim(act, order, sql.END_DISCARDED, sql.CLAIM_DISCARD)
            at = _record(act, "discard", order, why, {"attempt": order.attempt})
            act.all(sql.WAKE_KEY, _names(order))
        return at


def _bytes(rows: Rows, message: QuarantinedMessage) -> Bytes:
    row = rows.first(sql.QUARANTINED_BYTES, _names(message))
    if row is None:
        raise UnknownId(f"message {message.id} is no longer in quarantine; see packhorse status {message.id}")
    headers = tuple((name, _header_value(value)) for name, value in row["headers"])
    return Bytes(payload=row["payload"], headers=headers, erased_at=row["purged_at"])


def _statements(wanted: Filter) -> tuple[str, str | None]:
    """Return the statement for a page, and the one that says how far it looked where that is bounded."""
    if wanted.id is not None:
        return sql.PAGE_OF_ID, None
    if wanted.failure is not None:
        return sql.PAGE_OF_FAILURE, sql.FAR_OF_FAILURE
    if wanted.key is not None:
        return sql.PAGE_OF_KEY, None
    return sql.QUARANTINE_PAGE, sql.QUARANTINE_FAR


def _values(wanted: Filter, after: Position | None, limit: int, look: int) -> dict[str, Any]:
    return {
        "group": wanted.group,
        "topic": wanted.topic,
        "reason": wanted.reason,
        "type": wanted.type,
        "tenant": wanted.tenant,
        "state": wanted.state and wanted.state.value,
        "id": wanted.id,
        "key": wanted.key,
        "failure": wanted.failure,
        "since": wanted.since,
        "until": wanted.until,
        "text": wanted.text,
        "after_at": after and after.at,
        "after_id": after and after.id,
        "after_group": after and after.group,
        "after_topic": after and after.topic,
        "limit": limit + 1,
        "look": look,
    }


def claim(act: Acting, order: Order, *claims: str, state: State = State.QUARANTINED) -> None:
    """
    Claim the rows as they were previewed, in *state*; the key is touched last, as processors do: nobody waits in a ring.

    Raises:
        OwnershipLost: A row is no longer as *order* says; names who acted and when.
    """
    values = asdict(order)
    for statement in claims:
        if not act.all(statement, values):
            raise OwnershipLost(_who_acted(act, order, state))


def order_redrive(act: Acting, order: Order, *, why: str) -> datetime:
    """
    Order the redrive along with whatever else *act* does, and record it; return when.

    The inbox row is claimed first (as processors lock them), then the quarantined message, then the audit row is written;
    then, where order binds the message and its key is not parked, the key is parked with it as the head; the commit makes
    all of it true at once.

    Raises:
        OwnershipLost: A row is no longer as *order* says; names who acted and when.
    """
    claim(act, order, sql.ORDER_ATTEMPT, sql.CLAIM_REDRIVE)
    detail = {"attempt": order.attempt + 1, "redrive": order.redrives + 1}
    at = _record(act, "redrive", order, why, detail)
    act.all(sql.PARK_KEY, _names(order))
    return at


def _record(act: Acting, name: str, order: Order, why: str, detail: dict[str, int]) -> datetime:
    return act.record(name, why=why, group=order.group, topic=order.topic, message_id=order.id, detail=detail)


def _who_acted(act: Acting, order: Order, previewed: State) -> str:
    names = _names(order)
    acts = [Act(**row) for row in act.all(sql.LAST_ACT, names)]
    found = [quarantined_of(row) for row in act.all(QUARANTINED_OF, names)]
    state = next((row.state for row in found if (row.group, row.topic) == (order.group, order.topic)), None)
    moved = None if state is previewed else state
    return acted_already(order.id, order.group, moved, acts[0] if acts else None)


def _names(message: Order | QuarantinedMessage) -> dict[str, Any]:
    return {"id": message.id, "group": message.group, "topic": message.topic}


def _header_value(value: str | None) -> bytes | None:
    try:
        return None if value is None else base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value.encode() if value is not None else None
