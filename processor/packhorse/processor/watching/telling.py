"""What a group's members say of themselves, and what waits in its tables, for `packhorse processor status`."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from packhorse.processor.pausing.pauses import PausedKey, Pauses
from packhorse.processor.pausing.table import PauseTable
from packhorse.processor.storing import postgres
from packhorse.processor.storing.store import Store
from packhorse.processor.watching.member_row import (
    ALIVE,
    MemberRow,
    MemberTable,
    ParkedRow,
    QuarantineRow,
    TierRow,
)

PHASES_OF_INTEREST = frozenset({"away", "refused", "opening", "draining"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """What only the database knows of a group."""

    members: list[MemberRow]
    tiers: list[TierRow]
    parked: list[ParkedRow]
    quarantine: list[QuarantineRow]
    pauses: Pauses
    paused_keys: list[PausedKey]

    @property
    def known(self) -> bool:
        """Return whether there is anything of the group."""
        return bool(self.members or self.tiers or self.parked or self.quarantine or self.pauses.rows)

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON; ages and times to come are seconds."""
        return {
            "processes": [
                {
                    **row._asdict(),
                    "member": str(row.member),
                    "started_at": row.started_at.isoformat(),
                    "alive": row.alive,
                }
                for row in self.members
            ],
            "tiers": [row._asdict() for row in self.tiers],
            "parked_keys": [row._asdict() for row in self.parked],
            "quarantine": [row._asdict() for row in self.quarantine],
            "pauses": [{**row._asdict(), "at": row.at.isoformat()} for row in self.pauses.rows],
            "paused_keys": [{**row._asdict(), "at": row.at.isoformat()} for row in self.paused_keys],
        }


def read_inside(connection: postgres.GuardedConnection, store: Store) -> Inside:
    """
    Ask the database.

    Raises:
        DatabaseUnavailable, NotReady: It does not answer, or a table is missing.
    """
    members, pauses = MemberTable(schema=store.schema, group=store.group), PauseTable(store=store)
    return Inside(
        members=postgres.run(connection, members.members()),
        tiers=postgres.run(connection, members.tiers()),
        parked=postgres.run(connection, members.parked()),
        quarantine=postgres.run(connection, members.quarantine()),
        pauses=postgres.run(connection, pauses.pauses()),
        paused_keys=postgres.run(connection, pauses.paused_keys()),
    )


def inside_lines(inside: Inside, *, joined: int) -> Iterator[str]:
    """Yield it for people, worst first; *joined* is how many members the coordinator counts."""
    for row in inside.pauses.rows:
        yield f"  PAUSED  {row.told}  since {row.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
    for key in inside.paused_keys:
        yield f"  PAUSED  {key.told}"
    for tier in inside.tiers:
        due = (
            f"next due in {tier.due_in:.0f} s"
            if tier.due_in >= 0
            else f"next overdue by {-tier.due_in:.0f} s"
        )
        unsent = f", {tier.unsent} whose copy is not confirmed" if tier.unsent else ""
        yield f"  {tier.topic}  tier {tier.tier}: {tier.messages}, {due}{unsent}"
    for parked in inside.parked:
        yield (
            f"  {parked.topic}  parked keys: {parked.keys}, the oldest for {parked.oldest:.0f} s, "
            f"{parked.followers} messages behind them"
        )
    for stopped in inside.quarantine:
        yield (
            f"  {stopped.topic}  quarantine, {stopped.reason or 'no reason'}: {stopped.messages}, "
            f"the oldest for {stopped.oldest:.0f} s"
        )
    for member in inside.members:
        yield from _member_lines(member)
    alive = sum(1 for member in inside.members if member.alive)
    if alive != joined:
        yield (
            f"  not known: the coordinator counts {joined} members, and {alive} have written down how they are within "
            f"{ALIVE:g} s; the others are starting or leaving, have no database, or are no Packhorse"
        )


def _member_lines(member: MemberRow) -> Iterator[str]:
    status = member.status
    name = f"process {member.pid} on {member.host}"
    if not member.alive:
        yield f"  {name}: not seen for {member.seen:.0f} s, since then nothing is known of it"
        return
    mine: list[dict[str, Any]] = status.get("partitions", [])
    work = sum(one["pending"] for one in mine)
    flight = sum(one["in_flight"] for one in mine)
    size = sum(one["bytes"] for one in mine)
    yield (
        f"  {name}, started {member.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z: {len(mine) + status.get('partitions_not_shown', 0)} partitions, "
        f"{work} messages read and not dealt with ({size} bytes), {flight} chunks in flight"
    )
    for text in status.get("wrong", []):
        yield f"    WRONG  {text}"
    for one in mine:
        if one["phase"] in PHASES_OF_INTEREST or one["trouble"]:
            yield f"    {one['topic']}[{one['partition']}]  {one['phase']}  {one['trouble'] or ''}".rstrip()
    for stall in status.get("stalls", []):
        at = "" if stall["offset"] is None else f" at offset {stall['offset']}"
        yield (
            f"    DOES NOT MOVE  {stall['topic']}[{stall['partition']}]{at} for {stall['seconds']} s, {stall['cause']}: "
            f"{stall['text']}"
        )
        for line in stall["stack"]:
            yield f"      {line}"
