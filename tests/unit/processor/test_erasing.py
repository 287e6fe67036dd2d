"""What an application declares to erase a person's data, and whose."""

from typing import Any

import pytest

from packhorse.core.errors import UsageError
from packhorse.processor import Processor, Subject


def test_erasers_are_kept_in_their_order_and_stay_functions() -> None:
    app = Processor("figures")

    @app.eraser
    def first(connection: Any, subject: Subject) -> int:
        return 1

    @app.eraser
    def second(connection: Any, subject: Subject, *, hard: bool = False) -> None:
        return None

    assert app.erasers == (first, second)
    assert first(None, Subject(key="k")) == 1


def test_what_can_not_be_called_as_an_eraser_is_refused() -> None:
    app = Processor("figures")

    async def late(connection: Any, subject: Subject) -> int:
        return 0

    def lone(connection: Any) -> int:
        return 0

    def asking(connection: Any, subject: Subject, *, more: int) -> int:
        return more

    for function, said in ((late, "is async"), (lone, "must take"), (asking, "must take")):
        wrong: Any = function
        with pytest.raises(UsageError, match=said):
            app.eraser(wrong)
    assert app.erasers == ()


@pytest.mark.case("P8")
def test_a_subject_is_one_of_two_and_shows_nobody() -> None:
    """Fails when the representation of a subject, which may reach a log or a traceback, names it."""
    wrong: list[dict[str, Any]] = [
        {},
        {"key": "a", "path": "b", "value": "c"},
        {"path": "b"},
        {"value": "c"},
        {"key": ""},
        {"key": "a\0"},
        {"key": "a", "raw": b"a"},
        {"raw": b""},
    ]
    for given in wrong:
        with pytest.raises(UsageError):
            Subject(**given)
    assert repr(Subject(key="ann")) == "Subject(path=None)"
    assert repr(Subject(raw=b"ann")) == "Subject(path=None)"
    assert repr(Subject(path="owner", value="ann")) == "Subject(path='owner')"
