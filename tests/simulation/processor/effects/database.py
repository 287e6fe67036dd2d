"""
The tables of jobs, steps and effects, simulated as far as the statements of effects and steps need them.

A transaction runs at once and as a whole: what it locks makes others wait until its commit, so nobody could tell. The contract
suite holds it to what a real database does.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import UUID

from packhorse.processor.jobs.effects.sql import effect_queries
from packhorse.processor.jobs.sql_steps import step_queries
from packhorse.processor.storing.steps import Answer, Statement, Steps

T = TypeVar("T")

EFFECTS, STEPS = effect_queries("packhorse"), step_queries("packhorse")
FINAL = {"succeeded", "cancelled", "expired"}


@dataclass(frozen=True, slots=True)
class Job:
    """A row of `job`."""

    id: UUID
    state: str = "accepted"
    attempt: int = 0
    token: UUID | None = None
    lease_until: float = 0.0
    due: float = 0.0
    result: Any = None


@dataclass(frozen=True, slots=True)
class EffectRecord:
    """A row of `job_effect`."""

    idempotency_key: str
    digest: str
    state: str
    attempt: int
    calls: int
    intended_at: float
    timeout: float
    answer: str | None = None
    why: str | None = None


@dataclass(slots=True)
class Tables:
    """All rows; none is ever changed, only replaced."""

    jobs: dict[UUID, Job] = field(default_factory=dict)
    effects: dict[tuple[UUID, str], EffectRecord] = field(default_factory=dict)
    steps: dict[tuple[UUID, str], str | None] = field(default_factory=dict)


class Database:
    """
    One server.

    Attributes:
        fenced: Whether statements look whose job it is; an error to plant takes that away.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.tables = Tables()
        self.fenced = True
        self._statements = {
            EFFECTS.read_effect: self._read_effect,
            EFFECTS.intend_effect: self._intend_effect,
            EFFECTS.intend_again: self._intend_again,
            EFFECTS.change_effect: self._change_effect,
            STEPS.read_step: self._read_step,
            STEPS.record_step: self._record_step,
        }

    def backup(self) -> Tables:
        return deepcopy(self.tables)

    def restore(self, tables: Tables) -> None:
        self.tables = deepcopy(tables)

    def run(self, steps: Steps[T]) -> T:
        """Execute *steps* in one transaction."""
        before = self.backup()
        try:
            statement = next(steps)
            while True:
                statement = steps.send(self._execute(statement))
        except StopIteration as end:
            result: T = end.value
            return result
        except BaseException:
            self.tables = before
            raise

    def _execute(self, statement: Statement) -> Answer:
        rows = [self._statements[statement.text](statement.parameters)]
        return Answer(rows, len(rows))

    def _owns(self, v: dict[str, Any]) -> bool:
        job = self.tables.jobs.get(v["job"])
        return not self.fenced or (job is not None and (job.token, job.state) == (v["token"], "running"))

    def _read_effect(self, v: dict[str, Any]) -> tuple[Any, ...]:
        row = self.tables.effects.get((v["job"], v["key"]))
        if row is None:
            return (self._owns(v), *[None] * 7)
        known = (row.state, row.idempotency_key, row.digest, row.calls)
        return (self._owns(v), *known, self.now() - row.intended_at, row.timeout, row.answer)

    def _intend_effect(self, v: dict[str, Any]) -> tuple[bool, bool]:
        key = (v["job"], v["key"])
        if not self._owns(v):
            return False, False
        if key in self.tables.effects:
            return True, False
        self.tables.effects[key] = EffectRecord(
            v["idempotency_key"], v["digest"], "intended", v["attempt"], 1, self.now(), v["timeout"]
        )
        return True, True

    def _intend_again(self, v: dict[str, Any]) -> tuple[bool, bool]:
        return self._update(
            v,
            state="intended",
            attempt=v["attempt"],
            calls=v["calls"] + 1,
            intended_at=self.now(),
            timeout=v["timeout"],
            answer=None,
        )

    def _change_effect(self, v: dict[str, Any]) -> tuple[bool, bool]:
        return self._update(v, state=v["state"], answer=v["answer"])

    def _update(self, v: dict[str, Any], **changes: Any) -> tuple[bool, bool]:
        key = (v["job"], v["key"])
        row = self.tables.effects.get(key)
        if not self._owns(v):
            return False, False
        if row is None or (row.state, row.calls) != (v["was"], v["calls"]):
            return True, False
        self.tables.effects[key] = replace(row, why=v["why"], **changes)
        return True, True

    def _read_step(self, v: dict[str, Any]) -> tuple[Any, ...]:
        key = (v["job"], v["name"])
        return self._owns(v), key in self.tables.steps, self.tables.steps.get(key)

    def _record_step(self, v: dict[str, Any]) -> tuple[bool, bool]:
        key = (v["job"], v["name"])
        if not self._owns(v):
            return False, False
        if key in self.tables.steps:
            return True, False
        self.tables.steps[key] = v["result"]
        return True, True
