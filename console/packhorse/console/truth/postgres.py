"""What the tables know about one message, from one snapshot."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Database, Rows
from packhorse.console.facts import (
    Act,
    Discard,
    Facts,
    FailedAttempt,
    Forgotten,
    Hold,
    InboxRow,
    OutboxRow,
    Outcome,
    QuarantinedMessage,
    State,
)
from packhorse.console.truth import sql, sql_around
from packhorse.console.truth.around import (
    MOST_COUNTED,
    Around,
    Carrier,
    Crew,
    Fate,
    Key,
    Mark,
    Membership,
    Parent,
    Pause,
    Queued,
    Retry,
)
from packhorse.console.truth.groups import groups_of
from packhorse.console.truth.keys import FIRST_FOLLOWERS, Follower, KeyFacts
from packhorse.console.truth.postgres_jobs import job_facts
from packhorse.console.truth.replays import ReplayRun, identities, original_of, replays_of
from packhorse.core.ids import time_of
from packhorse.core.naming import topic_name
from packhorse.processor.record import key_hash


class FactTables:
    """
    Be the `FactSource` of one database.

    Args:
        namespace: First part of the topics' names; without it a topic is known by its end, if one alone ends so.
    """

    def __init__(self, database: Database, *, namespace: str | None = None) -> None:
        self._database = database
        self._namespace = namespace

    def facts(self, message_id: UUID, person: Person) -> Facts:
        """Return all that is known about *message_id*, from one snapshot."""
        wanted = {"id": message_id}
        with self._database.reading(person) as rows:
            outbox = rows.first(sql.OUTBOX_ROW, wanted)
            discard = rows.first(sql.DISCARD_OF, wanted)
            facts = Facts(
                id=message_id,
                schema=self._database.schema,
                recorded=None if outbox is None else OutboxRow(**outbox),
                holds=tuple(Hold(**row) for row in rows.all(sql.HOLDS_OF, wanted)),
                discard=None if discard is None else Discard(**discard),
                inbox=tuple(_inbox_row(row) for row in rows.all(sql.INBOX_ROWS, wanted)),
                attempts=tuple(FailedAttempt(**row) for row in rows.all(sql.FAILED_ATTEMPTS, wanted)),
                quarantined=tuple(quarantined_of(row) for row in rows.all(sql.QUARANTINED_OF, wanted)),
                acts=tuple(Act(**row) for row in rows.all(sql.ACTS_OF, wanted)),
                forgotten=tuple(
                    Forgotten(**row) for row in rows.all(sql.FORGOTTEN, {"at": time_of(message_id)})
                ),
                job=job_facts(rows, message_id),
            )
            return replace(facts, around=self._around(rows, facts))

    def key(self, group: str, topic: str, hashed: str, person: Person) -> KeyFacts:
        """Return how *group* stands with the key of *topic* that *hashed* stands for, from one snapshot."""
        names = {
            "group": group,
            "topic": topic,
            "hash": hashed,
            "most": MOST_COUNTED,
            "first": FIRST_FOLLOWERS,
        }
        with self._database.reading(person) as rows:
            found = rows.first(sql_around.KEY_OF, names)
            marks = rows.all(sql_around.MARKS, {"topics": [topic]})
            return KeyFacts(
                now=rows.all(sql_around.CLOCK)[0]["now"],
                group=group,
                topic=topic,
                key_hash=hashed,
                reads=any(row["group"] == group for row in marks),
                key=None if found is None else Key(**found),
                pauses=tuple(Pause(**row) for row in rows.all(sql_around.PAUSES, {"groups": [group]})),
                crew=_crew(rows.all(sql_around.CREWS, {"groups": [group]})[0]),
                followers=()
                if found is None
                else tuple(Follower(**row) for row in rows.all(sql_around.FOLLOWERS, names)),
            )

    def _around(self, rows: Rows, facts: Facts) -> Around:
        """Return what stands around the message: in the groups that know of it, and in those that read its topic."""
        topics = self._topics(rows, facts)
        marks = tuple(Mark(**row) for row in rows.all(sql_around.MARKS, {"topics": topics}))
        known = {group for group, _ in groups_of(facts)}
        if facts.job is not None and facts.job.group is not None:
            known.add(facts.job.group)
        row = facts.recorded
        wanted: dict[str, Any] = {
            "id": facts.id,
            "topics": topics,
            "groups": sorted(known | {mark.group for mark in marks}),
            "hash": None if row is None or row.key is None else key_hash(row.key.encode()),
            "most": MOST_COUNTED,
        }
        carrier = rows.first(sql_around.CARRIER, wanted)
        return Around(
            carrier=None if carrier is None else Carrier(**carrier),
            now=rows.all(sql_around.CLOCK)[0]["now"],
            rows=rows.all(sql_around.ROWS, wanted)[0]["rows"],
            topics=tuple(topics),
            marks=marks,
            retries=tuple(Retry(**row) for row in rows.all(sql_around.RETRIES, wanted)),
            keys=tuple(Key(**row) for row in rows.all(sql_around.KEYS_OF, wanted)),
            queued=tuple(Queued(**row) for row in rows.all(sql_around.QUEUED, wanted)),
            pauses=tuple(Pause(**row) for row in rows.all(sql_around.PAUSES, wanted)),
            crews=tuple(_crew(row) for row in rows.all(sql_around.CREWS, wanted)),
            memberships=tuple(Membership(**row) for row in rows.all(sql_around.MEMBERSHIPS, wanted)),
            **_replays(rows, facts, wanted),
            fates=tuple(Fate(**row) for row in rows.all(sql_around.FATES, wanted)),
            parents=tuple(Parent(**row) for row in rows.all(sql_around.PARENTS, wanted)),
        )

    def _topics(self, rows: Rows, facts: Facts) -> list[str]:
        """Return the message's topics: those of its rows, and the one that it is published to, as far as that is known."""
        known = {topic for _, topic in groups_of(facts)}
        if facts.job is not None:
            known.add(facts.job.job.topic)
        row = facts.recorded
        if row is not None and self._namespace is not None:
            known.add(topic_name(self._namespace, row.aggregatetype))
        elif row is not None and not known:
            like = rows.all(sql_around.TOPICS_LIKE, {"end": f".{row.aggregatetype}"})
            known |= {each["topic"] for each in like} if len(like) == 1 else set()
        return sorted(known)


