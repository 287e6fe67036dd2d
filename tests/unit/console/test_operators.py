"""Who has which rights, as values."""

from datetime import UTC, datetime
from typing import Any

import pytest

from packhorse.console.acting.person import TOKEN_BYTES, hash_of, token_of
from packhorse.console.operators.model import Change, Kind, Me, Operator, Wanted, refusal_of_last
from packhorse.console.operators.service import Made
from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import UsageError
from packhorse.core.rights import Right, Role, Standing

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def one(name: str = "ann", **given: Any) -> Operator:
    fields: dict[str, Any] = {"kind": Kind.ROLE, "role": Role.OPERATOR, "personal": False, "edit": False}
    return Operator(name=name, made_at=NOW, made_by="owner", expires_at=None, **(fields | given))


@pytest.mark.parametrize("name", ["", "x" * 64, "a\nb", "a\x1b[2J", "a\u202eb", " ann", "ann "])
def test_a_name_that_can_not_be_seen_as_it_is_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not allowed: 1 to 63 printable"):
        Wanted(kind=Kind.ROLE, name=name, role=Role.VIEWER)


@pytest.mark.case("P8")
def test_a_token_is_long_random_and_in_no_representation() -> None:
    """Fails when a token is drawn from fewer than 32 bytes, or a dataclass shows it in a traceback."""
    first, second = (token_of(SYSTEM_CHANCE.secret(TOKEN_BYTES)) for _ in range(2))
    assert (len(first), first[:4], first == second) == (47, "phk_", False)
    assert len(hash_of(first)) == 32
    assert first not in repr(Made(token=first, change=Change(before=None, after=one())))


@pytest.mark.parametrize(
    ("before", "after", "others", "is_owner", "refused"),
    [
        (one(role=Role.ADMIN), None, 0, False, True),
        (one(role=Role.ADMIN), one(role=Role.VIEWER), 0, False, True),
        (one(role=Role.ADMIN), one(role=Role.ADMIN, personal=True), 0, False, False),
        (one(role=Role.ADMIN), None, 1, False, False),
        (one(role=Role.ADMIN), None, 0, True, False),
        (one(), None, 0, False, False),
        (None, one(), 0, False, False),
    ],
)
def test_the_last_admin_stays_unless_the_owner_says_so(
    before: Operator | None, after: Operator | None, others: int, is_owner: bool, refused: bool
) -> None:
    change = Change(before=before, after=after)
    found = refusal_of_last(change, others=others, users=0, signed_in=False, is_owner=is_owner)
    assert (found is not None) == refused


@pytest.mark.parametrize(
    ("users", "signed_in", "said"),
    [(1, True, None), (1, False, "do it signed in as one of them"), (0, True, "ann is the last admin: make")],
)
def test_users_count_as_admins_who_can_come_in_where_one_of_them_has(
    users: int, signed_in: bool, said: str | None
) -> None:
    """Fails when a name that was mistyped, or no proxy vouches for, is all that is left of the admins."""
    change = Change(before=one(role=Role.ADMIN), after=None)
    found = refusal_of_last(change, others=0, users=users, signed_in=signed_in, is_owner=False)
    assert (found is None) == (said is None)
    assert said is None or said in str(found)
    assert refusal_of_last(change, others=0, users=users, signed_in=False, is_owner=True) is None


def test_everybody_is_told_by_what_they_have_their_rights() -> None:
    standing = Standing(name="ann", role=Role.OPERATOR, edit=True)
    group, token = one("oncall", edit=True), one("ci", kind=Kind.TOKEN, role=Role.VIEWER)
    user = one("ann", kind=Kind.USER, role=Role.VIEWER)
    me = Me(standing=standing, actor="ann (role ann)", by=(one(), group, token, user), is_owner=False)
    assert me.lines() == [
        "the role ann: operator",
        "a member of the role oncall: operator, edits",
        "the token of ci: viewer",
        "signed in as the user ann: viewer",
    ]
    assert me.rights == [Right.SEE, Right.ACT, Right.EDIT]
    nobody = Me(standing=Standing(name="eve", role=None), actor="eve", by=(), is_owner=False)
    assert (nobody.rights, nobody.lines()[0][:8]) == ([], "nothing;")
