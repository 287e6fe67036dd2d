"""What routes are made with: the service of whoever asks, and the marks that the document carries."""

from typing import Annotated, Any

from fastapi import Depends, Request

from packhorse.console.service import Service
from packhorse.core.rights import Right


async def _service_of(request: Request) -> Service:
    found: Service = request.app.state.services(request.state.person)
    return found


Asking = Annotated[Service, Depends(_service_of)]
"""The service of the holder of the request's token."""


def needs(right: Right) -> dict[str, Any]:
    """Return what the document says of the right that a route needs; the service checks it, in the transaction of the act."""
    return {"x-right": right.value}
