"""
How the number of shards changes: `next_step(shards, wanted) -> Step`, no I/O.

A row's shard is its key's hash modulo the number of shards, so that another number deals all keys anew. For that nobody may
be at work, and all shards must have published exactly the same transactions:

1. *Order*: every owner finishes its target, saves, gives its lease back and takes it no more.
2. *Level*: where the horizons differ, each shard gets the same snapshot as its target; owners finish that, and stop again.
3. *Switch*: all stand at one horizon: in one transaction the shards of before go and the new ones come, at that horizon.

Each step is one transaction; a crash in between leaves an order that anybody may go on with, or take back. New rows wait meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Step(StrEnum):
    """What is to be done next."""

    DONE = "done"
    ORDER = "order"
    WAIT = "wait"
    LEVEL = "level"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    One shard.

    Attributes:
        owner: Who holds its lease; None: nobody.
        horizon, target: As in the table.
        finish, wanted: What was ordered.
    """

    shard: int
    owner: str | None
    horizon: str
    target: str | None = None
    finish: bool = False
    wanted: int | None = None


def next_step(shards: Sequence[Standing], wanted: int) -> Step:
    """
    Return the step that comes next on the way to *wanted* shards.

    >>> one = Standing(shard=0, owner="host:1", horizon="1:9:")
    >>> next_step([one], 1), next_step([one], 4)
    (<Step.DONE: 'done'>, <Step.ORDER: 'order'>)
    """
    if len(shards) == wanted and not any(shard.finish for shard in shards):
        return Step.DONE
    if not all(shard.finish and shard.wanted == wanted for shard in shards):
        return Step.ORDER
    if any(shard.owner is not None or shard.target is not None for shard in shards):
        return Step.WAIT
    return Step.SWITCH if len({shard.horizon for shard in shards}) == 1 else Step.LEVEL


def waits_for(shards: Sequence[Standing]) -> str:
    """Return what a step waits for, and the next step of people if nothing happens."""
    owned = [f"{shard.shard} ({shard.owner})" for shard in shards if shard.owner is not None]
    if owned:
        return f"until the owners of shards {', '.join(owned)} have finished what they have in work"
    left = [str(shard.shard) for shard in shards if shard.target is not None]
    return f"until a relay takes shards {', '.join(left)} and finishes what is in work there; is one running?"
