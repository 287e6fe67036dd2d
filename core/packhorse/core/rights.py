"""Who may do what: roles, rights, and the one place that says which role has which right. Pure: no I/O, no clock."""

import shlex
from dataclasses import dataclass
from enum import StrEnum

from packhorse.core.errors import Forbidden, NotSignedIn


class Role(StrEnum):
    """What a person is to the installation; each has the rights of those before it."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Right(StrEnum):
    """
    What an act or a look needs.

    SEE: look at everything but personal fields. ACT: redrive, discard, restore, replay, pause, resume, note, acknowledge,
    cancel jobs, resolve their outside effects.
    ADMINISTER: purge, reset offsets, say who may do what. PERSONAL: see fields that their schema marks personal. EDIT: send an
    edited copy. The last two come with no role: they are given by name.
    """

    SEE = "see"
    ACT = "act"
    ADMINISTER = "administer"
    PERSONAL = "see personal fields"
    EDIT = "edit"


_OF_ROLE: dict[Role, frozenset[Right]] = {
    Role.VIEWER: frozenset({Right.SEE}),
    Role.OPERATOR: frozenset({Right.SEE, Right.ACT}),
    Role.ADMIN: frozenset({Right.SEE, Right.ACT, Right.ADMINISTER}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    What somebody may do at this moment, as the database says it.

    Attributes:
        name: Who it is: the database's role, the name that the token was given for, or the name of the user.
        role: None: nobody has given this person any right.
    """

    name: str
    role: Role | None
    personal: bool = False
    edit: bool = False

    @property
    def rights(self) -> frozenset[Right]:
        """
        Return all that the person may do.

        >>> sorted(Standing(name="ann", role=Role.OPERATOR, edit=True).rights)
        [<Right.ACT: 'act'>, <Right.EDIT: 'edit'>, <Right.SEE: 'see'>]
        >>> Standing(name="eve", role=None, personal=True).rights
        frozenset()
        """
        if self.role is None:
            return frozenset()
        flags = {Right.PERSONAL: self.personal, Right.EDIT: self.edit}
        return _OF_ROLE[self.role] | {right for right, has in flags.items() if has}

    def check(self, right: Right, *, doing: str) -> None:
        """
        Check that the person may do what *doing* says, which needs *right*.

        Raises:
            Forbidden: The right is missing; names it and who can give it.
        """
        if right in self.rights:
            return
        has = "no role" if self.role is None else f"the role {self.role}"
        raise Forbidden(
            f"{self.name} may not {doing}: that needs the right to {right}, and {self.name} has {has}; "
            "an admin gives it with `packhorse operators`; nothing was done"
        )


def standing_of(
    row: tuple[str | None, str | None, bool | None, bool | None, bool | None],
    *,
    by_token: bool,
    signed_in: str | None = None,
) -> Standing:
    """
    Return what the database's answer (name, role, personal, edit, expired) means, to the question for whoever brought a token, is
    *signed_in* by a proxy under a name, or neither.

    >>> standing_of((None, None, None, None, None), by_token=False, signed_in="ann")
    Traceback (most recent call last):
    packhorse.core.errors.Forbidden: ann has no rights here; an admin gives them with `packhorse operators add ann --user --role viewer`

    Raises:
        NotSignedIn: The token is unknown or expired.
        Forbidden: The user has no rights, or none any more: who it is is known, and to sign in once more would help nobody.
    """
    name, role, personal, edit, expired = row
    if by_token and (name is None or expired):
        raise NotSignedIn(
            f"the token {'is expired' if name else 'is not known'}; ask an admin for one: `packhorse operators token`"
        )
    if signed_in is not None and (name is None or expired):
        has = "had rights here that are expired" if name else "has no rights here"
        raise Forbidden(
            f"{signed_in} {has}; an admin gives them with "
            f"`packhorse operators add {shlex.quote(signed_in)} --user --role viewer`"
        )
    return Standing(
        name=name or "", role=None if role is None else Role(role), personal=bool(personal), edit=bool(edit)
    )
