"""How answers leave: the JSON of the command line, in ASCII, and problems in their one form."""

import traceback
from pathlib import Path
from typing import Any

from fastapi.responses import Response

from packhorse.console.api.problem import MEDIA_TYPE, Problem, Refused, problem_of, unexpected
from packhorse.console.output import json_text
from packhorse.core import logs
from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import PackhorseError

_log = logs.logger("console")


class JsonAnswer(Response):
    """Send a value as the `--json` of the commands prints it."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes of the body."""
        return json_text(content).encode()


def refusal(problem: Problem) -> Response:
    """Return *problem* as an answer."""
    return Response(
        json_text(problem.as_dict()),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=problem.headers,
    )


def refusal_of(error: Exception) -> Response:
    """Return what *error* is to the caller, as an answer."""
    return refusal(problem_or_log(error))


def problem_or_log(error: Exception) -> Problem:
    """Return what *error* is to the caller; one that nobody expected goes to the log, and the caller gets its number."""
    if isinstance(error, Refused):
        return error.problem
    problem = problem_of(error) if isinstance(error, PackhorseError) else None
    if problem is None:
        number = str(SYSTEM_CHANCE.token())
        # Without its text: a driver's error may quote what a message holds.
        _log.error("unexpected error", number=number, error=type(error).__name__, place=_place_of(error))
        problem = unexpected(number)
    return problem


def _place_of(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
