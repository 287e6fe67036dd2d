"""Judge jobs that wait for a person or for nobody, and whether those that are over go. Pure: no I/O, no clock."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from packhorse.console.doctor.findings import Finding, failed, ok, span, warning
from packhorse.core.text import counted

RARE = timedelta(days=1)
SHOWN = 3
RECONCILE = "packhorse reconcile; see docs/how-to/reconcile-jobs.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsState:
    """
    How the jobs of this database stand; what is counted is counted up to a bound.

    Attributes:
        there: There are jobs.
        uncertain, uncertain_age: Jobs that wait for a person to say what happened, and since when the oldest does.
        overdue, overdue_age: Jobs whose time has come for more than a minute, and whose message nobody has sent.
        leaseless, leaseless_age: Jobs that run under a lease that is over for more than a minute.
        undeclared: Types of jobs that wait, which no processor has ever declared here.
        kept_age: Since a turn of their retention was over; None: none ever was.
        processed: A processor was seen lately.
    """

    there: bool
    uncertain: int
    uncertain_age: timedelta | None
    overdue: int
    overdue_age: timedelta | None
    leaseless: int
    leaseless_age: timedelta | None
    undeclared: tuple[str, ...]
    kept_age: timedelta | None
    processed: bool


def judge_jobs(found: JobsState) -> Iterator[Finding]:
    """Yield what is to be said; nothing where there are no jobs."""
    if not found.there:
        return
    told = list(_waiting(found))
    yield from told or [ok("jobs", "none waits for a person, none is left by its worker, none is late")]
    if found.processed and found.kept_age is not None and found.kept_age > RARE:
        yield warning(
            "job retention",
            f"it ran last {span(found.kept_age)} ago, and a processor runs",
            cause="it fails each time; the processor's log says why. The tables of jobs grow until then",
            next_step="packhorse job retention run; see docs/how-to/retention.md",
        )


def _waiting(found: JobsState) -> Iterator[Finding]:
    if found.uncertain:
        yield warning(
            "uncertain jobs",
            f"{counted(found.uncertain, 'job')} uncertain, the oldest for {span(found.uncertain_age)}",
            cause="an outside effect may or may not have happened, and nobody but a person can find out",
            next_step="packhorse job list --state uncertain; packhorse job resolve ID --happened | --did-not-happen",
        )
    if found.leaseless:
        yield failed(
            "left jobs",
            f"{counted(found.leaseless, 'job')} running without a lease, the oldest for {span(found.leaseless_age)}",
            cause="their worker is gone or frozen, and nobody has taken them over: no process of the group has their partition",
            next_step=f"start a processor of the group; {RECONCILE}",
        )
    if found.overdue:
        yield failed(
            "late jobs",
            f"{counted(found.overdue, 'job')} not sent though their time has come, the oldest {span(found.overdue_age)} ago",
            cause="processors that handle their type send them, and none runs on this database",
            next_step=f"start a processor that handles the type; {RECONCILE}",
        )
    if found.undeclared:
        named = ", ".join(found.undeclared[:SHOWN])
        more = f" and {len(found.undeclared) - SHOWN} more" if len(found.undeclared) > SHOWN else ""
        yield warning(
            "unhandled jobs",
            f"jobs of the type {named}{more} wait, and no processor has declared it here",
            cause="no processor with @app.job for it has run on this database yet; they wait until one does",
            next_step="start that processor; or packhorse job cancel ID",
        )
