"""An outside effect from its name to its answer: asks for what is to be done, does nothing by itself."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from packhorse.core.errors import OwnershipLost, UsageError
from packhorse.core.text import inert
from packhorse.processor.jobs.driving import Call, Store, Work, patiently
from packhorse.processor.jobs.effects.deciding import Ask, Doubt, Give, Intend, PutOff, Settle, decide
from packhorse.processor.jobs.effects.model import (
    START_WITHIN,
    Effect,
    EffectInDoubt,
    EffectRow,
    EffectState,
    Happened,
    Unknown,
    Verdict,
)
from packhorse.processor.jobs.effects.table import EffectTable
from packhorse.processor.jobs.fencing import check_owned
from packhorse.processor.jobs.values import MOST_RESULT, json_of, loaded
from packhorse.processor.policy import SHORTEST_LATER, Later
from packhorse.processor.storing.steps import Steps


class Outside:
    """
    The other side, as the application reaches it.

    Args:
        call: Does it, and returns the answer.
        verify: Asks whether it was done.
        refused: Errors of *call* that mean that surely nothing was done.
        elapsed: Returns seconds since any fixed moment; a freeze counts.
    """

    def __init__(
        self,
        call: Callable[[str], Any],
        verify: Callable[[str], Any] | None,
        refused: tuple[type[Exception], ...],
        elapsed: Callable[[], float],
    ) -> None:
        self.call = call
        self.verify = verify
        self.refused = refused
        self.elapsed = elapsed


def perform(effect: Effect, outside: Outside, table: EffectTable) -> Work[Any]:
    """
    Bring *effect* about once, and return its answer; what is on record is returned without a call.

    The intent is committed before the call is made, the answer after it: a crash in between leaves an intent without an answer,
    which is verified or left to a person, and never simply called again.

    Raises:
        EffectInDoubt: Nobody but a person can say whether it has happened; that is on record.
        EffectConflict: The key stands for other arguments.
        Later: It is too early to believe the other side's "no", or the call would have begun too late.
        OwnershipLost: The run has lost its job; an answer that came after that is not on record.
        Exception: What call or verify raises.
    """
    verdict: Verdict | None = None
    row: EffectRow | None = yield from patiently(lambda: table.read(effect.key))
    if row is not None:
        effect = replace(effect, idempotency_key=row.idempotency_key)
    while True:
        match decide(row, effect, verdict):
            case Give(answer):
                return answer
            case Ask():
                verdict = yield from _asked(effect, outside)
                continue
            case PutOff(seconds):
                raise Later(
                    f"effect {inert(effect.key)}: it is too early to say that it did not happen",
                    after=max(seconds, SHORTEST_LATER),
                )
            case Settle(found):
                return (yield from _settled(effect, table, row, found))
            case Doubt(why):
                raise (yield from _doubted(effect, table, row, why))
            case Intend(calls, why):
                began = outside.elapsed()
                if (yield from _intended(effect, table, row, calls, why)):
                    return (yield from _called(effect, outside, table, calls, began))
        row, verdict = (yield Store(table.read(effect.key))), None


def _asked(effect: Effect, outside: Outside) -> Work[Verdict]:
    """Return what the other side says."""
    ask = outside.verify
    assert ask is not None, "an effect is verifiable when it has a verify"
    verdict = yield Call(lambda: ask(effect.idempotency_key))
    if isinstance(verdict, Happened | Unknown):
        return verdict
    raise UsageError(
        f"verify of effect {inert(effect.key)} returned a {type(verdict).__name__}; return Happened(answer), DID_NOT_HAPPEN or "
        "CANT_TELL"
    )


def _intended(
    effect: Effect, table: EffectTable, row: EffectRow | None, calls: int, why: str | None
) -> Work[bool]:
    """Record the intent; return False when the effect stood otherwise by then."""

    def steps() -> Steps[bool]:
        if (yield from table.intend(effect, row, why)):
            return True
        # This run has looked before and alone holds the key: if the intent is there by now, it wrote that itself.
        found = yield from table.read(effect.key)
        return found is not None and (found.state, found.calls) == (EffectState.INTENDED, calls)

    return (yield from patiently(steps, START_WITHIN))


def _called(effect: Effect, outside: Outside, table: EffectTable, calls: int, began: float) -> Work[Any]:
    """Make call number *calls*, whose intent is on record, unless it is late for that; record and return the answer."""
    run = table.run
    if outside.elapsed() - began > START_WITHIN:
        why = "the call was not made: it would have begun too late"
        yield from _changed(effect, table, calls, EffectState.DID_NOT_HAPPEN, why=why)
        raise Later(f"effect {inert(effect.key)}: its intent took too long to record", after=SHORTEST_LATER)
    check_owned(run, not run.lost)
    try:
        answer = yield Call(lambda: outside.call(effect.idempotency_key))
    except outside.refused as error:
        why = f"the call was refused: {type(error).__name__}"
        yield from _changed(effect, table, calls, EffectState.DID_NOT_HAPPEN, why=why)
        raise
    try:
        text = json_of(answer, what=f"the answer of effect {inert(effect.key)}", most=MOST_RESULT)
    except UsageError as error:
        yield from _changed(effect, table, calls, EffectState.HAPPENED, why=str(error))
        raise
    yield from _changed(effect, table, calls, EffectState.ANSWERED, answer=text)
    return loaded(text)


def _settled(effect: Effect, table: EffectTable, row: EffectRow | None, answer: object) -> Work[Any]:
    """Record what the other side says, and return it."""
    assert row is not None, "who is asked is asked about an intent"
    text = json_of(answer, what=f"the answer of verify of effect {inert(effect.key)}", most=MOST_RESULT)
    why = "verify says that it happened"
    yield from _changed(effect, table, row.calls, EffectState.HAPPENED, was=row.state, answer=text, why=why)
    return loaded(text)


def _doubted(effect: Effect, table: EffectTable, row: EffectRow | None, why: str) -> Work[EffectInDoubt]:
    """Record that a person is needed, and return the error that says so."""
    assert row is not None, "there is no doubt without an intent"
    if row.state is not EffectState.UNCERTAIN:
        yield from _changed(effect, table, row.calls, EffectState.UNCERTAIN, was=row.state, why=why)
    return EffectInDoubt(table.run.job_id, effect.key, why)


def _changed(effect: Effect, table: EffectTable, calls: int, state: EffectState, **more: Any) -> Work[None]:
    """
    Record what became of a call, with patience.

    Raises:
        OwnershipLost: Its intent is not on record any more: the database was restored.
    """
    if (yield from patiently(lambda: table.change(effect.key, calls, state, **more))):
        return
    raise OwnershipLost(
        f"job {table.run.job_id}: effect {inert(effect.key)} stands otherwise than this run has left it; was the database restored?"
    )
