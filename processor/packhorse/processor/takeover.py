"""How long a group takes to notice that a member is gone, and what that bounds; decided purely."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from packhorse.core.kafka_properties import Property

Whose = Literal["group", "brokers", "client", "assumed"]
"""Who says so: a setting of this group, one of the brokers, one of the client, or nobody, so Kafka's default is taken."""

_SESSION, _HEARTBEAT, _ASSIGNMENT = 45.0, 5.0, 1.0
"""Kafka's defaults of the protocol "consumer" (KIP-848)."""
_CLASSIC_HEARTBEAT = 3.0
_LEAST_MARGIN = 0.5
"""Seconds by which a frozen owner's transaction must end before the next owner begins, at least."""
QUICK = 15.0
"""Seconds of a take-over after a kill above which the doctor names what makes it shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTimes:
    """
    The times of a group, in seconds.

    Attributes:
        protocol: "consumer" is KIP-848, where the broker sets the times; with "classic" each client does.
        session: After so long without a heartbeat a member counts as gone.
        heartbeat: Between two heartbeats; with the answer a member learns what is its own now.
        assignment: Least time between two assignments of a group.
        whose: Who says so.
    """

    protocol: str
    session: float
    heartbeat: float
    assignment: float
    whose: Whose

    @property
    def after_kill(self) -> tuple[float, float]:
        """Return the least and the most seconds until another member has the partitions of one that was killed or frozen."""
        return max(0.0, self.session - self.heartbeat), self.session + self.after_stop

    @property
    def after_stop(self) -> float:
        """Return the most seconds until another member has the partitions of one that was stopped and has left."""
        # The classic protocol's cooperative hand-over takes two rounds, each told with a heartbeat.
        return 2 * self.heartbeat if self.protocol == "classic" else self.heartbeat + self.assignment

    def __str__(self) -> str:
        low, high = self.after_kill
        return (
            f"after a kill {low:g} to {high:g} s, after a clean stop up to {self.after_stop:g} s (protocol {self.protocol}, "
            f"session time-out {self.session:g} s, {_WHOSE[self.whose]})"
        )


_WHOSE: Mapping[Whose, str] = {
    "group": "as this group's setting says",
    "brokers": "as the brokers' setting says",
    "client": "as the client's setting says",
    "assumed": "Kafka's default, since this client may not read the setting",
}


def consumer_times(settings: Mapping[str, str], *, whose: Whose) -> GroupTimes:
    """Return the times of a KIP-848 group from *settings*, named as the group's own are, such as `session.timeout.ms`."""
    return GroupTimes(
        protocol="consumer",
        session=_seconds(settings.get("session.timeout.ms"), _SESSION),
        heartbeat=_seconds(settings.get("heartbeat.interval.ms"), _HEARTBEAT),
        assignment=_seconds(settings.get("assignment.interval.ms"), _ASSIGNMENT),
        whose=whose,
    )


def classic_times(properties: Mapping[str, Property]) -> GroupTimes:
    """Return the times of a classic group from the properties of a client of it."""
    return GroupTimes(
        protocol="classic",
        session=_seconds(properties.get("session.timeout.ms"), _SESSION),
        heartbeat=_seconds(properties.get("heartbeat.interval.ms"), _CLASSIC_HEARTBEAT),
        assignment=0.0,
        whose="client",
    )


def below_session(seconds: float, times: GroupTimes) -> float:
    """
    Return *seconds*, or less, so that it ends before a frozen member counts as gone: its transaction must not block the next.

    >>> times = classic_times({"session.timeout.ms": 6000})
    >>> below_session(40.0, times), below_session(5.0, times)
    (5.4, 5.0)
    """
    return min(seconds, times.session - max(_LEAST_MARGIN, times.session / 10))


def _seconds(milliseconds: Property | None, otherwise: float) -> float:
    """Return what a setting says; absurd text is left to the client or broker, which refuses it by name."""
    try:
        return otherwise if milliseconds is None else max(1.0, float(milliseconds) / 1_000)
    except ValueError:
        return otherwise
