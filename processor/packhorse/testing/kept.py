"""What a job under test keeps, and the contexts that keep it: in memory, checked as a worker checks it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from uuid import UUID

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.text import inert
from packhorse.processor import AsyncJobContext, JobContext
from packhorse.processor.durations import Duration
from packhorse.processor.jobs.driving import Call, Work, adrive, drive
from packhorse.processor.jobs.effects.calling import checked_hands, in_two_hands
from packhorse.processor.jobs.effects.deciding import Give, decide
from packhorse.processor.jobs.effects.model import TIMEOUT, Effect, EffectRow, EffectState, effect_of
from packhorse.processor.jobs.metadata import JobMetadata
from packhorse.processor.jobs.naming import checked_name
from packhorse.processor.jobs.runs import JobRun, Progress
from packhorse.processor.jobs.values import MOST_CHECKPOINT, MOST_RESULT, json_of, loaded
from packhorse.processor.record import Delivery
from packhorse.testing.handled import LOG

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Kept:
    """
    What a job keeps from run to run; hand it to `run_job` again for the next run of the same job.

    Attributes:
        id: The job's.
        state: The last checkpoint; None without one.
        progress: What was told last: done, total, text.
        steps: What steps that are done returned, by name.
        effects: What effects that were called have answered, by key.
        idempotency_keys: What the outside systems were given, by key.
        digests: Of the arguments of the effects, by key.
    """

    id: UUID = field(default_factory=lambda: SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now()))
    state: Any = None
    progress: Progress | None = None
    steps: dict[str, Any] = field(default_factory=dict)
    effects: dict[str, Any] = field(default_factory=dict)
    idempotency_keys: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)


class Memory:
    """What a job keeps in a test, checked as a worker checks it."""

    def __init__(self, kept: Kept, run: JobRun) -> None:
        self.kept = kept
        self._run = run
        self._busy: dict[str, object] = {}

    def checkpoint(self, state: object) -> None:
        """Keep *state* as the next run finds it; this one goes on with what it gave, as under a worker."""
        self.kept.state = as_kept(state, what="checkpoint", most=MOST_CHECKPOINT)
        self._run.state = state

    def step(self, name: str, call: Callable[[], Any]) -> Work[Any]:
        """Call unless the step is done."""
        named, steps = checked_name(name, what="step"), self.kept.steps
        if named not in steps:
            steps[named] = as_kept(
                (yield Call(call)), what=f"the result of step {inert(named)}", most=MOST_RESULT
            )
        return deepcopy(steps[named])

    def effect(
        self,
        key: str,
        call: Callable[[str], Any],
        *,
        verify: Callable[[str], Any] | None = None,
        arguments: object = None,
        timeout: Duration = TIMEOUT,
        refused: tuple[type[Exception], ...] = (),
    ) -> Work[Any]:
        """Call unless it was answered; one whose call has failed is called again."""
        effect = effect_of(
            self.kept.id, key, arguments=arguments, timeout=timeout, verifiable=verify is not None
        )
        checked_hands(key, call, verify, refused)
        mine = object()
        if self._busy.setdefault(effect.key, mine) is not mine:
            raise in_two_hands(effect.key)
        try:
            return (yield from self._called(effect, call))
        finally:
            del self._busy[effect.key]

    def _called(self, effect: Effect, call: Callable[[str], Any]) -> Work[Any]:
        kept, key = self.kept, effect.key
        if isinstance(found := decide(self._row(effect), effect), Give):
            return deepcopy(found.answer)
        answer = yield Call(lambda: call(kept.idempotency_keys[key]))
        kept.effects[key] = None  # it has happened, also where the answer can't be kept
        kept.effects[key] = as_kept(answer, what=f"the answer of effect {inert(key)}", most=MOST_RESULT)
        return deepcopy(kept.effects[key])

    def _row(self, effect: Effect) -> EffectRow:
        """Return what is on record of *effect*; it is from now on."""
        kept, key = self.kept, effect.key
        return EffectRow(
            state=EffectState.ANSWERED if key in kept.effects else EffectState.DID_NOT_HAPPEN,
            idempotency_key=kept.idempotency_keys.setdefault(key, effect.idempotency_key),
            digest=kept.digests.setdefault(key, effect.digest),
            calls=1,
            age=0.0,
            timeout=effect.timeout,
            answer=kept.effects.get(key),
        )


class Keeping(JobMetadata):
    """What contexts of both kinds of bodies do in a test."""

    __slots__ = ()
    _memory: Memory

    def __init__(self, delivery: Delivery, run: JobRun, memory: Memory, group: str) -> None:
        super().__init__(delivery, run, None, group=group, log=LOG)  # type: ignore[arg-type]  # nothing of it is asked for
        self._memory = memory  # type: ignore[misc]  # a slot of the classes below

    @property
    def id(self) -> UUID:
        """Return the job's id."""
        return self._memory.kept.id


class KeepingContext(Keeping, JobContext):
    """A `def` body's context that keeps in memory."""

    __slots__ = ("_memory",)

    def checkpoint(self, state: object) -> None:
        """Keep *state*."""
        self._memory.checkpoint(state)

    def step(self, name: str, call: Callable[[], T]) -> T:
        """Run *call* unless the step is done."""
        return cast("T", drive(self._memory.step(name, call), never, never))

    def effect(self, key: str, call: Callable[[str], Any], **options: Any) -> Any:
        """Call unless it was answered."""
        return drive(self._memory.effect(key, call, **options), never, never)


class AsyncKeepingContext(Keeping, AsyncJobContext):
    """An `async def` body's context that keeps in memory."""

    __slots__ = ("_memory",)

    async def checkpoint(self, state: object) -> None:
        """Keep *state*."""
        self._memory.checkpoint(state)

    async def step(self, name: str, call: Callable[[], Awaitable[T] | T]) -> T:
        """Run *call* unless the step is done."""
        return cast("T", await adrive(self._memory.step(name, call), never, never))

    async def effect(self, key: str, call: Callable[[str], Any], **options: Any) -> Any:
        """Call unless it was answered."""
        return await adrive(self._memory.effect(key, call, **options), never, never)


def as_kept(value: object, *, what: str, most: int) -> Any:
    """Return *value* as it comes back from the database; raises as `json_of`."""
    return loaded(json_of(value, what=what, most=most))


def never(*_: object) -> Any:
    """Refuse what a job under test never asks for: statements and pauses."""
    raise AssertionError("a job under test asks for calls alone")
