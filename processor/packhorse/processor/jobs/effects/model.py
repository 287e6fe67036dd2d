"""What is known of an outside effect, what the other side can say of it, and how it is named."""

import hashlib
import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, Final
from uuid import UUID, uuid5

from packhorse.core.errors import PackhorseError, UsageError
from packhorse.core.text import inert
from packhorse.processor.durations import Duration, seconds_of
from packhorse.processor.jobs.naming import checked_name

TIMEOUT: Final[Duration] = "30s"
"""How long a call may take unless it is declared otherwise."""
START_WITHIN: Final = 5.0
"""
Seconds from the record of the intent in which the call must begin, or it is not made: a process that was frozen in between does
not come late. A "no" of the other side is believed that much after the call's own time-out.
"""


class EffectState(StrEnum):
    """How an effect stands."""

    INTENDED = "intended"
    """The call was about to be made; nothing is known of it."""
    ANSWERED = "answered"
    """It was made, and its answer is on record."""
    HAPPENED = "happened"
    """The other side, or a person, says that it happened."""
    DID_NOT_HAPPEN = "did-not-happen"
    """The other side, or a person, says that it did not; or the call was refused."""
    UNCERTAIN = "uncertain"
    """Nobody can say but a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRow:
    """
    An effect as the database has it.

    Attributes:
        idempotency_key: What the outside system was given.
        digest: Of the arguments.
        calls: How many calls were intended, the last one included.
        age: Seconds since the last intent, by the database's clock.
        timeout: Seconds that the call of the last intent may take.
        answer: What was answered, None where nothing was.
    """

    state: EffectState
    idempotency_key: str
    digest: str
    calls: int
    age: float
    timeout: float
    answer: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """
    An effect that a job wants.

    Attributes:
        key: Its name within the job.
        idempotency_key: What the outside system is given.
        digest: Of the arguments.
        timeout: Seconds that the call may take.
        verifiable: Whether the other side can be asked.
    """

    key: str
    idempotency_key: str
    digest: str
    timeout: float
    verifiable: bool


@dataclass(frozen=True, slots=True)
class Happened:
    """
    Return it from `verify`: the effect has happened.

    Attributes:
        answer: What the call would have returned, as far as the other side can tell.
    """

    answer: Any = None


class Unknown(Enum):
    """What `verify` can return beside `Happened`."""

    DID_NOT_HAPPEN = "did not happen"
    """The other side knows nothing of it; believed once the call's own time-out has passed."""
    CANT_TELL = "can't tell"
    """The other side can't say."""


DID_NOT_HAPPEN: Final = Unknown.DID_NOT_HAPPEN
CANT_TELL: Final = Unknown.CANT_TELL
Verdict = Happened | Unknown


class EffectInDoubt(PackhorseError):
    """
    Nobody but a person can say whether an effect has happened; the job stops as `uncertain`.

    Attributes:
        job_id: The job.
        key: The effect's name.
    """

    def __init__(self, job_id: UUID, key: str, why: str) -> None:
        super().__init__(
            f"job {job_id}: effect {inert(key)} may or may not have happened: {why}; ask the other side, then run "
            f"`packhorse job resolve {job_id} --happened --why …`, or with --did-not-happen"
        )
        self.job_id = job_id
        self.key = key
        self._why = why

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it be pickled and copied, which calls the class with its arguments."""
        return type(self), (self.job_id, self.key, self._why), self.__dict__ or None


class EffectConflict(UsageError):
    """A job wants an effect under a key that stands for other arguments; nothing was called."""


def effect_of(
    job_id: UUID, key: str, *, arguments: object = None, timeout: Duration = TIMEOUT, verifiable: bool = False
) -> Effect:
    """
    Return the effect that a job wants.

    Raises:
        UsageError: *key* is no name, or *arguments* are nothing that JSON can carry.
        SettingsError: *timeout* is no duration, or zero.
    """
    name = checked_name(key, what="effect")
    seconds = seconds_of(timeout, what="effect(timeout=…)")
    if seconds <= 0:
        raise UsageError(f"effect {inert(name)}: timeout={timeout!r} is not allowed: above 0 s")
    return Effect(
        key=name,
        idempotency_key=idempotency_key(job_id, name),
        digest=digest_of(job_id, name, arguments),
        timeout=seconds,
        verifiable=verifiable,
    )


def idempotency_key(job_id: UUID, key: str) -> str:
    """
    Return what the outside system is given: 36 characters in the form of a UUID, which systems that want one take too.

    It depends on job and key alone, so it is the same in every attempt, after each redrive and after a restore.

    >>> idempotency_key(UUID(int=1), "charge")
    '5e48b0c6-07c5-5c9c-9dc9-c77e592c4037'
    """
    return str(uuid5(job_id, key))


def digest_of(job_id: UUID, key: str, arguments: object) -> str:
    """
    Return the digest of *arguments*; dates, UUIDs and decimals count as their text, and the order of a dict's keys does not.

    Raises:
        UsageError: JSON can't carry them; nothing of them is in the text.
    """
    try:
        text = json.dumps(arguments, sort_keys=True, allow_nan=False, default=_text_of)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"effect {inert(key)}: its arguments are nothing that JSON can carry ({type(error).__name__}); give numbers, texts, "
            "dates, UUIDs, decimals, and lists and dicts of those"
        ) from None
    return hashlib.sha256(f"{job_id}\n{key}\n{text}".encode()).hexdigest()


def _text_of(value: object) -> str:
    if isinstance(value, date | UUID | Decimal):
        return str(value)
    raise TypeError(type(value).__name__)
