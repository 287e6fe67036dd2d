"""Names of tiers, which of them a source needs, and which topics a processor reads for them; decided purely."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from packhorse.core.errors import NotReady, SettingsError

if TYPE_CHECKING:
    from packhorse.processor.app import Processor

AT_ONCE = "0s"
"""The tier of no delay: it is always there, since wake-ups and redriven messages go through it."""

_NAME = re.compile(r"(\d{1,12})(ms|s|m|h|d)")
_MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SLACK = 1e-9
"""What a sum of floats may be above a tier's delay and still fit into it."""


class ReadTopic(NamedTuple):
    """
    What one topic that is read carries.

    Attributes:
        source: The topic whose messages it carries: itself, or the one that a tier belongs to.
        tier: Name of the tier; None for the source itself.
    """

    source: str
    tier: str | None

    @property
    def delay(self) -> float:
        """Return the tier's delay in seconds; 0 for a source."""
        return 0.0 if self.tier is None else tier_seconds(self.tier)


def tier_name(seconds: float) -> str:
    """
    Return the name of the tier of *seconds*, in the largest unit that divides it; a part of a millisecond counts as a whole.

    >>> [tier_name(s) for s in (0, 0.5, 5, 60, 90, 600, 3600, 86400, 0.0001)]
    ['0s', '500ms', '5s', '1m', '90s', '10m', '1h', '1d', '1ms']

    Raises:
        SettingsError: It is below zero, no number, or longer than a topic's name may say.
    """
    if not 0 <= seconds < 1e9:
        raise SettingsError(f"a tier of {seconds!r} s is not allowed: 0 to 1e9 s")
    whole = math.ceil(seconds * 1_000 - 1e-6)
    if whole == 0:
        return AT_ONCE
    unit = next(unit for unit in ("d", "h", "m", "s", "ms") if whole % _MILLISECONDS[unit] == 0)
    return f"{whole // _MILLISECONDS[unit]}{unit}"


def tier_seconds(name: str) -> float:
    """
    Return the delay of a tier in seconds.

    >>> [tier_seconds(n) for n in ("0s", "500ms", "90s", "10m")]
    [0.0, 0.5, 90.0, 600.0]

    Raises:
        SettingsError: It is no tier's name.
    """
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise SettingsError(
            f'{name!r} is no tier: a number and one of ms, s, m, h, d, such as "500ms" or "5s"'
        )
    return int(parts[1]) * _MILLISECONDS[parts[2]] / 1_000


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """
    Return tiers by their delays, each once.

    >>> in_order(["10m", "5s", "0s", "5s"])
    ('0s', '5s', '10m')
    """
    return tuple(sorted(set(names), key=lambda name: (tier_seconds(name), name)))


def tiers_of(app: "Processor", source: str) -> tuple[str, ...]:
    """Return the tiers that the handlers of *source* need, by delay; "0s" is always there."""
    delays = {
        delay
        for handler in app.all_handlers
        if source in handler.topics
        for delay in handler.retry.delay_seconds
    }
    return in_order({AT_ONCE, *(tier_name(delay) for delay in delays)})


def tier_for(seconds: float, ladder: Sequence[str]) -> str:
    """
    Return the tier of *ladder* (by delay) that a wait of *seconds* goes to: rounded up; the longest when it is longer than all.

    >>> [tier_for(s, ("0s", "5s", "1m")) for s in (0, 0.1, 5, 6, 600)]
    ['0s', '5s', '5s', '1m', '1m']
    """
    fitting = (name for name in ladder if tier_seconds(name) + _SLACK >= seconds)
    return next(fitting, ladder[-1])


def tiers_there(source: str, group: str, topics: Iterable[str]) -> tuple[str, ...]:
    """
    Return the tiers of *group* that have a topic among *topics*, by delay.

    >>> tiers_there("a", "g", ["a", "a.g.retry.5s", "a.g.retry.0s", "a.g.retry.later", "a.h.retry.9s", "a.g.quarantine"])
    ('0s', '5s')
    """
    prefix = f"{source}.{group}.retry."
    names = (topic.removeprefix(prefix) for topic in topics if topic.startswith(prefix))
    return in_order(name for name in names if _NAME.fullmatch(name))


def leftovers(app: "Processor", source: str, topics: Iterable[str]) -> tuple[str, ...]:
    """Return tiers of *source* that are among *topics* and in no ladder any more: what waits in them is still handled."""
    wanted = tiers_of(app, source)
    return tuple(name for name in tiers_there(source, app.group, topics) if name not in wanted)


def sources_of(app: "Processor", existing_topics: Collection[str]) -> Mapping[str, ReadTopic]:
    """
    Return what *app* reads, by topic: its sources, the tiers of their ladders, and tiers that a ladder had before.

    Raises:
        NotReady: A source, or a tier of a ladder, does not exist; names it and the command that makes it.
    """
    found: dict[str, ReadTopic] = {}
    for source in app.topics:
        found[source] = ReadTopic(source, None)
        for tier in tiers_of(app, source):
            found[app.tier_topic(source, tier)] = ReadTopic(source, tier)
        for tier in leftovers(app, source, existing_topics):
            found[app.tier_topic(source, tier)] = ReadTopic(source, tier)
    for topic, read in found.items():
        if topic not in existing_topics:
            what = "" if read.tier is None else f" (tier {read.tier} of {read.source}, group {app.group})"
            raise NotReady(
                f"topic {topic}{what} does not exist; `packhorse topics plan` says what is missing, `packhorse topics apply` "
                "makes it; one that this client may not describe looks the same"
            )
    return found


def tiers_among(read: Mapping[str, ReadTopic]) -> frozenset[str]:
    """Return the topics of tiers among those that are read."""
    return frozenset(topic for topic, one in read.items() if one.tier is not None)
