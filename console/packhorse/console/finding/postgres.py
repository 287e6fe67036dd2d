"""What the tables know under a key or a name, from one snapshot."""

from typing import Any
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Database, Rows
from packhorse.console.finding import sql
from packhorse.console.finding.model import FIRST_SHOWN, MOST_OF_KEY, MOST_ROWS, Found, Row, Topic
from packhorse.console.truth.around import Key
from packhorse.console.truth.postgres import quarantined_of
from packhorse.console.truth.sql_around import CLOCK


class FindingTables:
    """Be the `FindingSource` of one database; each method raises what `Database.reading` does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_job(self, person: Person, message_id: UUID) -> bool:
        """Return whether *message_id* is the id of a job."""
        with self._database.reading(person) as rows:
            return bool(rows.all(sql.IS_JOB, {"id": message_id})[0]["is_job"])

    def found(self, person: Person, *, key: bytes | None, hashed: str | None, name: str | None) -> Found:
        """Return what is known under *key*, under the key of which *hashed* is the hash, and whose name holds *name*."""
        bounds = {"first": FIRST_SHOWN, "most": MOST_OF_KEY, "rows": MOST_ROWS}
        with self._database.reading(person) as rows:
            given: dict[str, Any] = {"now": rows.all(CLOCK)[0]["now"]}
            if key is not None:
                given |= _of_key(rows, {**bounds, "key": key, "text": _text(key)})
            if hashed is not None:
                values = {**bounds, "hash": hashed}
                given["keys"] = tuple(Key(**row) for row in rows.all(sql.PARKED_KEYS, values))
            if name is not None:
                given |= _named(rows, {**bounds, "name": name})
            return Found(**given)


def _of_key(rows: Rows, values: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "quarantined": tuple(quarantined_of(row) for row in rows.all(sql.QUARANTINED_OF_KEY, values)),
        "quarantined_count": rows.all(sql.COUNT_OF_KEY, values)[0]["quarantined"],
    }
    if values["text"] is None:
        return found  # the outbox holds keys that are text
    found |= rows.all(sql.LOOKED, values)[0]
    found["rows"] = tuple(Row(**row) for row in rows.all(sql.ROWS_OF_KEY, values))
    return found


def _named(rows: Rows, values: dict[str, Any]) -> dict[str, Any]:
    return {
        "groups": tuple(row["name"] for row in rows.all(sql.GROUPS, values)),
        "topics": tuple(
            Topic(name=row["name"], groups=tuple(row["groups"])) for row in rows.all(sql.TOPICS, values)
        ),
    }


def _text(key: bytes) -> str | None:
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text
