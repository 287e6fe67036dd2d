"""What routes are made with: the service of whoever asks, and the marks that the document carries."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import Depends, Request

from packhorse.console.api.problem import NO_SUCH_PAGE, OTHER_MESSAGE, Refused
from packhorse.console.quarantine.redrive import Order
from packhorse.console.quarantine.restoring.deciding import RestoreOrder
from packhorse.console.service import Service
from packhorse.core.errors import UsageError
from packhorse.core.rights import Right

Position = TypeVar("Position")
Ordered = TypeVar("Ordered", Order, RestoreOrder)


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


def checked_order(order: Ordered, message_id: UUID) -> Ordered:
    """
    Return *order* when it is about the message that the address names.

    Raises:
        Refused: It is about another.
    """
    if order.id != message_id:
        raise Refused(OTHER_MESSAGE)
    return order
