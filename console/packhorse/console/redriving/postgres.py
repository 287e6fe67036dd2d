"""Redrives of sets in the tables: freeze one, confirm it once, look at it, pause, resume and abort it."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Acting, Database, Rows
from packhorse.console.redriving import sql
from packhorse.console.redriving.checks import STALE_DAYS, GroupFacts, checked, expired_by
from packhorse.console.redriving.records import (
    Check,
    Frozen,
    MemberRow,
    Progress,
    RedriveRow,
    RunState,
    Sample,
)
from packhorse.console.redriving.wanted import How, Wanted
from packhorse.core.errors import OwnershipLost, UnknownId, UsageError
from packhorse.core.moments import zulu
from packhorse.core.rights import Right
from packhorse.processor.watching.member_row import ALIVE

FREEZE_TIMEOUT = 120.0
"""Seconds that freezing a set may take: a million members are written in one transaction."""
FORGOTTEN = 200_000
"""Members of old previews that are deleted along with freezing a set, which must not take longer for it."""
_NO_CAP = 2_147_483_647
SAMPLES = 5


class RedriveTables:
    """
    The redrives of one database.

    Raises, each of its methods:
        Forbidden: The person may not look or act.
        DatabaseUnavailable, NotReady: Nothing was done.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def freeze(self, person: Person, wanted: Wanted, how: How, *, now: datetime) -> Frozen:
        """
        Freeze the set that *wanted* means at this moment, in one transaction: ids, attempts, redrives, and the checks.

        Raises:
            UnknownId: Nothing in quarantine fits.
            UsageError: More fit than *how* allows.
        """
        with self._database.acting(
            person, Right.ACT, doing="redrive messages", timeout=FREEZE_TIMEOUT
        ) as act:
            act.count(sql.FORGET_PREVIEWS, {"most": FORGOTTEN})
            redrive_id = act.all(sql.INSERT_REDRIVE, _new(act, wanted, how))[0]["id"]
            cap = _NO_CAP if how.cap is None else how.cap
            values = _filter(wanted) | {"id": redrive_id, "most": how.limit, "cap": cap}
            members = act.count(sql.FREEZE, values)
            _check_size(members, wanted, how)
            checks, waiting = _checks(act, redrive_id, how, now, cap=cap)
            shown = Jsonb([asdict(one) for one in checks])
            act.count(sql.COUNT_MEMBERS, {"id": redrive_id, "members": members, "checks": shown})
            samples = act.all(sql.SAMPLES, {"id": redrive_id, "most": SAMPLES})
            act.record("redrive-preview", why=None, detail={"set": redrive_id, "members": members})
            row = _found(act, redrive_id)
        return Frozen(redrive=row, samples=tuple(Sample(**one) for one in samples), waiting=waiting)

    def confirm(self, person: Person, redrive_id: int, *, why: str) -> datetime:
        """
        Let the set be redriven; return when that was recorded. Of two who confirm one does, the other is told.

        Raises:
            UnknownId: There is no such redrive.
            OwnershipLost: Somebody has confirmed it, or it expired.
        """
        with self._database.acting(person, Right.ACT, doing="redrive messages") as act:
            row = act.first(sql.CONFIRM, {"id": redrive_id, "actor": act.actor, "why": why})
            if row is None:
                raise _not_confirmable(_found(act, redrive_id))
            detail = {"set": redrive_id, "members": row["members"], "wanted": row["wanted"]}
            return act.record("redrive-set", why=why, detail=detail)

    def move(
        self, person: Person, redrive_id: int, *, to: RunState, since: frozenset[RunState], why: str
    ) -> datetime:
        """
        Bring the run from one of *since* to another state; return when that was recorded.

        Raises:
            UnknownId: There is no such redrive.
            OwnershipLost: It is in another state.
        """
        word = {RunState.PAUSED: "pause", RunState.RUNNING: "resume", RunState.ABORTED: "abort"}[to]
        with self._database.acting(person, Right.ACT, doing=f"{word} a redrive") as act:
            said = None if to is RunState.RUNNING else f"{word} by {act.actor}: {why}"
            values = {"id": redrive_id, "state": to.value, "said": said, "from": [one.value for one in since]}
            row = act.first(sql.MOVE, values)
            if row is None:
                now = _found(act, redrive_id)
                raise OwnershipLost(
                    f"redrive {redrive_id} is {now.state} and can't be changed so: {word} takes "
                    f"{' or '.join(sorted(since))}{_who(now)}; see packhorse redrive status {redrive_id}"
                )
            return act.record(f"redrive-{word}", why=why, detail={"set": redrive_id})

    def find(self, person: Person, redrive_id: int) -> tuple[RedriveRow, Progress]:
        """
        Return one redrive and how far it is, in one snapshot.

        Raises:
            UnknownId: There is no such redrive.
        """
        with self._database.reading(person) as rows:
            return _found(rows, redrive_id), progress_of(rows, redrive_id)

    def page(self, person: Person, *, before: int | None, limit: int) -> tuple[RedriveRow, ...]:
        """Return at most *limit* redrives, the newest first, older than *before*."""
        with self._database.reading(person) as rows:
            return tuple(_redrive(row) for row in rows.all(sql.REDRIVES, {"id": before, "most": limit}))

    def members(
        self, person: Person, redrive_id: int, *, state: str | None, after: int, limit: int
    ) -> tuple[MemberRow, ...]:
        """
        Return at most *limit* members behind number *after*, in the order in which they are asked for.

        Raises:
            UnknownId: There is no such redrive.
        """
        values = {"id": redrive_id, "state": state, "after": after, "most": limit}
        with self._database.reading(person) as rows:
            _found(rows, redrive_id)
            return tuple(MemberRow(**row) for row in rows.all(sql.MEMBERS, values))


