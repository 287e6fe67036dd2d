"""What a person should know before a replay runs, and what keeps one from being planned. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from packhorse.console.replaying.ranges import Range
from packhorse.console.replaying.records import Standing
from packhorse.console.replaying.tally import Tally
from packhorse.console.replaying.wanted import Wanted
from packhorse.core.errors import UsageError
from packhorse.core.text import counted, inert


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """
    How the group stands.

    Attributes:
        now: By the database's clock.
        kept_from: Since when its inbox keeps every row; None: it keeps all.
        members: Processors that live.
        handlers: Names of handlers for replays that these know.
        pauses: What people have paused of it: "" for all, a topic, or topic[partition].
        open_runs: Other replays of the group and topic that are not at their end.
    """

    now: datetime
    kept_from: datetime | None
    members: int
    handlers: tuple[str, ...]
    pauses: tuple[str, ...]
    open_runs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing to know: a code for programs, a text for people."""

    code: str
    text: str


def check_handler(wanted: Wanted, group: GroupFacts) -> None:
    """
    Check that a named handler is known to a processor that lives.

    Raises:
        UsageError: It is not; names those that are.
    """
    if wanted.handler is None or wanted.handler in group.handlers:
        return
    known = ", ".join(inert(name, limit=80) for name in group.handlers) or "none"
    raise UsageError(
        f"no running processor of group {wanted.group} has a handler for replays named "
        f"{inert(wanted.handler, limit=80)}; they know: {known}"
    )


def check_allowed(wanted: Wanted, tally: Tally) -> None:
    """
    Check that something would happen, and that nobody overwrites newer state unknowingly.

    Raises:
        UsageError: The filter matches nothing, or keys are done beyond the range and --beyond is missing; says what that means.
    """
    if not tally.matched:
        raise UsageError(
            f"the filter matches none of the {counted(tally.read, 'record')} of the range"
            if wanted.filtered
            else f"the range holds no record ({tally.read} read)"
        )
    if wanted.again and not wanted.beyond and tally.beyond:
        raise UsageError(
            f"{len(tally.beyond)} of {counted(len(tally.keys), 'key has', 'keys have')} messages behind the range that the group has dealt with: done "
            "again, older messages would be applied after newer ones, so old state may overwrite new. Let the range end at "
            "the present (leave --until out), leave keys out by name (--leave-out-key), or add --beyond if the handlers can "
            "take it; nothing was planned"
        )


def checks_of(wanted: Wanted, ranges: Sequence[Range], tally: Tally, group: GroupFacts) -> list[Check]:
    """Return what should be known, what matters most first."""
    found = list(_order(wanted, tally))
    found += _left(wanted, tally)
    found += _waits(tally, group)
    found += _range(wanted, ranges, tally)
    return found


def _order(wanted: Wanted, tally: Tally) -> list[Check]:
    found = []
    if tally.beyond:
        found.append(
            Check(
                code="keys-beyond",
                text=f"{counted(len(tally.beyond), 'key has', 'keys have')} messages behind the range that are done: what is handed over comes after "
                "newer ones, so old state may overwrite new",
            )
        )
    if tally.behind:
        found.append(
            Check(
                code="keys-behind",
                text=f"of {counted(len(tally.behind), 'key')} a later message of the range is done, and an earlier one is not: it comes "
                "after it",
            )
        )
    if wanted.again:
        found.append(
            Check(
                code="again",
                text="messages that are done are done once more, under new ids: every effect happens again, and what the "
                "handlers emit leaves again and is no duplicate downstream",
            )
        )
    if wanted.handler is not None:
        found.append(
            Check(
                code="handler",
                text=f"they go to the handler {inert(wanted.handler, limit=80)} alone, whatever was done before",
            )
        )
    return found


def _left(wanted: Wanted, tally: Tally) -> list[Check]:
    found, standings = _given_up(wanted, tally), tally.standings
    if wanted.handler is not None:
        return found
    if not wanted.again and (older := standings[Standing.OLDER]):
        found.append(
            Check(
                code="older",
                text=f"{older} are older than what the inbox keeps, so nobody knows whether they are done: they are not "
                "repeated (--again does, done or not)",
            )
        )
    if waiting := standings[Standing.OPEN]:
        found.append(
            Check(
                code="open",
                text=f"{waiting} wait in retry, in quarantine or behind their key: they are left to where they are",
            )
        )
    if reused := standings[Standing.REUSED]:
        found.append(
            Check(
                code="reused", text=f"{reused} have an id that is in the inbox for another payload: left out"
            )
        )
    return found


def _given_up(wanted: Wanted, tally: Tally) -> list[Check]:
    """Return what is to be known of messages that people gave up."""
    found, standings = [], tally.standings
    if wanted.again and (discarded := standings[Standing.DISCARDED]):
        found.append(
            Check(
                code="with-discarded",
                text=f"{counted(discarded, 'message')} that a person discarded would be handed over too: what was given up "
                "comes about after all",
            )
            if wanted.with_discarded
            else Check(
                code="discarded",
                text=f"{counted(discarded, 'message')} left out: discarded by a person, so what was given up would come about "
                "(--with-discarded hands over these too)",
            )
        )
    if wanted.again and (edited := standings[Standing.EDITED]):
        found.append(
            Check(
                code="edited",
                text=f"{counted(edited, 'message')} left out: an edited copy was sent in the place of each",
            )
        )
    if (wanted.again or wanted.handler is not None) and (purged := standings[Standing.PURGED]):
        found.append(Check(code="purged", text=f"{counted(purged, 'message')} left out: purged"))
    return found


def _waits(tally: Tally, group: GroupFacts) -> list[Check]:
    found = []
    if not group.members:
        found.append(
            Check(
                code="no-processor", text="no processor of the group runs: what is handed over waits for one"
            )
        )
    for pause in group.pauses:
        what = f"topic {inert(pause, limit=80)}" if pause else "the group"
        found.append(Check(code="paused", text=f"{what} is paused: what is handed over waits"))
    if tally.stuck:
        found.append(
            Check(
                code="stuck",
                text=f"{counted(tally.stuck, 'key waits', 'keys wait')} for a person (paused, or behind a message in quarantine): what is handed over "
                "behind them waits with them",
            )
        )
    if tally.expired:
        found.append(Check(code="expired", text=f"{tally.expired} have expired: no handler starts for them"))
    found += [
        Check(
            code="open-run",
            text=f"replay {run} of this group and topic is open: this one can't run until it ends",
        )
        for run in group.open_runs
    ]
    return found


def _range(wanted: Wanted, ranges: Sequence[Range], tally: Tally) -> list[Check]:
    found = []
    if gone := sum(one.gone for one in ranges):
        found.append(Check(code="gone", text=f"{counted(gone, 'offset')} of the range no longer in the log"))
    if ahead := sum(one.ahead for one in ranges):
        found.append(
            Check(
                code="ahead",
                text=f"{counted(ahead, 'offset')} of the range above the group's watermark: it does that itself, the replay ends there",
            )
        )
    if wanted.filtered and tally.matched == tally.read:
        found.append(Check(code="matches-all", text="the filter matches every record of the range"))
    if not tally.handed:
        found.append(Check(code="nothing", text="nothing would be handed over"))
    return found
