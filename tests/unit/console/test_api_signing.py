"""The token of a request, and the bound on refused ones."""

from typing import Any
from uuid import UUID

import pytest

from packhorse.console.api.problem import problem_of
from packhorse.console.api.signing import SignIns, token_in
from packhorse.core import errors
from packhorse.core.errors import NotSignedIn, PackhorseError
from packhorse.core.jobs import IllegalTransition

GOOD = "phk_" + "a" * 43


@pytest.mark.parametrize("header", [f"Bearer {GOOD}", f"bearer  {GOOD} "])
def test_a_token_is_read(header: str) -> None:
    assert token_in(header) == GOOD


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer x", f"Basic {GOOD}", f"Bearer {GOOD} x", f"Bearer {GOOD}\x00", GOOD],
)
def test_what_is_no_token_is_refused_and_not_repeated(header: str | None) -> None:
    with pytest.raises(NotSignedIn) as told:
        token_in(header)
    assert GOOD not in str(told.value)


def test_refused_tokens_run_out_and_come_back_with_time() -> None:
    bound = SignIns(burst=2, every=10)
    for _ in range(2):
        assert bound.wait("192.0.2.1", b"x", now=0) == 0
        bound.refused("192.0.2.1", b"x", now=0)
    assert bound.wait("192.0.2.1", b"x", now=0) == 10
    assert bound.wait("192.0.2.2", b"x", now=0) == 0
    assert bound.wait("192.0.2.1", b"x", now=4) == 6
    assert bound.wait("192.0.2.1", b"x", now=10) == 0


def test_a_token_that_was_known_passes_until_it_is_refused() -> None:
    bound = SignIns(burst=1, every=10)
    bound.known(b"good")
    bound.refused("192.0.2.1", b"bad", now=0)
    assert bound.wait("192.0.2.1", b"bad", now=0) > 0
    assert bound.wait("192.0.2.1", b"good", now=0) == 0
    bound.refused("192.0.2.1", b"good", now=0)
    assert bound.wait("192.0.2.1", b"good", now=0) > 0


def test_one_host_with_many_addresses_of_ipv6_is_one() -> None:
    bound = SignIns(burst=1, every=10)
    bound.refused("2001:db8::1", b"x", now=0)
    assert bound.wait("2001:db8::ffff", b"x", now=0) > 0
    assert bound.wait("2001:db8:0:1::1", b"x", now=0) == 0


def test_memory_is_bounded() -> None:
    bound = SignIns(burst=1, every=10, addresses=5, tokens=5)
    for number in range(100):
        bound.refused(f"192.0.2.{number}", b"x", now=0)
        bound.known(bytes([number]))
    assert len(bound._buckets) == 5
    assert len(bound._known) == 5
    assert bound.wait("192.0.2.1", b"x", now=0) == 0
    assert bound.wait("192.0.2.99", b"x", now=0) > 0


def subclasses(kind: type[PackhorseError]) -> set[type[PackhorseError]]:
    return {kind} | {each for child in kind.__subclasses__() for each in subclasses(child)}


MORE: dict[type[PackhorseError], dict[str, Any]] = {
    errors.ValueMismatch: {"path": "y"},
    errors.RequestKeyConflict: {"existing": UUID(int=1), "refused": UUID(int=2)},
}
"""What some errors are made with besides their text."""


def test_every_error_that_is_the_callers_has_a_status() -> None:
    """Fails when a class of the tree that a caller can cause becomes an error that nobody expected."""
    ours = {errors.PackhorseError, errors.KeysLocked, IllegalTransition}
    for kind in subclasses(PackhorseError):
        if not kind.__module__.startswith("packhorse.core"):
            continue
        made = kind("x", **MORE.get(kind, {}))
        assert (problem_of(made) is None) == (kind in ours), kind
