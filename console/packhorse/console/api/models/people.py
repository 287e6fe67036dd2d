"""Who may do what, and what people did, as the API is asked and answers."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, StrictBool

from packhorse.console.acting.person import LONGEST_NAME
from packhorse.console.api.models.base import NO_NUL, WHOLE, Answer, Asked, Cursor, Moment, Name, Why
from packhorse.console.audit.pages import Filter
from packhorse.console.operators.model import Kind, Wanted
from packhorse.core.rights import Right, Role

_MOST_SECONDS = 10 * 365 * 86_400
WhoName = Annotated[
    str, Field(min_length=1, max_length=LONGEST_NAME, pattern=NO_NUL, examples=["oncall"]), WHOLE
]


class OperatorAnswer(Answer):
    """
    One who has rights.

    Attributes:
        kind: `role` of the database, holder of a `token`, or `user`, whom a trusted proxy signs in under the name.
        expired: The rights are worth nothing any more.
        gone: No role of that name is in the database's server any more.
    """

    kind: Kind
    name: str
    role: Role
    personal: bool
    edit: bool
    expires_at: datetime | None
    expired: bool
    gone: bool
    made_at: datetime
    made_by: str


class OperatorsAnswer(Answer):
    """All who have rights; whoever owns the tables may do all, and is not among them."""

    operators: list[OperatorAnswer]


class MeAnswer(Answer):
    """
    Who somebody is to the installation.

    Attributes:
        actor: As the record names them.
        by: What gives the rights.
    """

    name: str
    actor: str
    role: Role | None
    rights: list[Right]
    owner: bool
    by: list[OperatorAnswer]


class GiveBody(Asked):
    """
    What somebody is to have, instead of all that they had.

    Attributes:
        personal: May see fields that their schema marks personal.
        edit: May send an edited copy of a quarantined message.
        lasts: Seconds from now; null: for good.
    """

    name: WhoName
    role: Role
    personal: StrictBool = False
    edit: StrictBool = False
    lasts: Annotated[float, Field(ge=1, le=_MOST_SECONDS)] | None = None
    why: Why

    def wanted(self, kind: Kind) -> Wanted:
        """Return what the service is asked for."""
        return Wanted(
            kind=kind,
            name=self.name,
            role=self.role,
            personal=self.personal,
            edit=self.edit,
            lasts=self.lasts,
        )


class TokenBody(GiveBody):
    """
    For whom a token is made.

    Attributes:
        renew: Instead of the token that the name has, which is void at once.
    """

    renew: StrictBool = False


class RemoveBody(Asked):
    """Whose rights are taken away."""

    kind: Kind
    name: WhoName
    why: Why


class ChangeAnswer(Answer):
    """
    What was changed; `after` is null when all was taken away.

    Attributes:
        may_connect: False: the database refuses the role what acts need, which asks for grants.
    """

    before: OperatorAnswer | None
    after: OperatorAnswer | None
    may_connect: bool


class TokenAnswer(ChangeAnswer):
    """
    A token that was made.

    Attributes:
        token: The only time that it is shown; only its hash is kept.
    """

    token: str


class AuditAsked(Asked):
    """
    Which acts are wanted; what is not given lets all pass.

    Attributes:
        actor: A part of how the actor stands on the record.
        id: Of a message.
        since, until: From the first on, and before the second.
    """

    actor: Name | None = None
    act: Name | None = None
    id: UUID | None = None
    group: Name | None = None
    since: Moment | None = None
    until: Moment | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 50
    after: Cursor | None = None

    def filter(self) -> Filter:
        """Return what the service is asked for."""
        return Filter(
            actor=self.actor,
            act=self.act,
            message_id=self.id,
            group=self.group,
            since=self.since,
            until=self.until,
        )


class EntryAnswer(Answer):
    """
    One act on the record; `detail` names what was acted on, and has no text of a payload.

    Attributes:
        actor: Who it was, as their client said.
        role: The role of the database that was connected, as the database saw it; for what came through a server, the server's.
    """

    at: datetime
    actor: str
    role: str | None
    act: str
    group: str | None
    topic: str | None
    id: UUID | None
    why: str | None
    detail: dict[str, Any]


class AuditAnswer(Answer):
    """
    One page of what people did, the newest first.

    Attributes:
        next: `after` of the next page; null on the last.
    """

    acts: list[EntryAnswer]
    next: str | None
