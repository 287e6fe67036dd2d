"""What a check of `packhorse doctor` says: a verdict, what was found, why that matters, and what to do next."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from packhorse.core.redaction import without_secrets


class Verdict(StrEnum):
    """How a check ended; only `failed` makes the command fail."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    The result of one check.

    Attributes:
        check: Name of the check; stable, for programs.
        found: What is so.
        cause: Why it is so, or what it leads to; None when all is well.
        next_step: What to do, a command where there is one; None when all is well.
    """

    check: str
    verdict: Verdict
    found: str
    cause: str | None = None
    next_step: str | None = None

    def without(self, secrets: Iterable[str]) -> "Finding":
        """Return the finding with each of *secrets* blanked out, wherever a driver has quoted it."""
        known = list(secrets)
        return replace(
            self,
            found=without_secrets(self.found, known),
            cause=self.cause and without_secrets(self.cause, known),
            next_step=self.next_step and without_secrets(self.next_step, known),
        )


def ok(check: str, found: str) -> Finding:
    """Return that all is well."""
    return Finding(check=check, verdict=Verdict.OK, found=found)


def warning(check: str, found: str, *, cause: str, next_step: str) -> Finding:
    """Return something that a person should know and that breaks no promise yet."""
    return Finding(check=check, verdict=Verdict.WARNING, found=found, cause=cause, next_step=next_step)


def failed(check: str, found: str, *, cause: str, next_step: str) -> Finding:
    """Return something that is broken."""
    return Finding(check=check, verdict=Verdict.FAILED, found=found, cause=cause, next_step=next_step)


def skipped(check: str, found: str, *, next_step: str | None = None) -> Finding:
    """Return why a check was not made."""
    return Finding(check=check, verdict=Verdict.SKIPPED, found=found, next_step=next_step)


def all_well(findings: Iterable[Finding]) -> bool:
    """Say whether no check failed."""
    return all(finding.verdict is not Verdict.FAILED for finding in findings)


def span(duration: timedelta | None) -> str:
    """Return *duration* in the largest unit of which there are two."""
    if duration is None:
        return "unknown"
    seconds = int(duration.total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{max(seconds, 0)} s"
