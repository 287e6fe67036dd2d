"""Judge what people have begun: runs that nobody works on, previews that pile up, failures nobody has looked at, rights that end. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from packhorse.console.doctor.findings import Finding, failed, ok, span, warning

PATIENCE = timedelta(minutes=1)
"""A runner that was killed leaves its lease for 15 s; a running `packhorse console` takes the run up soon after."""
LONG = timedelta(days=1)
"""A run that somebody paused longer ago was perhaps forgotten."""
PREVIEWS = 20
UNFOLDED = 20_000
"""Changes that are not added to the counts: reading them costs each who asks."""
SOON = timedelta(days=7)
SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """
    A redrive or replay that is not over.

    Attributes:
        live: A runner holds its lease.
        idle: Since its lease ran out, or it last changed.
        by, said: Who confirmed it; why it stands.
    """

    kind: str
    id: int
    state: str
    live: bool
    idle: timedelta
    by: str
    said: str | None

    @property
    def name(self) -> str:
        """Return it for people."""
        return f"{self.kind} {self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """
    What gathers where nobody looks.

    Attributes:
        previews, expired: Previews and plans that nobody confirmed, and how many of them can't be confirmed any more.
        unfolded: Changes that are not added to the counts of the quarantine, counted up to a bound.
        unacknowledged: Groups of failures with messages in quarantine that nobody has acknowledged.
        untold: Contacts that handlers name, while the schema of notices is not registered: the log alone tells.
    """

    previews: int
    expired: int
    unfolded: int
    unacknowledged: int
    untold: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiring:
    """Somebody's right that ends; `left` is negative when it has ended."""

    kind: str
    name: str
    left: timedelta


def judge_runs(runs: Sequence[RunState]) -> Iterator[Finding]:
    """Yield what is to be said of redrives and replays that are not over."""
    told = [finding for run in runs if (finding := _run(run)) is not None]
    yield from told or [ok("runs", f"{len(runs)} redrives and replays are open, and all are seen to")]


def _run(run: RunState) -> Finding | None:
    status = f"packhorse {run.kind} status {run.id}"
    if run.state == "running" and not run.live and run.idle > PATIENCE:
        return failed(
            run.name,
            f"it is running, and nobody has worked on it for {span(run.idle)}",
            cause="its runner was killed or cut off; it stands where it was, nothing is done twice",
            next_step=f"packhorse {run.kind} resume {run.id}, on any machine; a running `packhorse console` takes it up by itself",
        )
    if run.state == "halted":
        return warning(
            run.name,
            f"halted for {span(run.idle)}: {run.said or 'no reason on record'}",
            cause="failures came back, so it stopped by itself; its other members were not asked for",
            next_step=f"{status}; then packhorse {run.kind} resume {run.id}, or abort it",
        )
    if run.state == "paused" and run.idle > LONG:
        return warning(
            run.name,
            f"paused for {span(run.idle)}, begun by {run.by}",
            cause="a person paused it; it holds until somebody resumes it",
            next_step=f"{status}; then packhorse {run.kind} resume {run.id}",
        )
    return None


def judge_upkeep(found: Upkeep) -> Iterator[Finding]:
    """Yield what is to be said of what gathers."""
    if found.previews > PREVIEWS:
        yield warning(
            "previews",
            f"{found.previews} previews and plans are there, {found.expired} of them expired",
            cause="each keeps its members in the tables; one that nobody confirms does nothing",
            next_step="packhorse redrive list; packhorse replay list",
        )
    if found.unfolded > UNFOLDED:
        yield warning(
            "counts",
            f"{found.unfolded} changes are not added to the counts of the quarantine",
            cause="who asks for counts gets them without these, and is told so; a running processor or console adds them up, and none has lately",
            next_step="let one of them run; or SELECT fold_quarantine(100000) in the database schema, until it returns 0",
        )
    if found.unacknowledged:
        yield warning(
            "failures",
            f"{found.unacknowledged} groups of failures are in quarantine, and nobody has acknowledged them",
            cause="perhaps nobody has seen them",
            next_step="packhorse quarantine groups; see docs/runbooks/quarantine-grows.md",
        )
    if found.untold:
        yield warning(
            "contacts",
            f"handlers name {found.untold} contacts, and no notice is written for them",
            cause="the schema of notices is not registered in this database; the log alone tells",
            next_step="packhorse schemas register --notices NAMESPACE; see docs/how-to/tell-contacts.md",
        )


def judge_expiring(found: Sequence[Expiring]) -> Iterator[Finding]:
    """Yield what is to be said of rights that end soon, or have ended."""
    if not found:
        return
    each = [
        f"{one.kind} {one.name} " + (f"in {span(one.left)}" if one.left > timedelta(0) else "has ended")
        for one in found
    ]
    more = f"; and {len(each) - SHOWN} more" if len(each) > SHOWN else ""
    yield warning(
        "operators",
        f"rights that end: {'; '.join(each[:SHOWN])}{more}",
        cause="who holds them can neither look nor act then",
        next_step="packhorse operators list; an admin gives them anew, or removes them",
    )
