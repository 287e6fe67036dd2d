"""Who has which rights, as values. Pure: no I/O, no clock."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from packhorse.console.acting.person import checked_name
from packhorse.core.errors import UsageError
from packhorse.core.rights import Right, Role, Standing


class Kind(StrEnum):
    """By what somebody is known."""

    ROLE = "role"
    TOKEN = "token"  # noqa: S105 the word, not a secret
    USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """
    One who has rights.

    Attributes:
        kind, name: A role of the database, whose rights its members have too; the holder of a token; or a user, by the name that a
            trusted proxy vouches for.
        made_by: Who gave rights first.
        expires_at: From when on the rights are worth nothing; None: never.
        expired: Whether that is so by the database's clock.
        gone: No role of that name is in the database's server any more.
    """

    kind: Kind
    name: str
    role: Role
    personal: bool
    edit: bool
    made_at: datetime
    made_by: str
    expires_at: datetime | None
    expired: bool = False
    gone: bool = False

    @property
    def rights(self) -> dict[str, Any]:
        """Return what it may do, as the audit keeps it."""
        until = None if self.expires_at is None else self.expires_at.astimezone(UTC).isoformat()
        return {"role": self.role.value, "personal": self.personal, "edit": self.edit, "expires_at": until}

    @property
    def said(self) -> str:
        """
        Return what it may do, for people.

        >>> now = datetime(2026, 1, 2, tzinfo=UTC)
        >>> Operator(kind=Kind.ROLE, name="ann", role=Role.OPERATOR, personal=True, edit=False, made_at=now, made_by="x",
        ...     expires_at=None).said
        'operator, sees personal fields'
        """
        flags = {"sees personal fields": self.personal, "edits": self.edit, "EXPIRED": self.expired}
        flags["NO SUCH ROLE"] = self.gone
        return ", ".join([self.role.value, *(text for text, is_so in flags.items() if is_so)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    What somebody is to have, instead of all that it had.

    Attributes:
        lasts: Seconds from now; None: for good.

    Raises:
        UsageError: The name is not allowed.
    """

    kind: Kind
    name: str
    role: Role
    personal: bool = False
    edit: bool = False
    lasts: float | None = None

    def __post_init__(self) -> None:
        checked_name(self.name)

    def is_had_by(self, one: Operator) -> bool:
        """Return whether *one* has just that, for good or not at all for a time: then nothing has to be changed."""
        same = (one.role, one.personal, one.edit) == (self.role, self.personal, self.edit)
        return same and one.expires_at is None and self.lasts is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """
    What an act changed.

    Attributes:
        before, after: How it was and is; None: it had no rights, or has none now.
        may_connect: Whether the database lets the role do what its rights say; False asks for grants.
    """

    before: Operator | None
    after: Operator | None
    may_connect: bool = True

    @property
    def is_none(self) -> bool:
        """Return whether all was as it was wanted."""
        return self.before == self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """
    Who somebody is to the installation, and by what.

    Attributes:
        actor: As the audit names them.
        by: What gives the rights: the token, the user's own, or each role that the role which is connected is or is a member of.
        is_owner: The role which is connected owns the tables, and may do all.
    """

    standing: Standing
    actor: str
    by: tuple[Operator, ...]
    is_owner: bool

    @property
    def rights(self) -> list[Right]:
        """Return the rights, in the order in which they are declared."""
        return [right for right in Right if right in self.standing.rights]

    def lines(self) -> list[str]:
        """Return for people what gives the rights."""
        found = ["owns the tables: may do all"] if self.is_owner else []
        for one in self.by:
            if one.kind is Kind.TOKEN:
                found.append(f"the token of {one.name}: {one.said}")
            elif one.kind is Kind.USER:
                found.append(f"signed in as the user {one.name}: {one.said}")
            elif one.name == self.standing.name:
                found.append(f"the role {one.name}: {one.said}")
            else:
                found.append(f"a member of the role {one.name}: {one.said}")
        return found or ["nothing; an admin gives rights with `packhorse operators add`"]


def refusal_of_last(
    change: Change, *, others: int, users: int, signed_in: bool, is_owner: bool
) -> UsageError | None:
    """
    Return why *change* is refused, when it takes away the last admin by whom others could still come in; None: it is not.

    Besides the one that is changed there are *others* with a role or a token, and *users*. Users count only where one who is
    *signed_in* asks: whether a proxy lets anybody in, and under these very names, the database doesn't know, and one who came that
    way shows that it does. Whoever owns the tables may always come in, and so may leave nobody else.
    """
    was = change.before is not None and change.before.role is Role.ADMIN
    stays = change.after is not None and change.after.role is Role.ADMIN
    if is_owner or others or (users and signed_in) or not was or stays:
        return None
    assert change.before is not None
    if users:
        return UsageError(
            f"{change.before.name} is the last admin by a role or a token, and whether a proxy lets the users in who are admins is not "
            "known here: do it signed in as one of them, make another one first, or act as the owner of the tables; nothing was done"
        )
    return UsageError(
        f"{change.before.name} is the last admin: make another one first, or act as the owner of the tables; nothing was done"
    )
