"""What people see of holds, what comes next for each, and what speaks against an order. Pure: no I/O, no clock."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from packhorse.core.errors import OwnershipLost, UnknownId, UsageError
from packhorse.relay.holds import Hold, Scope, Screen

SCANNED = 100_000
"""Outbox rows that are looked through for one count of what waits."""
SHOWN = 5
"""Rows of a hold that are named, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldView:
    """
    One hold as the table has it.

    Attributes:
        hold: What the relay knows of it.
        state: held, releasing or ended.
        asked_at: When a person ordered the release that nobody has begun; None: nobody did.
        owned: A relay owns the shard.
    """

    id: int
    shard: int
    hold: Hold
    state: str
    asked_at: datetime | None
    made_at: datetime
    changed_at: datetime
    ended_at: datetime | None
    owned: bool

    @property
    def scope(self) -> Scope:
        """Return what is held."""
        return self.hold.scope

    @property
    def waits_for_a_person(self) -> bool:
        """Tell whether nothing happens until somebody gives an order."""
        return self.state == "held" and not self.hold.asked and not self.hold.fault.heals

    @property
    def standing(self) -> str:
        """Return how it stands in a word or two."""
        if self.state == "held" and self.hold.asked:
            return "release ordered"
        return self.state

    @property
    def next(self) -> str:
        """Return what happens next, or what a person has to do."""
        if self.state == "ended":
            return "nothing: its rows are published, new ones flow"
        if not self.owned:
            return "no relay owns the shard; `packhorse relay run` goes on from here"
        if self.state == "releasing":
            return f"its rows leave in order, {self.hold.sent:,} so far; it ends where it meets the relay"
        if self.hold.asked:
            return "the relay's owner begins the release within seconds"
        if self.hold.fault.heals:
            return "the relay looks by itself, at least twice a minute, and releases it; `hold release` makes it try at once"
        return self._order()

    def _order(self) -> str:
        release = f"mend the reason, then `packhorse relay hold release {self.id}`"
        row = self.hold.fault.id
        if row is None:
            return release
        return (
            f"{release}; or give up that row: `packhorse relay hold discard {self.id} --row {row} --why TEXT`"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it for programs; never the key."""
        hold, fault = self.hold, self.hold.fault
        return {
            "id": self.id, "shard": self.shard, "scope": self.scope.kind.name.lower(), "aggregatetype": self.scope.aggregatetype,
            "partition": self.scope.partition, "message_id": fault.id, "seq": fault.seq, "code": fault.code, "reason": fault.reason,
            "heals": fault.heals, "state": self.state, "release_ordered_at": iso(self.asked_at), "tries": hold.tries,
            "sent": hold.sent, "rate": hold.rate, "until": hold.until, "since": iso(self.made_at),
            "changed_at": iso(self.changed_at), "ended_at": iso(self.ended_at),
            "waits_for_a_person": self.waits_for_a_person, "next": self.next,
        }  # fmt: skip

    def lines(self) -> list[tuple[str, str]]:
        """Return it for people: pairs of a name and a text."""
        hold, fault = self.hold, self.hold.fault
        row = "none" if fault.id is None else f"{fault.id}, seq {fault.seq}"
        found = [
            ("hold", f"{self.id}, shard {self.shard}"),
            ("scope", f"{self.scope}{'' if hold.until is None else f', again up to seq {hold.until}'}"),
            ("row", row),
            ("reason", f"{fault.code}: {fault.reason}"),
            ("since", at(self.made_at)),
            (
                "tries",
                f"{hold.tries} failed; {hold.sent:,} rows published by its releases when it was last saved",
            ),
            ("state", self.standing + ("" if self.ended_at is None else f" {at(self.ended_at)}")),
            ("next", self.next),
        ]
        if hold.rate is not None:
            found.insert(-1, ("rate", f"{hold.rate:,} rows a second"))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """
    Rows that wait in a hold.

    Attributes:
        rows: So many were counted.
        oldest: When the oldest of them was written.
        first: id and seq of the first of them, at most SHOWN.
        whole: All were looked at; False: the look ended after `most` rows of the outbox.
    """

    rows: int
    oldest: datetime | None
    first: tuple[tuple[str, int], ...] = ()
    whole: bool
    most: int = SCANNED

    def __str__(self) -> str:
        """Return what people read."""
        oldest = "" if self.oldest is None else f", the oldest of {at(self.oldest)}"
        more = (
            ""
            if self.whole
            else f" among the first {self.most:,} rows of the outbox behind it; there may be more"
        )
        return f"{self.rows:,} rows{oldest}{more}"

    def as_dict(self) -> dict[str, Any]:
        """Return it for programs."""
        first = [{"message_id": id_, "seq": seq} for id_, seq in self.first]
        return {"rows": self.rows, "oldest": iso(self.oldest), "first": first, "whole": self.whole}

    def lines(self) -> list[tuple[str, str]]:
        """Return it for people: how many, and the first of them."""
        return [("waiting", str(self)), *(("", f"{id_}, seq {seq}") for id_, seq in self.first)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """
    A row that somebody wants to give up.

    Attributes:
        passed: The relay's saved position is behind it: it was left out for certain.
        waits: The hold's position is not behind it.
        discarded: Somebody gave it up before.
    """

    id: str
    seq: int
    aggregatetype: str
    aggregateid: str | None
    type: str
    created_at: datetime | None
    passed: bool
    waits: bool
    discarded: bool


def waiting_of(
    view: HoldView, screen: Screen, groups: Iterable[tuple[str | None, str | None, int, datetime | None]],
    first: Iterable[tuple[str, int, str | None]] = (), *, scanned: int, most: int = SCANNED,
) -> Waiting:  # fmt: skip
    """
    Return what waits in *view* and in no narrower hold, after *scanned* rows of the outbox were looked through, *most* at most.

    *groups* are key, id of a row without key, count, and time of the oldest; *first* are id, seq and key of the first rows.
    """
    scope = view.scope

    def holds(key: str | None, id_: str | None) -> bool:
        return screen.holder((0, scope.aggregatetype, key, None, 0, id_)) == scope

    own = [(count, oldest) for key, id_, count, oldest in groups if holds(key, id_)]
    named = [(id_, seq) for id_, seq, key in first if holds(key, id_)]
    return Waiting(
        rows=sum(count for count, _ in own), oldest=min((oldest for _, oldest in own if oldest is not None), default=None),
        first=tuple(named[:SHOWN]), whole=scanned < most, most=most,
    )  # fmt: skip


def unreleasable(view: HoldView, last: str | None) -> Exception | None:
    """Return why no release can be ordered now; *last* says who acted on it before."""
    who = "" if last is None else f": {last}"
    if view.state == "ended":
        return OwnershipLost(f"hold {view.id} has ended already{who}; its rows are published")
    if view.state == "releasing":
        return OwnershipLost(f"hold {view.id} is on its way already{who}; {view.hold.sent:,} rows so far")
    if view.hold.asked:
        return OwnershipLost(f"the release of hold {view.id} is ordered already{who}; nothing was done now")
    return None


def undiscardable(view: HoldView, screen: Screen, row_id: str, rows: Sequence[OutboxRow]) -> Exception | None:
    """Return why *row_id* can't be given up from *view*; *rows* are those of the outbox that have this id."""
    if not rows:
        return UsageError(
            f"no committed outbox row has the id {row_id}; see `packhorse relay hold show {view.id}`, or retention has emptied its day"
        )
    if len(rows) > 1:
        numbers = ", ".join(str(row.seq) for row in rows)
        return UsageError(
            f"{len(rows)} outbox rows have the id {row_id} (seq {numbers}): a discard names one row, and nothing was done"
        )
    (row,) = rows
    return _undiscardable(view, screen, row)


def _undiscardable(view: HoldView, screen: Screen, row: OutboxRow) -> Exception | None:
    holder = screen.holder((row.seq, row.aggregatetype, row.aggregateid, None, 0, row.id))
    if not view.scope.covers((row.seq, row.aggregatetype, row.aggregateid, None, 0, row.id)):
        return UsageError(f"row {row.id} does not wait in hold {view.id} ({view.scope}); nothing was done")
    if holder != view.scope:
        return UsageError(
            f"row {row.id} waits in a narrower hold ({holder}); `packhorse relay holds` lists it, discard the row from there"
        )
    if row.discarded:
        return OwnershipLost(f"row {row.id} is discarded already; nothing was done now")
    if not row.waits:
        return OwnershipLost(
            f"row {row.id} (seq {row.seq}) is published by hold {view.id} already; nothing was done"
        )
    if not row.passed:
        return UsageError(
            f"row {row.id} (seq {row.seq}): the relay has not come so far yet; try again when `packhorse relay status` shows less waiting"
        )
    return None


def chosen(views: Sequence[HoldView], ids: Sequence[int]) -> list[HoldView]:
    """
    Return the holds of *ids*, in that order, each once.

    Raises:
        UnknownId: One is not there.
    """
    known = {view.id: view for view in views}
    if unknown := [str(id_) for id_ in ids if id_ not in known]:
        raise UnknownId(f"there is no hold {', '.join(unknown)}; `packhorse relay holds --all` lists them")
    return [known[id_] for id_ in dict.fromkeys(ids)]


def at(moment: datetime | None) -> str:
    """Return *moment* for people; None is a time that is no time, as `infinity`."""
    return "an unknown time" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}Z"


def iso(moment: datetime | None) -> str | None:
    """Return *moment* for programs."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
