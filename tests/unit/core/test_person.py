"""Who asks, and what the database's answer about them means."""

import shlex
from typing import Any

import pytest

from packhorse.core.errors import Forbidden, UsageError
from packhorse.core.person import Person, hash_of
from packhorse.core.rights import Role, Standing, standing_of

HASH = hash_of("phk_x")
NOBODY = (None, None, None, None, None)


@pytest.mark.case("O-13")
@pytest.mark.parametrize(
    "given",
    [
        {"token_hash": HASH, "signed_in": "ann"},
        {"token_hash": HASH, "claimed": "ann"},
        {"signed_in": "ann", "claimed": "bob"},
    ],
)
def test_nobody_comes_in_by_two_ways_at_once(given: dict[str, Any]) -> None:
    """Fails when it is left to each adapter which of two names counts."""
    with pytest.raises(UsageError, match="one of them, or none"):
        Person(user="web", **given)


@pytest.mark.case("O-13")
@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        " ann",
        "ann ",
        "x" * 64,
        "x" * 65,
        "a\nb",
        "a\x00b",
        "a\x1b[2J",
        "a\u202eb",
        "a\u00a0b",
        "a\udce4b",
    ],
)
def test_a_name_that_can_not_be_seen_as_it_is_signs_nobody_in(name: str) -> None:
    """Fails when a proxy's header reaches the database or the record with characters that hide what they are."""
    with pytest.raises(UsageError, match="is not allowed: 1 to 63 printable") as refused:
        Person(user="web", signed_in=name)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("wrong", [b"", HASH[:-1], b"phk_x"])
def test_what_is_no_hash_is_not_asked_for(wrong: bytes) -> None:
    with pytest.raises(UsageError, match="SHA-256 has 32"):
        Person(user="api", token_hash=wrong)


@pytest.mark.case("O-14")
@pytest.mark.parametrize(
    ("person", "actor"),
    [
        (Person(user="root"), "root (role ann)"),
        (Person(user="root", claimed="bob"), "bob (claimed by root, role ann)"),
        (Person(user="web", token_hash=HASH), "ann (token)"),
        (Person(user="web", signed_in="ann"), "ann (signed in)"),
    ],
)
def test_the_record_says_by_which_way_somebody_of_a_name_came(person: Person, actor: str) -> None:
    assert person.actor(Standing(name="ann", role=Role.VIEWER)) == actor
    assert person.is_role == ("role" in actor)


def test_a_user_is_told_what_they_lack_and_the_command_that_gives_it() -> None:
    with pytest.raises(Forbidden) as unknown:
        standing_of(NOBODY, by_token=False, signed_in="ann@example.org")
    command = "packhorse operators add ann@example.org --user --role viewer"
    assert str(unknown.value) == f"ann@example.org has no rights here; an admin gives them with `{command}`"
    with pytest.raises(Forbidden) as expired:
        standing_of(("ann", "admin", True, True, True), by_token=False, signed_in="ann")
    assert str(expired.value).startswith("ann had rights here that are expired; an admin gives them with `")
    good = standing_of(("ann", "admin", True, False, False), by_token=False, signed_in="ann")
    assert good == Standing(name="ann", role=Role.ADMIN, personal=True)


@pytest.mark.case("X-07")
@pytest.mark.parametrize("name", ["o'brien", "a; rm -rf ~", "$(reboot)", "ann smith", "ann --role admin"])
def test_the_command_that_is_offered_gives_rights_to_that_name_whatever_it_is(name: str) -> None:
    """Fails when who pastes the command runs a part of somebody's name."""
    with pytest.raises(Forbidden) as unknown:
        standing_of(NOBODY, by_token=False, signed_in=name)
    said = str(unknown.value)
    command = said[said.index("`") + 1 : said.rindex("`")]
    assert shlex.split(command) == ["packhorse", "operators", "add", name, "--user", "--role", "viewer"]
