"""The pauses of one group as steps: statements that a shell executes; no I/O here."""

import json
from dataclasses import dataclass

from packhorse.core.acts import Actor
from packhorse.processor.pausing import sql
from packhorse.processor.pausing.pauses import ALL, EVERY, Pause, PausedKey, Pauses, Scope
from packhorse.processor.record import key_hash
from packhorse.processor.storing.steps import Statement, Steps
from packhorse.processor.storing.store import Store

MOST_KEYS = 1_000
"""Paused keys that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseTable:
    """What is paused in the group of *store*."""

    store: Store

    def pauses(self) -> Steps[Pauses]:
        """Return all pauses but those of keys."""
        rows = yield from self.store.read_pauses()
        return Pauses(rows=tuple(Pause(*row) for row in rows))

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
        done = yield from self._pause(scope, key_partition, actor, why)
        if done:
            yield from self._audit("pause", scope, actor, why)
        return done

    def resume(self, scope: Scope, *, actor: Actor, why: str) -> Steps[bool]:
        """Let *scope* go on, on record, in the open transaction; return False when it was not paused."""
        if scope.is_key:
            done = yield from self.store.resume_key(scope.topic or ALL, _hash(scope))
        else:
            done = yield from self.store.resume(topic=scope.topic or ALL, partition=_partition(scope))
        if done:
            yield from self._audit("resume", scope, actor, why)
        return done

    def _pause(self, scope: Scope, key_partition: int, actor: Actor, why: str) -> Steps[bool]:
        if not scope.is_key:
            return (
                yield from self.store.pause(
                    actor.text, why, topic=scope.topic or ALL, partition=_partition(scope)
                )
            )
        topic, hashed = scope.topic or ALL, _hash(scope)
        paused = yield from self.store.paused_keys()
        if any((one.topic, one.key_hash) == (topic, hashed) for one in paused):
            return False
        yield from self.store.pause_key(topic, hashed, key=scope.key, partition=key_partition)
        return True

    def _audit(self, act: str, scope: Scope, actor: Actor, why: str) -> Steps[None]:
        detail = {"partition": scope.partition, "key_hash": _hash(scope) if scope.is_key else None}
        yield from self.store.audit(
            actor=actor.text,
            act=act,
            topic=scope.topic,
            detail=json.dumps({name: value for name, value in detail.items() if value is not None}),
            why=why,
        )

    def _statement(self, text: str, **parameters: object) -> Statement:
        query = text.replace("{schema}", self.store.schema).encode()
        return Statement(query, {"group": self.store.group, **parameters})


def _hash(scope: Scope) -> str:
    return scope.key_hash or key_hash(scope.key or b"")


def _partition(scope: Scope) -> int:
    return EVERY if scope.partition is None else scope.partition
