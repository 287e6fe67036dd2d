"""The quarantine, as the API is asked and answers."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, StrictBool

from packhorse.console.api.models.base import (
    NO_NUL,
    WHOLE,
    Answer,
    Asked,
    Count,
    Cursor,
    Key,
    Moment,
    Name,
    Why,
    WithKey,
)
from packhorse.console.facts import Act, FailedAttempt, State
from packhorse.console.paging import MOST
from packhorse.console.quarantine.around.model import Caused, InRedrive
from packhorse.console.quarantine.groups.model import Known
from packhorse.console.quarantine.pages import MAX_TEXT, Filter
from packhorse.console.quarantine.redrive import Order


class StateAsked(StrEnum):
    """Which messages are wanted by what a person has decided so far."""

    QUARANTINED = "quarantined"
    REDRIVEN = "redriven"
    DISCARDED = "discarded"
    ALL = "all"


class PageAsked(Asked):
    """
    Which quarantined messages are wanted; what is not given lets all pass.

    Attributes:
        id: Of this id, for whatever group.
        key: With this key, whose bytes are the text in UTF-8.
        failure: Print of a group of failures, or its first eight digits or more.
        since, until: Quarantined from then on; before then.
        text: The recorded error holds it, in capitals or not.
    """

    group: Name | None = None
    topic: Name | None = None
    reason: Name | None = None
    type: Name | None = None
    tenant: Name | None = None
    state: StateAsked = StateAsked.QUARANTINED
    id: UUID | None = None
    key: Key | None = None
    failure: Annotated[str, Field(pattern="^[0-9a-f]{8,32}$")] | None = None
    since: Moment | None = None
    until: Moment | None = None
    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT, pattern=NO_NUL), WHOLE] | None = None
    limit: Annotated[int, Field(ge=1, le=MOST)] = 50
    after: Cursor | None = None
    show_key: bool = False

    def filter(self) -> Filter:
        """Return what the service is asked for."""
        return Filter(
            group=self.group,
            topic=self.topic,
            reason=self.reason,
            type=self.type,
            tenant=self.tenant,
            state=None if self.state is StateAsked.ALL else State(self.state.value),
            id=self.id,
            key=None if self.key is None else self.key.encode(),
            failure=self.failure,
            since=self.since,
            until=self.until,
            text=self.text,
        )


class ShowAsked(Asked):
    """
    Which of several messages of the id is meant, and what is shown of it.

    Attributes:
        payload: Decode the payload; personal fields are masked.
    """

    group: Name | None = None
    topic: Name | None = None
    payload: bool = False
    show_key: bool = False


class QuarantinedAnswer(WithKey):
    """A message that rests until a person decides."""

    id: UUID
    group: str
    topic: str
    partition: int
    offset: int
    payload_bytes: int | None
    type: str | None
    tenant: str | None
    reason: str
    error: str | None
    attempts: int
    first_failed_at: datetime
    quarantined_at: datetime
    state: State
    copy_partition: int | None
    copy_offset: int | None
    redrives: int
    redrive_sent_at: datetime | None


class PageAnswer(Answer):
    """
    One page, the newest first.

    Attributes:
        next: `after` of the next page; null on the last.
        looked_to: The page is not full because so many were looked at, back to this time; more may fit behind `next`.
    """

    messages: list[QuarantinedAnswer]
    next: str | None
    looked_to: datetime | None


class AroundAnswer(Answer):
    """
    What stands around one message.

    Attributes:
        behind: Messages that wait behind it; `followers` names the first.
        caused: What its handler wrote under ids derived from its own, as far as `caused_said` says.
        failure: Print of the group of failures that it belongs to; `known` is what people know of that.
    """

    behind: int
    followers: list[UUID]
    caused: list[Caused]
    caused_said: str
    in_redrives: list[InRedrive]
    failure: str
    known: Known


class UnmaskBody(Asked):
    """Which of several messages of the id is meant, and why somebody has to see what its schema marks personal."""

    group: Name | None = None
    topic: Name | None = None
    show_key: StrictBool = False
    why: Why


class ShownAnswer(QuarantinedAnswer):
    """
    One quarantined message with its history.

    Attributes:
        headers: Names and values in order; a value that may say who somebody is stands as `***`.
        payload: What the payload says, personal fields masked; null unless it was asked for.
        payload_said: Why there is no payload to see.
        unmasked: Nothing is masked; that it was shown is on record.
    """

    headers: list[tuple[str, str | None]]
    failed_attempts: list[FailedAttempt]
    acts: list[Act]
    payload: object | None
    payload_said: str | None
    unmasked: bool
    around: AroundAnswer | None


class OrderBody(Asked):
    """One redrive or discard as it was previewed; it holds only while the tables still say the same."""

    id: UUID
    group: Name
    topic: Name
    attempt: Count
    redrives: Count
    quarantined_at: Moment

    def order(self) -> Order:
        """Return what the service is asked for."""
        return Order(**dict(self))


class PreviewBody(Asked):
    """What is to be previewed, and for which group and topic where the id rests more than once."""

    act: Literal["redrive", "discard"] = "redrive"
    group: Name | None = None
    topic: Name | None = None


class OrderAnswer(Answer):
    """What was previewed: give it back with the act, so that exactly that is done or nothing."""

    id: UUID
    group: str
    topic: str
    attempt: int
    redrives: int
    quarantined_at: datetime


class PreviewAnswer(Answer):
    """What the act would do, step by step, and what speaks against it."""

    order: OrderAnswer
    steps: list[str]
    warnings: list[str]


class ActBody(Asked):
    """The order of the preview, and the reason."""

    order: OrderBody
    why: Why


class RedriveAnswer(Answer):
    """
    A redrive that is asked for: the order stands in the database.

    It is *sent* once the broker has the copy and *proved* once there is an outcome: GET /messages/{id} tells.
    """

    state: Literal["asked"]
    asked_at: datetime
    actor: str


class DiscardAnswer(Answer):
    """A message that is given up; what waits behind it goes on when a processor of the group runs."""

    state: Literal["discarded"]
    discarded_at: datetime
    actor: str


class EditPreviewBody(Asked):
    """
    An edited copy that is to be previewed.

    Attributes:
        payload: The whole edited payload, in the form in which it is shown.
    """

    group: Name | None = None
    topic: Name | None = None
    payload: dict[str, Any]


class EditPreviewAnswer(Answer):
    """
    What the copy would be.

    Attributes:
        order: What was previewed: give it back with the act, and the same payload.
        fields: Paths of the fields that differ, without their values.
        warnings: What speaks against it.
    """

    order: OrderAnswer
    fields: list[str]
    warnings: list[str]


class EditBody(Asked):
    """The order of the preview, the same payload, and the reason."""

    order: OrderBody
    payload: dict[str, Any]
    why: Why


class EditAnswer(Answer):
    """
    An edited copy that stands in its parent's place.

    Attributes:
        id: Of the copy, which is a message of its own.
    """

    id: UUID
    parent: UUID
    group: str
    fields: list[str]
    recorded_at: datetime
    warnings: list[str]
