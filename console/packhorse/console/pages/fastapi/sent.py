"""Pages: whether the form of a number was done, for whoever got no answer to it."""

from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response

from packhorse.console.pages.fastapi.answers import SENT, page
from packhorse.console.pages.fastapi.joints import Asking, At
from packhorse.console.pages.sent import stands_at

router = APIRouter()


@router.get(f"{SENT}/{{once:uuid}}")
def sent(service: Asking, desk: At, once: UUID) -> Response:
    """Tell whether what the form asks for is on the record, and where it leads."""
    done = service.audit.done_by(once)
    return page("sent.html", desk, done=done, lead=stands_at(done) if done else None)
