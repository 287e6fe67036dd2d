"""Discarded messages that are taken back, and what is erased, as the API is asked and answers."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StrictBool

from packhorse.console.api.models.base import NO_NUL, WHOLE, Answer, Asked, Count, Key, Moment, Name, Why
from packhorse.console.purging.model import Kind, Wanted
from packhorse.console.quarantine.restoring.deciding import Later, RestoreOrder
from packhorse.processor.erasing import Subject


class RestorePreviewBody(Asked):
    """For which group and topic, where the id was discarded more than once."""

    group: Name | None = None
    topic: Name | None = None


class RestoreOrderBody(Asked):
    """One restoring as it was previewed; it holds only while the tables still say the same."""

    id: UUID
    group: Name
    topic: Name
    attempt: Count
    redrives: Count
    quarantined_at: Moment
    discarded_at: Moment | None
    ordered: StrictBool

    def order(self) -> RestoreOrder:
        """Return what the service is asked for."""
        return RestoreOrder(**dict(self))


class RestoreOrderAnswer(Answer):
    """What was previewed: give it back with the act, so that exactly that is done or nothing."""

    id: UUID
    group: str
    topic: str
    attempt: int
    redrives: int
    quarantined_at: datetime
    discarded_at: datetime | None
    ordered: bool


class SinceAnswer(Answer):
    """Later messages of the key as far as they were listed; `whole` says that these are all, `said` how far that is."""

    said: str
    whole: bool
    messages: list[Later]


class RestorePreviewAnswer(Answer):
    """
    What restoring would do.

    Attributes:
        out_of_order: Later messages of its key have run, or it is not known that none has: the act has to say so too.
    """

    order: RestoreOrderAnswer
    steps: list[str]
    out_of_order: bool
    since: SinceAnswer


class RestoreBody(Asked):
    """
    The order of the preview, and the reason.

    Attributes:
        out_of_order: It is known that it takes effect after later messages of its key.
    """

    order: RestoreOrderBody
    out_of_order: StrictBool = False
    why: Why


class RestoreAnswer(Answer):
    """A message that rests in quarantine again."""

    state: Literal["restored"]
    restored_at: datetime
    actor: str


class SubjectBody(Asked):
    """
    Whose data: by the key of their messages, or by a field that its schema marks personal and its value.

    Attributes:
        field: Path of the field, such as passenger.email.
        group: Of this group alone; leaves the outbox.
        unpublished: Also rows that are not published yet: their messages are lost.
    """

    key: Key | None = None
    field: Name | None = None
    value: Annotated[str, Field(max_length=10_000, pattern=NO_NUL), WHOLE] | None = None
    group: Name | None = None
    unpublished: StrictBool = False

    def wanted(self) -> Wanted:
        """Return what the service is asked for."""
        subject = Subject(key=self.key, path=self.field, value=self.value)
        return Wanted(subject=subject, group=self.group, unpublished=self.unpublished)


class PurgeBody(SubjectBody):
    """Whose data is erased, and the reason, which names nobody."""

    why: Why


class UnknownAnswer(Answer):
    """Messages that could not be looked into: this database does not know their schema; null: their payload names none."""

    table: str
    schema_id: int | None
    messages: int


class LeftAnswer(Answer):
    """A row of the outbox that stays for now, or would."""

    id: UUID
    aggregatetype: str
    why: str


class StayAnswer(Answer):
    """A topic that may still hold records, and how to deal with it; no partition: any."""

    topic: str
    kind: Kind
    partition: int | None
    offsets: list[int]
    means: str


class PurgeAnswer(Answer):
    """
    What a purge did, or would find, and what stays.

    Attributes:
        run: Names it on the record; null: it was a preview.
        counts: Rows by what was done to them, or by table.
        parked_keys: Keys that stay parked until a processor of their group looks.
        unreadable: Payloads that could not be decoded, and so not be looked into.
        not_looked_into: Messages whose schema is not known here, by table; they may be the subject's too.
    """

    run: UUID | None
    counts: dict[str, int]
    left: list[LeftAnswer]
    parked_keys: int
    unreadable: int
    not_looked_into: list[UnknownAnswer]
    topics: list[StayAnswer]
