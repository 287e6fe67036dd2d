"""The record of a run's outside effects, as steps: every write is one statement, under the run's fence, and durable once it is committed."""

from dataclasses import dataclass
from typing import Any

from packhorse.processor.jobs.effects.model import Effect, EffectRow, EffectState
from packhorse.processor.jobs.fencing import Run, check_owned, written
from packhorse.processor.jobs.values import loaded
from packhorse.processor.storing.sql import Queries
from packhorse.processor.storing.steps import Statement, Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectTable:
    """
    The effects of the job of one run.

    All raise `OwnershipLost` when the run has lost its job; then nothing was written.
    """

    queries: Queries
    run: Run

    def read(self, key: str) -> Steps[EffectRow | None]:
        """Return what is known of the effect *key*."""
        answer = yield Statement(self.queries.read_effect, self._here(key))
        owned, state, *more, text = answer.rows[0]
        check_owned(self.run, owned)
        if state is None:
            return None
        idempotency_key, digest, calls, age, timeout = more
        return EffectRow(
            state=EffectState(state),
            idempotency_key=idempotency_key,
            digest=digest,
            calls=calls,
            age=age,
            timeout=timeout,
            answer=loaded(text),
        )

    def intend(self, effect: Effect, before: EffectRow | None, why: str | None) -> Steps[bool]:
        """Record that *effect* is about to be called; return False when it does not stand as *before* any more."""
        values = {**self._here(effect.key), "attempt": self.run.attempt, "timeout": effect.timeout}
        if before is None:
            first = {"idempotency_key": effect.idempotency_key, "digest": effect.digest}
            answer = yield Statement(self.queries.intend_effect, {**values, **first})
        else:
            expected = {"was": before.state.value, "calls": before.calls, "why": why}
            answer = yield Statement(self.queries.intend_again, {**values, **expected})
        return written(self.run, answer)

    def change(
        self,
        key: str,
        calls: int,
        state: EffectState,
        *,
        was: EffectState = EffectState.INTENDED,
        answer: str | None = None,
        why: str | None = None,
    ) -> Steps[bool]:
        """
        Record what became of call number *calls*; return False when the effect stands otherwise.

        Found as it is to be, because the answer to a try before was lost, it is as good as written.
        """
        values = {"was": was.value, "calls": calls, "state": state.value, "answer": answer, "why": why}
        if written(self.run, (yield Statement(self.queries.change_effect, {**self._here(key), **values}))):
            return True
        found = yield from self.read(key)
        return found is not None and (found.state, found.calls) == (state, calls)

    def _here(self, key: str) -> dict[str, Any]:
        return {"job": self.run.job_id, "token": self.run.token, "key": key}