def _replays(rows: Rows, facts: Facts, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the replays that had the message in hand, and what it is in a replay itself."""
    runs = [ReplayRun(**row) for row in rows.all(sql_around.REPLAY_RUNS, wanted)]
    if not runs:
        return {}
    ids = {"ids": identities(facts.id, runs)}
    handed = {(row["run"], row["identity"]): row["handed_at"] for row in rows.all(sql_around.HANDED, ids)}
    outcomes = {
        (row["identity"], row["group"], row["topic"]): row["outcome"]
        for row in rows.all(sql_around.OUTCOMES, ids)
    }
    found: dict[str, Any] = {"replays": tuple(replays_of(facts.id, runs, handed, outcomes))}
    if facts.recorded is None:
        low = facts.id.int >> 80 << 80
        span = {"low": UUID(int=low), "high": UUID(int=low | (1 << 80) - 1)}
        near = [row["id"] for row in rows.all(sql_around.NEIGHBOURS, span)]
        found["replay_of"] = original_of(facts.id, runs, near)
    return found


def _crew(row: dict[str, Any]) -> Crew:
    return Crew(
        group=row["group"],
        alive=row["alive"],
        seen_at=row["seen_at"],
        stopped=tuple(sorted({str(each) for one in row["stopped"] for each in one})),
        stalls=tuple(
            (str(each.get("topic")), int(each.get("partition") or 0), str(each.get("cause")))
            for one in row["stalls"]
            for each in one
            if isinstance(each, dict)
        ),
    )


def quarantined_of(row: dict[str, Any]) -> QuarantinedMessage:
    """Return the quarantined message of a row."""
    return QuarantinedMessage(**{**row, "state": State(row["state"])})


def _inbox_row(row: dict[str, Any]) -> InboxRow:
    return InboxRow(**{**row, "outcome": Outcome(row["outcome"])})
