"""How a delivery can end, why one stops, and what a handler raises to say so."""

import re
from enum import StrEnum
from typing import Any

from packhorse.core.errors import PackhorseError, UsageError

REASON_MAX = 64
"""Longest reason code, in characters."""
_CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Outcome(StrEnum):
    """What an inbox row says that its group has done with a message."""

    DONE = "done"
    SKIPPED = "skipped"
    RETRY = "retry"
    PARKED = "parked"
    QUARANTINE = "quarantine"
    UNCERTAIN = "uncertain"
    DISCARDED = "discarded"


class Reason(StrEnum):
    """Every reason code of our own; a handler's `Quarantine` may bring others."""

    FAILED = "failed"
    """The handler raised an error that may pass; on failed attempts only."""
    CONTENTION = "contention"
    """Alone in its batch the message kept losing to other transactions."""
    CONNECTION_LOST = "connection-lost"
    """Its runs ended the connection, or left it idle for too long, again and again while the database was well."""
    TIMEOUT = "timeout"
    """A run outlasted the handler's time-out; its query was cancelled."""
    CRASHED = "crashed"
    """The process died during each of its runs."""
    DOWN = "down"
    """The handler names errors of this class as the system behind it being down; never charged."""
    LATER = "later"
    """The handler put the message off."""
    ID_REUSED = "id-reused"
    """Its id is in the inbox already, for another payload."""
    BROKEN_TRANSACTION = "broken-transaction"
    """The handler ended the transaction that it was given."""
    ATTEMPTS_EXHAUSTED = "attempts-exhausted"
    BUDGET_EXHAUSTED = "budget-exhausted"
    PERMANENT = "permanent"
    """The handler declares errors of this class as permanent."""
    REFUSED = "refused"
    """A database or server refuses the message's values, whatever anybody else does meanwhile."""
    UNDECODABLE = "undecodable"
    UNKNOWN_SCHEMA = "unknown-schema"
    UNKNOWN_TYPE = "unknown-type"
    UNKNOWN_HANDLER = "unknown-handler"
    """A replay brings it to a handler by name, and there is none of that name for its type."""
    NO_TOMBSTONE_HANDLER = "no-tombstone-handler"
    CANCELLED = "cancelled"
    """Somebody has cancelled the job: the outcome is skipped."""
    UNCERTAIN = "uncertain"
    """An outside effect of the job may or may not have happened; a person must say which."""
    DEADLINE = "deadline"
    """The job was not done within the time that its type declares."""
    BAD_RESULT = "bad-result"
    """What the job's function returned is no JSON, or too large to be kept."""
    NO_JOB = "no-job"
    """The database of the group knows no job of the message's id."""
    JOB_OVER = "job-over"
    """The job has ended before: the outcome is skipped."""
    OTHER_GROUP = "other-group"
    """Another group has the workers of the job: the outcome is skipped."""
    EXPIRED = "expired"
    """Its `expires-at` has passed: the outcome is skipped."""


class Skip(PackhorseError):
    """
    Raise it in a handler to end a message without effect: outcome `skipped`, what the handler wrote is rolled back.

    The text is kept with the inbox row, so it must hold no payload.
    """


class Quarantine(PackhorseError):
    """
    Raise it in a handler to send the message to quarantine at once.

    Attributes:
        reason: Reason code that quarantine, headers and metrics carry: lower case, digits, hyphens.

    Raises:
        UsageError: *reason* is no reason code.
    """

    def __init__(self, reason: str, text: str = "") -> None:
        if not _CODE.fullmatch(reason) or len(reason) > REASON_MAX:
            raise UsageError(
                f"reason {reason!r} is no reason code: 1 to {REASON_MAX} of a-z 0-9 and single hyphens between them"
            )
        super().__init__(text)
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it be pickled and copied, which calls the class with its arguments: its args are the text alone."""
        return type(self), (self.reason, *self.args), self.__dict__ or None


class TransactionRefused(UsageError):
    """A handler tried to end, close or leave the transaction that its inbox row is in; nothing of it was done."""


class SwallowedError(PackhorseError):
    """A handler went on after an error of the database, which had ended its transaction's work."""
