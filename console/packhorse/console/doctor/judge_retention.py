"""Judge what retention left behind: when it ran last, and which partitions it had to keep. Pure: no I/O, no clock."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from packhorse.console.doctor.findings import Finding, failed, ok, warning

RARE = timedelta(days=1)
SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """
    What the table retention says.

    Attributes:
        age: Since the last run was over; None: none ever was.
        owned: A relay runs, which runs retention too.
        keep_days: Days that are kept beside today; None: all.
        overdue: What each partition that stays past its time stays for.
    """

    age: timedelta | None
    owned: bool
    keep_days: int | None
    overdue: tuple[str, ...]


def judge_retention(found: Retention | None) -> Iterator[Finding]:
    """Yield what is to be said; None when the table has no row."""
    if found is None:
        yield failed(
            "retention",
            "the table retention has lost its row",
            cause="somebody deleted it; what retention finds overdue can't be written down",
            next_step="INSERT INTO packhorse.retention DEFAULT VALUES",
        )
    elif found.overdue:
        more = len(found.overdue) - SHOWN
        also = f"; and {more} more" if more > 0 else ""
        yield failed(
            "retention",
            f"{len(found.overdue)} overdue: {'; '.join(found.overdue[:SHOWN])}{also}",
            cause="a partition is never removed with a row that is not published; the outbox grows until then",
            next_step="packhorse retention status; see docs/runbooks/outbox-grows.md",
        )
    elif found.owned and found.age is not None and found.age > RARE:
        yield warning(
            "retention",
            f"it ran last {found.age.days} d ago, and a relay runs",
            cause="the relay may not run it, or it fails each time; its log says why",
            next_step="packhorse retention run",
        )
    elif found.age is None:
        yield ok("retention", "it has not run yet; a running relay begins with it by itself")
    else:
        kept = "all days are kept" if found.keep_days is None else f"{found.keep_days} days are kept"
        yield ok("retention", f"nothing is overdue; {kept}")
