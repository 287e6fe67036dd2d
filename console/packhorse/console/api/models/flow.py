"""Pauses, explanations, and how everything flows, as the API is asked and answers."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StrictBool

from packhorse.console.api.models.base import Answer, Asked, Count, Key, Name, Why
from packhorse.console.top.facts import Failing, Jobs, Paused, Run, Size, Waiting
from packhorse.console.top.view import Trouble
from packhorse.console.truth.explanation import Part
from packhorse.processor.pausing.pauses import Scope

KeyHash = Annotated[
    str,
    Field(pattern="^[0-9a-f]{32}$", description="A key as the tables name it; for one that can't be typed."),
]


class PausesAsked(Asked):
    """
    Of which consumer group.

    Attributes:
        group: Without it, of all in which something is paused.
    """

    group: Name | None = None


class PauseAnswer(Answer):
    """
    One pause.

    Attributes:
        topic: Empty: the whole group.
        partition: -1: the whole topic.
    """

    topic: str
    partition: int
    by: str
    why: str | None
    at: datetime


class PausedKeyAnswer(Answer):
    """A key that a person has paused; the key itself is not shown."""

    topic: str
    key_hash: str
    partition: int
    followers: int
    by: str | None
    why: str | None
    at: datetime


class GroupPausesAnswer(Answer):
    """What is paused in a group."""

    group: str
    pauses: list[PauseAnswer]
    keys: list[PausedKeyAnswer]


class PausesAnswer(Answer):
    """What is paused, by group."""

    groups: list[GroupPausesAnswer]


class PauseBody(Asked):
    """
    What is paused: the group, a topic with its tiers, one partition of it, or one key of it.

    Attributes:
        anyway: Also where nothing is known of it: pauses it ahead of its first start.
    """

    group: Name
    topic: Name | None = None
    partition: Count | None = None
    key: Key | None = None
    anyway: StrictBool = False
    why: Why

    def scope(self) -> Scope:
        """Return what the service is asked for."""
        key = None if self.key is None else self.key.encode()
        return Scope(topic=self.topic, partition=self.partition, key=key)


class ResumeBody(Asked):
    """What goes on, named as it was paused."""

    group: Name
    topic: Name | None = None
    partition: Count | None = None
    key: Key | None = None
    key_hash: KeyHash | None = None
    why: Why

    def scope(self) -> Scope:
        """Return what the service is asked for."""
        key = None if self.key is None else self.key.encode()
        return Scope(topic=self.topic, partition=self.partition, key=key, key_hash=self.key_hash)


class PausedAnswer(Answer):
    """A pause that stands; members of the group follow within about a second."""

    group: str
    scope: str
    paused: bool
    was_paused: bool


class ResumedAnswer(Answer):
    """
    What a resume did.

    Attributes:
        resumed: False: just that was not paused, and nothing was done.
        held_by: Pauses that hold it, or a part of it, all the same.
    """

    group: str
    scope: str
    resumed: bool
    held_by: list[PauseAnswer]


class ExplanationAsked(Asked):
    """
    How to look for a message.

    Attributes:
        search: Where no delivery is known, look into the key's partition of its topic, within bounds.
    """

    search: bool = False


class KeyExplanationAsked(Asked):
    """Which key: of which group and source topic, and one of `key` and `key_hash`."""

    group: Name
    topic: Name
    key: Key | None = None
    key_hash: KeyHash | None = None


class ExplanationAnswer(Answer):
    """The answer in words; `known` is false when nothing is known of the subject. Times in sentences are UTC."""

    known: bool
    standing: str
    parts: list[Part]


class ShardAnswer(Answer):
    """
    One shard of the outbox and its relay.

    Attributes:
        owner: Who holds its lease; null: nobody.
        published: Rows confirmed by the broker, ever.
        oldest: Age of the oldest row that is committed and not published, in seconds.
        trouble: What keeps it from sending.
        holds, people: Open holds, and those of them that wait for a person.
    """

    shard: int
    owner: str | None
    published: int
    oldest: float | None
    trouble: str | None
    holds: int
    people: int


class BehindAnswer(Answer):
    """A partition with lag, and for how many seconds its watermark has not moved."""

    topic: str
    partition: int
    lag: int
    still: float


class FlowAnswer(Answer):
    """
    One group.

    Attributes:
        lag: Offsets between its watermarks and the ends of its source topics; null: not known, `lag_said` says why.
        done: Messages a second; null without an earlier look.
        still: For how many seconds the watermark of a partition with lag has not moved, of the one that stands longest.
        behind: The partitions with most lag.
        overdue: How many seconds the first retry that is due waits.
        quarantined: Messages in quarantine, exact.
        alive, dead: Processes seen lately, and those that were and are not.
    """

    group: str
    partitions: int
    lag: int | None
    lag_said: str | None
    done: float | None
    still: float | None
    behind: list[BehindAnswer]
    overdue: float | None
    waiting: Waiting
    quarantined: int
    failing: list[Failing]
    alive: int
    dead: int
    versions: list[str]
    stalls: list[str]
    stopped: list[str]
    unwell: list[str]


class TopAnswer(Answer):
    """
    How everything flows; ages and the time of the slowest statement are seconds, rates are a second.

    Attributes:
        written, published: Null without an earlier look of this console within the last half minute.
        relays: Relay processes that live.
        jobs: Those that are not over, by state, each counted up to 10,000; `left` have nobody any more.
        wrong: What a person should look at, the worst first; empty: all is well.
        troubles: The same, with what each is about.
        ends_said: Why lags are not known.
    """

    at: datetime
    written: float | None
    published: float | None
    oldest: float | None
    relays: int
    shards: list[ShardAnswer]
    groups: list[FlowAnswer]
    paused: list[Paused]
    runs: list[Run]
    jobs: list[Jobs]
    sizes: list[Size]
    wrong: list[str]
    troubles: list[Trouble]
    ends_said: str | None
    took: tuple[str, float]
