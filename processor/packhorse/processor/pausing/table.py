"""The pauses of one group as steps: statements that a shell executes; no I/O here."""

from dataclasses import dataclass

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

    def pause(self, scope: Scope, *, key_partition: int, actor: str, why: str) -> Steps[bool]:
        """Pause *scope* in the open transaction; return False when it was paused already, by whom it was before."""
        topic = scope.topic or ALL
        if not scope.is_key:
            return (yield from self.store.pause(actor, why, topic=topic, partition=_partition(scope)))
        hashed = hash_of(scope)
        return (
            yield from self.store.pause_key(
                topic, hashed, key=scope.key, partition=key_partition, actor=actor, why=why
            )
        )

    def resume(self, scope: Scope) -> Steps[bool]:
        """Let *scope* go on in the open transaction; return False when it was not paused."""
        topic = scope.topic or ALL
        if scope.is_key:
            return (yield from self.store.resume_key(topic, hash_of(scope)))
        return (yield from self.store.resume(topic=topic, partition=_partition(scope)))

    def _statement(self, text: str, **parameters: object) -> Statement:
        query = text.replace("{schema}", self.store.schema).encode()
        return Statement(query, {"group": self.store.group, **parameters})


def hash_of(scope: Scope) -> str:
    """Return what stands in the tables for the key that *scope* names."""
    return scope.key_hash or key_hash(scope.key or b"")


def _partition(scope: Scope) -> int:
    return EVERY if scope.partition is None else scope.partition
