"""What is declared of a type of jobs beside what any handler declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from packhorse.core.errors import SettingsError, UsageError
from packhorse.core.jobs import PRIORITIES, Priority
from packhorse.processor.declaring import checked_choice, checked_count, checked_timeout
from packhorse.processor.durations import Duration, seconds_of

if TYPE_CHECKING:
    from packhorse.processor.registering import JobOptions

KEPT_AT_LEAST = 60.0
"""Shortest time that anything of an ended job is kept, in seconds: whoever waits for it must find it."""
_AFTER: tuple[Literal["quarantine", "expire"], ...] = ("quarantine", "expire")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """
    What is declared of a type of jobs; durations are in seconds.

    Attributes:
        priorities: Those whose topics are read, the most urgent first.
        quick: Several share a claim and a transaction for their ends, however long one takes.
        lanes: Most of them that run at once in a process; None: as the processor sees fit.
        deadline: How long after it was accepted, or due, a job may take in all; None: no limit.
        after_deadline: What becomes of one that takes longer.
        keep_result, keep: How long results and rows are kept after the end; None: as set.
    """

    priorities: tuple[Priority, ...] = ("normal",)
    quick: bool = False
    lanes: int | None = None
    deadline: float | None = None
    after_deadline: Literal["quarantine", "expire"] = "quarantine"
    keep_result: float | None = None
    keep: float | None = None

    @classmethod
    def declared(cls, options: JobOptions, *, what: str) -> JobSpec:
        """
        Return the checked *options*; *what* names the job.

        Raises:
            UsageError: One is not allowed.
        """
        quick = options.get("quick", False)
        if not isinstance(quick, bool):
            raise UsageError(f"{what}: quick={quick!r} is not allowed: True or False")
        kept, keep = (_kept(options.get(name), name, what) for name in ("keep_result", "keep"))
        if kept is not None and keep is not None and kept > keep:
            raise UsageError(
                f"{what}: keep_result is longer than keep, and the result goes with the job's row"
            )
        return cls(
            priorities=_priorities(options.get("priorities", ("normal",)), what),
            quick=quick,
            lanes=checked_count(options.get("lanes"), what=f"{what}: lanes"),
            deadline=checked_timeout(options.get("deadline"), what=what, name="deadline"),
            after_deadline=checked_choice(
                options.get("after_deadline", "quarantine"), _AFTER, what=f"{what}: after_deadline"
            ),
            keep_result=kept,
            keep=keep,
        )


def _priorities(value: object, what: str) -> tuple[Priority, ...]:
    given = tuple(value) if isinstance(value, list | tuple | set | frozenset) else ()
    if not given or not set(given) <= set(PRIORITIES):
        raise UsageError(
            f"{what}: priorities={value!r} is not allowed: some of {', '.join(map(repr, PRIORITIES))}, as a list"
        )
    return tuple(one for one in PRIORITIES if one in given)


def _kept(value: object, name: str, what: str) -> float | None:
    if value is None:
        return None
    if not isinstance(value, Duration):
        raise UsageError(f"{what}: {name}={value!r} is not allowed: a duration such as '30d'")
    try:
        seconds = seconds_of(value, what=name)
    except SettingsError as error:
        raise UsageError(f"{what}: {error}") from None
    if seconds < KEPT_AT_LEAST:
        raise UsageError(f"{what}: {name}={value!r} is not allowed: {KEPT_AT_LEAST:g} s or more")
    return seconds
