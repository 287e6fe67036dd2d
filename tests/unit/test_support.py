"""What the tests stand on: waiting with a deadline, and where the stack comes from."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.stack import named_stack
from tests.support.wait import eventually, eventually_async

ALL = {
    "PACKHORSE_DATABASE_URL": "postgresql://d",
    "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": "k:1",
    "PACKHORSE_REGISTRY_URL": "http://r",
}


def test_what_is_true_in_the_end_is_returned() -> None:
    answers = iter([0, None, 7])
    assert eventually(lambda: next(answers), what="seven") == 7


def test_what_never_comes_true_is_named_with_what_was_seen_last() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.05 s: the moon; seen last: \[\]"):
        eventually(list, what="the moon", timeout=0.05)


def test_an_assertion_inside_counts_as_not_yet_and_any_other_error_ends_the_wait() -> None:
    def asserts() -> bool:
        raise AssertionError("three of five rows")

    with pytest.raises(AssertionError, match="three of five rows"):
        eventually(asserts, what="five rows", timeout=0.05)
    with pytest.raises(ZeroDivisionError):
        eventually(lambda: 1 / 0, what="never")


def test_coroutines_are_waited_for_in_the_same_way() -> None:
    answers = iter([0, 7])

    async def fact() -> int:
        return next(answers)

    async def never() -> None:
        return None

    assert asyncio.run(eventually_async(fact, what="seven")) == 7
    with pytest.raises(AssertionError, match="the moon"):
        asyncio.run(eventually_async(never, what="the moon", timeout=0.05))


def test_the_environment_names_a_stack_whole_or_not_at_all() -> None:
    named = named_stack(ALL)
    assert named is not None
    assert named.variables() == ALL
    assert named_stack({}) is None
    with pytest.raises(RuntimeError, match="PACKHORSE_REGISTRY_URL not: set all three or none"):
        named_stack({name: value for name, value in ALL.items() if "REGISTRY" not in name})


def test_ctrl_c_reaches_children_of_tests_that_run_in_the_background() -> None:
    """Fails when what was started with SIGINT ignored hands that on: a child that waits for Ctrl-C would wait for ever."""
    child = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    in_background = (
        "import signal, subprocess, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); import tests.conftest; "
        f"subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    )
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", in_background],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "True\n"