def progress_of(rows: Rows, redrive_id: int) -> Progress:
    """Return how far a set is: what is asked for is asked the tables that prove it, not only the runner's notes."""
    counts = {row["state"]: row for row in rows.all(sql.PROGRESS, {"id": redrive_id})}

    def of(state: str, what: str = "n") -> int:
        return int(counts[state][what]) if state in counts else 0

    good, bad = of("asked", "good"), of("asked", "bad")
    proved = of("good") + of("bad")
    return Progress(
        waiting=of("waiting"),
        asked=of("asked") - good - bad,
        good=of("good") + good,
        bad=of("bad") + bad,
        moved=of("moved"),
        left=of("left"),
        sent=proved + of("asked", "sent"),
        parked=of("asked", "parked"),
        refused=of("asked", "refused"),
    )


def _new(act: Acting, wanted: Wanted, how: How) -> dict[str, Any]:
    return {
        "wanted": Jsonb(wanted.public()),
        "rate": how.rate,
        "stages": list(how.stages),
        "most_failures": how.most_failures,
        "actor": act.actor,
    }


def _filter(wanted: Wanted) -> dict[str, Any]:
    return {
        "group": wanted.group,
        "topic": wanted.topic,
        "reason": wanted.reason,
        "type": wanted.type,
        "tenant": wanted.tenant,
        "key": None if wanted.key is None else wanted.key.encode(),
        "ids": list(wanted.ids) or None,
        "picked_ids": [one.id for one in wanted.picked] or None,
        "picked_groups": [one.group for one in wanted.picked],
        "picked_topics": [one.topic for one in wanted.picked],
        "since": wanted.since,
        "until": wanted.until,
        "text": None if wanted.text is None else f"%{_literal(wanted.text)}%",
        "failure": wanted.failure,
    }


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _check_size(members: int, wanted: Wanted, how: How) -> None:
    if members > how.limit:
        raise UsageError(
            f"more than {how.limit} messages fit; narrow the set, or take more with --limit (at most 1000000); nothing was frozen"
        )
    if members < len(wanted.picked):
        raise UnknownId(
            f"{len(wanted.picked) - members} of the {len(wanted.picked)} messages that were picked are not in quarantine any more, or "
            "do not fit; look at the list again; nothing was frozen"
        )
    if members == 0:
        raise UnknownId("nothing in quarantine fits; see packhorse quarantine list; nothing was frozen")
    if members < len(wanted.ids) and wanted == Wanted(ids=wanted.ids):
        raise UnknownId(
            f"{len(wanted.ids) - members} of the {len(wanted.ids)} ids given are not in quarantine; see packhorse status ID; "
            "nothing was frozen"
        )


def _checks(
    act: Acting, redrive_id: int, how: How, now: datetime, *, cap: int
) -> tuple[tuple[Check, ...], int]:
    values = {"id": redrive_id, "cap": cap, "stale": STALE_DAYS * 86_400, "alive": ALIVE}
    counted = act.all(sql.CHECKED, values)[0]
    groups = [GroupFacts(**row) for row in act.all(sql.STILL_FAILING, values)]
    expiries = [(row["text"], row["n"]) for row in act.all(sql.EXPIRIES, values)]
    return checked(counted, groups, expired=expired_by(now, expiries), cap=how.cap), counted["waiting"]


def _found(rows: Rows, redrive_id: int) -> RedriveRow:
    row = rows.first(sql.REDRIVE_OF, {"id": redrive_id})
    if row is None:
        raise UnknownId(f"there is no redrive {redrive_id}; see packhorse redrive list")
    return _redrive(row)


def _redrive(row: dict[str, Any]) -> RedriveRow:
    changed = {
        "state": RunState(row["state"]),
        "checks": tuple(Check(**one) for one in row["checks"]),
        "stages": tuple(row["stages"]),
    }
    return RedriveRow(**(row | changed))


def _not_confirmable(now: RedriveRow) -> OwnershipLost:
    if now.state is RunState.PREVIEWED:
        return OwnershipLost(
            f"the preview {now.id} expired at {zulu(now.expires_at)}: what it showed may be so no more; "
            "preview again; nothing was done"
        )
    return OwnershipLost(
        f"redrive {now.id} is {now.state} already{_who(now)}; nothing was done now; see packhorse redrive status {now.id}"
    )


def _who(now: RedriveRow) -> str:
    if now.confirmed_by is None or now.confirmed_at is None:
        return ""
    return f": confirmed by {now.confirmed_by} at {zulu(now.confirmed_at)}"
