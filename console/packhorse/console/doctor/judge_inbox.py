"""Judge what the inbox's retention left behind: when it ran last, and whether days are made ahead. Pure: no I/O, no clock."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from packhorse.console.doctor.findings import Finding, ok, warning

RARE = timedelta(days=1)
RUN = "packhorse processor retention run"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxState:
    """
    How the inbox stands.

    Attributes:
        age: Since its last turn was over; None: none ever was.
        groups: Groups that work in this database.
        processed: A processor of any of them was seen lately.
        days_ahead: Days after today that have a partition.
        stays: Old days that stay for rows that wait.
    """

    age: timedelta | None
    groups: int
    processed: bool
    days_ahead: int
    stays: int


def judge_inbox(found: InboxState) -> Iterator[Finding]:
    """Yield what is to be said."""
    if not found.groups:
        return
    if found.processed and found.age is not None and found.age > RARE:
        yield warning(
            "inbox",
            f"its retention ran last {found.age.days} d ago, and a processor runs",
            cause="it fails each time; the processor's log says why. The inbox grows until then",
            next_step=f"{RUN}; see docs/how-to/retention.md",
        )
    elif found.age is not None and not found.days_ahead:
        yield warning(
            "inbox",
            "no day after today has a partition; rows go into the default one, which is cleaned by rows",
            cause="processors were away, or held their locks at each try",
            next_step=f"{RUN}; see docs/how-to/retention.md",
        )
    elif found.age is None:
        yield ok("inbox", "its retention has not run yet; a running processor begins with it by itself")
    else:
        stays = f"; {found.stays} old days stay for rows that wait" if found.stays else ""
        yield ok("inbox", f"{found.days_ahead} days are made ahead{stays}")
