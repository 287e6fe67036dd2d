"""What follows for an effect from what is known of it; no I/O."""

from dataclasses import dataclass
from typing import Any

from packhorse.core.text import inert
from packhorse.processor.jobs.effects.model import (
    START_WITHIN,
    Effect,
    EffectConflict,
    EffectRow,
    EffectState,
    Happened,
    Unknown,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Intend:
    """Record the intent of call number *calls*, then make it; what was known before is *why*."""

    calls: int
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Give:
    """Give what is on record; call nothing."""

    answer: Any


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the other side."""


@dataclass(frozen=True, slots=True)
class Settle:
    """Record that it has happened, and give that answer."""

    answer: Any


@dataclass(frozen=True, slots=True)
class PutOff:
    """Come again when the seconds have passed: before, the other side's word counts for nothing."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Doubt:
    """Stop for a person."""

    why: str


Decision = Intend | Give | Ask | Settle | PutOff | Doubt


def decide(row: EffectRow | None, effect: Effect, verdict: Verdict | None = None) -> Decision:
    """
    Return what follows for *effect* from what is on record, and what the other side has said when it was asked after that.

    An intent without an answer is never called again but after a "no" that counts: one that was asked for when the call's own
    time-out, and the time in which it had to begin, had passed since the intent.

    Raises:
        EffectConflict: The key stands for other arguments.
    """
    if row is None:
        return Intend(1)
    if row.digest != effect.digest:
        raise EffectConflict(
            f"effect {inert(effect.key)} is on record for other arguments (digest {row.digest[:12]}, now {effect.digest[:12]}); "
            "give another effect another key, and one that changes between attempts the arguments of the first"
        )
    match row.state:
        case EffectState.ANSWERED | EffectState.HAPPENED:
            return Give(row.answer)
        case EffectState.DID_NOT_HAPPEN:
            return Intend(row.calls + 1, "it did not happen")
        case EffectState.INTENDED | EffectState.UNCERTAIN:
            return _unanswered(row, effect, verdict)


def _unanswered(row: EffectRow, effect: Effect, verdict: Verdict | None) -> Decision:
    if isinstance(verdict, Happened):
        return Settle(verdict.answer)
    if not effect.verifiable:
        return Doubt("its call was not answered, and it has no verify")
    if verdict is None:
        return Ask()
    if (left := counts_in(row)) > 0:
        return PutOff(left)
    if verdict is Unknown.DID_NOT_HAPPEN:
        return Intend(row.calls + 1, "verify says that it did not happen")
    return Doubt("its call was not answered, and verify can't tell")


def counts_in(row: EffectRow) -> float:
    """
    Return the seconds until a "no" of the other side counts.

    Until then the call may still be on its way.
    """
    return row.timeout + START_WITHIN - row.age
