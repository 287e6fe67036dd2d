"""Which replays had a message in hand, under which identity, and with what outcome. Pure: no I/O, no clock."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from packhorse.core.ids import replayed_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRun:
    """A replay of a topic for a group, of those that have begun."""

    run: int
    run_state: str
    group: str
    topic: str
    planned_by: str
    live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed(ReplayRun):
    """
    That a replay has handed the message to its group.

    Attributes:
        identity: The id that it has in the replay; its own, where it was never done before.
        handed_at: When it was handed over, while its outcome is not counted; None after that.
        outcome: What the inbox says of the identity; None: nothing yet, or it is its own and told as such.
    """

    identity: UUID
    handed_at: datetime | None
    outcome: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOf:
    """That the id is the identity of another message in a replay."""

    original: UUID
    run: int
    group: str
    topic: str


def identities(message_id: UUID, runs: Iterable[ReplayRun]) -> list[UUID]:
    """Return the ids that the message may have in *runs*, its own first."""
    return [message_id, *(replayed_id(message_id, run.run, run.group) for run in runs)]


def replays_of(
    message_id: UUID,
    runs: Iterable[ReplayRun],
    handed: Mapping[tuple[int, UUID], datetime],
    outcomes: Mapping[tuple[UUID, str, str], str],
) -> Iterator[Replayed]:
    """
    Yield those of *runs* that had the message in hand.

    *handed* says when replays handed over ids whose outcome they have not counted, by run and id; *outcomes* what the inbox says,
    by id, group and topic.
    """
    for run in runs:
        other = replayed_id(message_id, run.run, run.group)
        at, outcome = handed.get((run.run, other)), outcomes.get((other, run.group, run.topic))
        own = handed.get((run.run, message_id))
        if at is None and outcome is None and own is None:
            continue
        renamed = at is not None or outcome is not None
        yield Replayed(
            **asdict(run),
            identity=other if renamed else message_id,
            handed_at=at if renamed else own,
            outcome=outcome,
        )


def original_of(message_id: UUID, runs: Iterable[ReplayRun], neighbours: Iterable[UUID]) -> ReplayOf | None:
    """Return of which of *neighbours*, ids of the same millisecond, *message_id* is the identity in a replay; None: of none."""
    every_one = list(neighbours)
    for run in runs:
        for one in every_one:
            if replayed_id(one, run.run, run.group) == message_id:
                return ReplayOf(original=one, run=run.run, group=run.group, topic=run.topic)
    return None
