"""Names that an application gives to what belongs to a job."""

from typing import Final

from packhorse.core.errors import UsageError
from packhorse.core.text import inert

NAME_MAX: Final = 200
"""Longest name of a step or an effect, in characters."""


def checked_name(name: object, *, what: str) -> str:
    """
    Return *name* when it can name *what* of a job.

    >>> checked_name("charge", what="effect")
    'charge'

    Raises:
        UsageError: It is no text, empty, longer than 200 characters, or has characters that do not print.
    """
    if isinstance(name, str) and 0 < len(name) <= NAME_MAX and name.isprintable():
        return name
    given = inert(repr(name), limit=60)
    raise UsageError(
        f"the name of a job's {what} is {given}: 1 to {NAME_MAX} characters that print are allowed"
    )
