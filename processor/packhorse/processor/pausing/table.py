"""The tables of pauses as steps: statements that a shell executes; no I/O here."""

import json
from dataclasses import dataclass

from packhorse.core.acts import Actor
from packhorse.core.naming import checked_identifier
from packhorse.processor.pausing import sql
from packhorse.processor.pausing.pauses import ALL, EVERY, Pause, PausedKey, Pauses, Scope
from packhorse.processor.record import key_hash
from packhorse.processor.storing.steps import Statement, Steps

MOST_KEYS = 1_000
"""Paused keys that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseTable:
    """What is paused in one group."""

    schema: str
    group: str

    def __post_init__(self) -> None:
        checked_identifier(self.schema, what="database schema")

    def pauses(self) -> Steps[Pauses]:
        """Return all pauses but those of keys."""
        answer = yield self._statement(sql.PAUSES)
        return Pauses(rows=tuple(Pause._make(row) for row in answer.rows))

    def paused_keys(self) -> Steps[list[PausedKey]]:
        """Return the oldest keys that people have paused, at most MOST_KEYS."""
        answer = yield self._statement(sql.PAUSED_KEYS, most=MOST_KEYS)
        return [PausedKey._make(row) for row in answer.rows]

    def role(self) -> Steps[str]:
        """Return the role that is connected."""
        answer = yield self._statement(sql.ROLE)
        return str(answer.rows[0][0])

    def pause(self, scope: Scope, *, key_partition: int, actor: Actor, why: str) -> Steps[bool]:
        """Pause *scope*, on record, in the open transaction; return False when it was paused already."""
        if scope.is_key:
            answer = yield self._statement(
                sql.PAUSE_KEY, **self._key(scope), key=scope.key, partition=key_partition
            )
        else:
            answer = yield self._statement(sql.PAUSE, **_place(scope), by=actor.text, why=why)
        if answer.touched:
            yield self._audit("pause", scope, actor, why)
        return answer.touched == 1

    def resume(self, scope: Scope, *, actor: Actor, why: str) -> Steps[bool]:
        """Let *scope* go on, on record, in the open transaction; return False when it was not paused."""
        if scope.is_key:
            answer = yield self._statement(sql.RESUME_KEY, **self._key(scope))
            yield self._statement(sql.DROP_KEY, **self._key(scope))
        else:
            answer = yield self._statement(sql.RESUME, **_place(scope))
        if answer.touched:
            yield self._audit("resume", scope, actor, why)
        return answer.touched == 1

    def _audit(self, act: str, scope: Scope, actor: Actor, why: str) -> Statement:
        detail = {"partition": scope.partition, "key_hash": _hash(scope) if scope.is_key else None}
        return self._statement(
            sql.AUDIT,
            actor=actor.text,
            act=act,
            topic=scope.topic,
            detail=json.dumps({name: value for name, value in detail.items() if value is not None}),
            why=why,
        )

    def _key(self, scope: Scope) -> dict[str, object]:
        return {"topic": scope.topic, "key_hash": _hash(scope)}

    def _statement(self, text: str, **parameters: object) -> Statement:
        return Statement(text.replace("{schema}", self.schema).encode(), {"group": self.group, **parameters})


def _hash(scope: Scope) -> str:
    return scope.key_hash or key_hash(scope.key or b"")


def _place(scope: Scope) -> dict[str, object]:
    return {
        "topic": ALL if scope.topic is None else scope.topic,
        "partition": EVERY if scope.partition is None else scope.partition,
    }
