"""Outside effects for code that runs a job, `def` and `async def`: two thin shells around one core."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction, signature
from typing import Any

from packhorse.core.clock import Clock
from packhorse.core.errors import UsageError
from packhorse.core.text import inert
from packhorse.processor.declaring import checked_errors
from packhorse.processor.durations import Duration
from packhorse.processor.jobs.driving import AsyncExecute, Execute, Work, adrive, drive
from packhorse.processor.jobs.effects.model import TIMEOUT, Effect, Verdict, effect_of
from packhorse.processor.jobs.effects.performing import Outside, perform
from packhorse.processor.jobs.effects.table import EffectTable
from packhorse.processor.jobs.fencing import Run
from packhorse.processor.storing.sql import Queries

Refused = tuple[type[Exception], ...]


def in_two_hands(key: str) -> UsageError:
    """Return the error of an effect that another thread or task of the run is calling."""
    return UsageError(f"effect {inert(key)} is being called already; two effects of a job need two keys")


def checked_hands(key: str, call: object, verify: object, refused: object) -> Refused:
    """
    Return *refused* as a tuple, once it is known that the effect *key* can be called and asked about.

    It comes before the intent: what fails in a function that could not be called at all would be in doubt from then on.

    Raises:
        UsageError: *call* or *verify* does not take the idempotency key alone, or *refused* names something else than errors.
    """
    what = f"effect {inert(str(key))}"
    for name, function in (("call", call), ("verify", verify)):
        if name == "verify" and function is None:
            continue
        if not callable(function):
            raise UsageError(
                f"{what}: {name} is {type(function).__name__}; pass a function that takes the idempotency key"
            )
        try:
            taken = signature(function)
        except (TypeError, ValueError):
            continue  # of some functions written in C nobody can tell
        try:
            taken.bind("")
        except TypeError:
            raise UsageError(
                f"{what}: {name}{taken} is called with the idempotency key; let it take that alone"
            ) from None
    return checked_errors(refused, what=f"{what}: refused")


class _Effects:
    """What both shells have: the job's run, its record, and the keys in hand."""

    def __init__(self, run: Run, clock: Clock, queries: Queries) -> None:
        self._run = run
        self._clock = clock
        self._table = EffectTable(queries=queries, run=run)
        self._busy: dict[str, object] = {}
        self._since = self._clocks()

    def _clocks(self) -> tuple[float, float]:
        return self._clock.monotonic(), self._clock.now().timestamp()

    def _elapsed(self) -> float:
        """
        Return seconds since it was made.

        Whichever of the clocks has gone further: that of a machine that was suspended may have stood still meanwhile.
        """
        return max(now - since for now, since in zip(self._clocks(), self._since, strict=True))

    def _work(
        self,
        effect: Effect,
        call: Callable[[str], Any],
        verify: Callable[[str], Any] | None,
        refused: Refused,
    ) -> Work[Any]:
        """
        Return what is to be done for *effect*.

        Raises:
            UsageError: Another thread or task of this run has the key in hand.
        """
        mine = object()
        if self._busy.setdefault(effect.key, mine) is not mine:
            raise in_two_hands(effect.key)
        try:
            return (yield from perform(effect, Outside(call, verify, refused, self._elapsed), self._table))
        finally:
            del self._busy[effect.key]


class Effects(_Effects):
    """
    The outside effects of one run of a `def` job.

    Args:
        run: The job's run.
        execute: Executes steps on a connection of their own.
        clock: Says how long a call was on its way to begin.
        queries: The statements.
        pause: Waits while the database is away.
    """

    def __init__(
        self,
        run: Run,
        execute: Execute,
        clock: Clock,
        *,
        queries: Queries,
        pause: Callable[[float], object],
    ) -> None:
        super().__init__(run, clock, queries)
        self._execute = execute
        self._pause = pause

    def call(
        self,
        key: str,
        call: Callable[[str], Any],
        *,
        verify: Callable[[str], Verdict] | None = None,
        arguments: object = None,
        timeout: Duration = TIMEOUT,
        refused: Refused = (),
    ) -> Any:
        """
        Bring an effect about once in the life of the job, and return its answer.

        Its intent is on record before the call, its answer after it. An effect that is answered is never called again.

        Args:
            key: Names the effect within the job: 1 to 200 characters, nothing personal.
            call: Is given the idempotency key, and returns an answer that JSON can carry, of at most 64 KiB. It must end by
                itself within *timeout*: give its client that time-out.
            verify: Is given the idempotency key after a call without an answer, and returns `Happened(answer)`,
                `DID_NOT_HAPPEN` or `CANT_TELL`. Without it a person decides.
            arguments: What the effect is about. The same key with others is refused.
            timeout: How long the call may take. A "no" of *verify* counts only after it.
            refused: Errors of *call* that mean that surely nothing was done: it is called again in the next attempt.

        Raises:
            EffectInDoubt: Nobody but a person can say whether it has happened; let it pass.
            EffectConflict, UsageError: Something is not allowed; nothing was called.
            Later: It is too early to say; let it pass, no attempt is charged.
            OwnershipLost: Another worker has the job by now.
            Exception: What *call* or *verify* raises; the next attempt verifies.
        """
        for function in (call, verify):
            if iscoroutinefunction(function):
                raise UsageError(
                    f"effect {inert(str(key))}: {function.__name__} is `async def`, the job is not; use an async job"
                )
        effect = effect_of(
            self._run.job_id, key, arguments=arguments, timeout=timeout, verifiable=verify is not None
        )
        errors = checked_hands(key, call, verify, refused)
        return drive(self._work(effect, call, verify, errors), self._execute, self._pause)


class AsyncEffects(_Effects):
    """The outside effects of one run of an `async def` job; see `Effects`."""

    def __init__(
        self,
        run: Run,
        execute: AsyncExecute,
        clock: Clock,
        *,
        queries: Queries,
        pause: Callable[[float], Awaitable[object]],
    ) -> None:
        super().__init__(run, clock, queries)
        self._execute = execute
        self._pause = pause

    async def call(
        self,
        key: str,
        call: Callable[[str], Any],
        *,
        verify: Callable[[str], Any] | None = None,
        arguments: object = None,
        timeout: Duration = TIMEOUT,
        refused: Refused = (),
    ) -> Any:
        """Bring an effect about once, as `Effects.call`; *call* and *verify* may be `async def`."""
        effect = effect_of(
            self._run.job_id, key, arguments=arguments, timeout=timeout, verifiable=verify is not None
        )
        errors = checked_hands(key, call, verify, refused)
        return await adrive(self._work(effect, call, verify, errors), self._execute, self._pause)
