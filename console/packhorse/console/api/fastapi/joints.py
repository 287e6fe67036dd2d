"""What routes are made with: the service of whoever asks, and the marks that the document carries."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request

from packhorse.console.api.problem import NO_SUCH_PAGE, Refused
from packhorse.console.service import Service
from packhorse.core.errors import UsageError
from packhorse.core.rights import Right

Position = TypeVar("Position")


async def _service_of(request: Request) -> Service:
    found: Service = request.app.state.services(request.state.person)
    return found


Asking = Annotated[Service, Depends(_service_of)]
"""The service of the holder of the request's token."""


def needs(right: Right) -> dict[str, Any]:
    """Return what the document says of the right that a route needs; the service checks it, in the transaction of the act."""
    return {"x-right": right.value}


def behind(token: str | None, read: Callable[[str], Position]) -> Position | None:
    """
    Return the position that a page starts behind, as *read* makes it of *token*; None: the first page.

    Raises:
        Refused: There is no such page.
    """
    try:
        return None if token is None else read(token)
    except UsageError:
        raise Refused(NO_SUCH_PAGE) from None
