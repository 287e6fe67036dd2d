"""Times in words, as the viewer's clock shows them and in UTC. Pure: the zone and the time are arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from packhorse.console.doctor.findings import span

Local = Callable[[datetime], datetime]
"""Puts a moment into the viewer's zone."""


def utc(moment: datetime) -> datetime:
    """Put *moment* into UTC: for viewers whose zone nobody knows."""
    return moment.astimezone(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Who looks: at which moment (by the database's clock), and in which zone."""

    now: datetime
    local: Local

    def moment(self, at: datetime) -> str:
        """
        Return *at* in the viewer's zone and in UTC, and how far away it is.

        >>> noon = datetime(2026, 8, 1, 12, tzinfo=UTC)
        >>> viewer = Viewer(now=noon, local=lambda at: at.astimezone(timezone(timedelta(hours=2), "CEST")))
        >>> from datetime import timezone
        >>> viewer.moment(noon + timedelta(minutes=4))
        '2026-08-01 14:04:00 CEST (12:04:00Z), in 4 min'
        """
        there, utc = self.local(at), at.astimezone(UTC)
        text = f"{there:%Y-%m-%d %H:%M:%S %Z}"
        if there.utcoffset() != timedelta(0):
            day = "" if there.date() == utc.date() else f"{utc:%Y-%m-%d} "
            text += f" ({day}{utc:%H:%M:%S}Z)"
        return f"{text}, {self.away(at)}"

    def away(self, at: datetime) -> str:
        """
        Return how far away *at* is.

        >>> noon = datetime(2026, 8, 1, 12, tzinfo=UTC)
        >>> viewer = Viewer(now=noon, local=lambda at: at)
        >>> [viewer.away(noon + timedelta(seconds=s)) for s in (-7200, -0.5, 0.5, 240)]
        ['2 h ago', 'just now', 'just now', 'in 4 min']
        """
        distance = at - self.now
        if abs(distance) < timedelta(seconds=1):
            return "just now"
        return f"in {span(distance)}" if distance > timedelta(0) else f"{span(-distance)} ago"
