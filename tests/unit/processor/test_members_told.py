"""How a group's members are told to people."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

from packhorse.processor.pausing.pauses import Pauses
from packhorse.processor.watching.member_row import MemberRow
from packhorse.processor.watching.telling import Inside, inside_lines

STARTED = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def test_a_process_is_told_with_the_time_of_its_start_in_utc() -> None:
    """Fails when nobody can see which processes are older than a deploy."""
    here = STARTED.astimezone(timezone(timedelta(hours=1)))
    row = MemberRow(member=UUID(int=1), host="box", pid=42, started_at=here, seen=1.0, status={})
    inside = Inside(members=[row], tiers=[], parked=[], quarantine=[], pauses=Pauses(), paused_keys=[])
    (line,) = inside_lines(inside, joined=1)
    assert "process 42 on box, started 2026-11-30 12:00:00Z: 0 partitions" in line
