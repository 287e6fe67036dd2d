"""Edited copies in the tables: one act, in one transaction."""

import json
from dataclasses import asdict
from datetime import datetime
from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Database, Rows
from packhorse.console.quarantine.sql import END_DISCARDED
from packhorse.console.redriving import sql_editing as sql
from packhorse.console.redriving.editing import Edit, Parent, edited
from packhorse.core.acts import checked_why
from packhorse.core.clock import Chance, Clock
from packhorse.core.errors import OwnershipLost, SettingsError, UnknownId, UsageError
from packhorse.core.rights import Right
from packhorse.schemas.decode import Decoder

DOING = "send an edited copy of a message"


class EditSource(Protocol):
    """Reads and replaces quarantined messages; raises what `Database` does."""

    def parent(self, person: Person, message_id: UUID, *, group: str | None, topic: str | None) -> Parent:
        """Return the message as it is now."""

    def send(self, person: Person, edit: Edit, *, why: str) -> datetime:
        """Put the copy in its parent's place."""


class EditTables:
    """The edits of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def parent(self, person: Person, message_id: UUID, *, group: str | None, topic: str | None) -> Parent:
        """
        Return the quarantined message with its bytes, for somebody who may edit.

        Raises:
            Forbidden: The person may not edit; nothing was read.
            UnknownId: No quarantined message matches.
            UsageError: Several match, or its bytes were purged.
            OwnershipLost: Somebody has acted on it already.
        """
        with self._database.reading(person, right=Right.EDIT, doing=DOING) as rows:
            return _parent(rows, message_id, group, topic)

    def send(self, person: Person, edit: Edit, *, why: str) -> datetime:
        """
        Give the parent up and let the copy wait in its place, drained first; return when that was recorded.

        The inbox row is claimed first, then the quarantined message; the copy is put, both are on record, the key comes last. The
        commit makes all of it true at once.

        Raises:
            Forbidden: The person may not edit, any more.
            OwnershipLost: The parent is no longer as it was looked at; nothing was done.
        """
        parent = edit.parent
        values = {
            **asdict(parent.order),
            "copy": edit.id,
            "payload": edit.payload,
            "headers": json.dumps([list(header) for header in edit.headers]),
            "digest": edit.digest,
            "hash": edit.hash,
            "key": edit.own_key,
        }
        with self._database.acting(person, Right.EDIT, doing=DOING) as act:
            act.standing.check(Right.ACT, doing=DOING)
            for claim in (END_DISCARDED, sql.CLAIM_EDITED):
                if act.count(claim, values) != 1:
                    raise OwnershipLost(
                        f"message {parent.id} has moved since it was looked at; nothing was done now; see packhorse status "
                        f"{parent.id}"
                    )
            act.count(sql.PUT_COPY, values)
            act.count(sql.PUT_BYTES, values)
            named = {"group": parent.group, "topic": parent.topic, "why": why}
            fields = list(edit.changed)
            at = act.record(
                "edit", message_id=parent.id, detail={"edited_as": str(edit.id), "fields": fields}, **named
            )
            act.record(
                "edit", message_id=edit.id, detail={"edited_from": str(parent.id), "fields": fields}, **named
            )
            act.count(sql.WAKE_OR_PARK, values)
        return at


class Edits:
    """Edited copies, for one person; *decoder* is None when no registry is set."""

    def __init__(
        self, tables: EditSource, person: Person, *, decoder: Decoder | None, clock: Clock, chance: Chance
    ) -> None:
        self._tables = tables
        self._person = person
        self._decoder = decoder
        self._clock = clock
        self._chance = chance

    def preview(self, message_id: UUID, value: object, *, group: str | None, topic: str | None) -> Edit:
        """
        Return the copy that *value* would make; nothing is done.

        Raises:
            Forbidden: The person may not edit.
            UnknownId, UsageError, OwnershipLost: There is no such message to edit, or nothing differs.
            MessageFault: The parent can't be decoded, so it can't be edited.
            ValueMismatch: A value does not fit the schema; names the field.
            SettingsError: No registry is set.
        """
        if self._decoder is None:
            raise SettingsError("PACKHORSE_REGISTRY_URL is not set: the schema of the message is needed")
        parent = self._tables.parent(self._person, message_id, group=group, topic=topic)
        return edited(parent, value, self._decoder, copy_id=self._chance.message_id(self._clock.now()))

    def send(self, edit: Edit, *, why: str) -> datetime:
        """
        Send exactly the copy that was previewed; return when that was recorded.

        Raises:
            UsageError: *why* is empty or too long.
            Forbidden, OwnershipLost: The right or the message has moved; nothing was done.
        """
        return self._tables.send(self._person, edit, why=checked_why(why))


def _parent(rows: Rows, message_id: UUID, group: str | None, topic: str | None) -> Parent:
    found = rows.all(sql.BEFORE_EDIT, {"id": message_id, "group": group, "topic": topic})
    if not found:
        raise UnknownId(f"message {message_id} is not in quarantine; see packhorse status {message_id}")
    if found[0]["of_job"]:
        raise UsageError(
            f"message {message_id} is a job's: it only names the job, whose input lies in the database; submit a new job with the "
            "right input, and discard this one; nothing was done"
        )
    if len(found) > 1:
        each = ", ".join(f"--group {row['group']} --topic {row['topic']}" for row in found)
        raise UsageError(f"message {message_id} is in quarantine more than once; say which: {each}")
    row = found[0]
    if row["state"] != "quarantined" or row["outcome"] != "quarantine":
        raise OwnershipLost(
            f"message {message_id} is {row['state']} already; see packhorse status {message_id}"
        )
    if row["purged_at"] is not None:
        raise UsageError(f"message {message_id} has no bytes any more: they were purged")
    names = ("id", "group", "topic", "type", "payload", "key_hash", "redrives", "quarantined_at", "attempt")
    headers = [(str(name), value) for name, value in row["headers"]]
    return Parent(**{name: row[name] for name in names}, headers=headers, head=row["head"])
