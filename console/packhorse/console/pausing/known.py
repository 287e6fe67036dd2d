"""Whether there is what a person wants to pause. Pure: no I/O, no clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from packhorse.core.errors import UnknownId
from packhorse.processor.pausing.pauses import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """
    What is known of a group.

    Attributes:
        group: Whether processes, watermarks or messages of it are known, or the broker knows it.
        places: Partitions of topics, tiers among them, that the tables know.
        counts: How many partitions the broker says topics have; None: nobody asked a broker.
    """

    group: bool
    places: frozenset[tuple[str, int]] = frozenset()
    counts: Mapping[str, int] | None = field(default=None)


def unknown(group: str, scope: Scope, known: Known) -> UnknownId | None:
    """
    Return what is wrong with a pause of *scope* in *group*: it would hold nothing, as a mistyped name would; None: nothing.

    >>> str(unknown("figurse", Scope(), Known(group=False)))[:38]
    'no group figurse is known here: no pro'
    >>> unknown("figures", Scope(), Known(group=True)) is None
    True
    """
    asked = (
        ""
        if known.counts is not None
        else "; no broker was asked, PACKHORSE_KAFKA_BOOTSTRAP_SERVERS is not set"
    )
    if not known.group:
        return UnknownId(
            f"{no_group(group)}; nothing was done. `packhorse doctor` names the groups; {_AHEAD}{asked}"
        )
    if scope.topic is None:
        return None
    counts = known.counts or {}
    partitions = {partition for topic, partition in known.places if topic == scope.topic}
    if not partitions and scope.topic not in counts:
        return UnknownId(
            f"no topic {scope.topic} is known to group {group}; nothing was done. `packhorse processor status --group {group}` "
            f"names its topics; {_AHEAD}{asked}"
        )
    if (
        scope.partition is None
        or scope.partition in partitions
        or scope.partition < counts.get(scope.topic, 0)
    ):
        return None
    many = counts.get(scope.topic, len(partitions))
    return UnknownId(
        f"topic {scope.topic} has no partition {scope.partition} that is known to group {group}; {many} are, counted from 0; "
        f"nothing was done. {_AHEAD}{asked}"
    )


def no_group(group: str) -> str:
    """Return what to say of a group of which nothing is known."""
    return f"no group {group} is known here: no process of it lives, and it has no watermark in this database"


_AHEAD = "--anyway pauses one ahead of its first start"
