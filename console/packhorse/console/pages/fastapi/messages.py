"""Pages: the whole way of one message."""

from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response

from packhorse.console.api.models.base import Name
from packhorse.console.api.problem import Refused, of_status
from packhorse.console.facts import State
from packhorse.console.pages.fastapi.answers import page
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Query, read
from packhorse.console.pages.way import way_of
from packhorse.console.pages.wording import Worded, first, told_of
from packhorse.console.quarantine.service import Shown
from packhorse.console.service import Service
from packhorse.console.truth.moments import utc
from packhorse.console.truth.status import NOT_ASKED
from packhorse.core.text import inert

router = APIRouter(prefix="/messages")
MOST_PANELS = 3
"""Groups in which a message rests whose panels are shown at once; for more of them one is asked for."""


class MessageAsked(Asked):
    """
    How one message is looked at.

    Attributes:
        group, topic: Whose branch comes first.
        search: Look into its topic for it, within bounds.
        show_key: Show its key.
    """

    group: Name | None = None
    topic: Name | None = None
    search: bool = False
    show_key: bool = False


@router.get("/{message_id}")
def message(service: Asking, desk: At, query: Query, message_id: str) -> Response:
    """Show where a message stands: its way so far, what comes next, and what a person can do."""
    found, asked = _id(message_id), read(MessageAsked, query)
    told = service.truth.told(found, search=asked.search, local=utc)
    status = told.status
    way = way_of(status)
    words = told_of(way, told.explanation, is_job=status.job is not None, here=f"/messages/{found}")
    branches = first(words, asked.group, asked.topic)
    return page(
        "message.html",
        desk,
        found=status,
        way=way,
        words=words,
        branches=branches,
        rests=_rests(service, branches),
        asked=asked,
        now=status.around.now,
        may_search=status.search is NOT_ASKED,
        # a search reads thousands of records: once, when somebody asks for it
        look_again=None if asked.search else way.look_again,
    )


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Refused(
            of_status(
                404,
                f"{inert(text, limit=80)} is no id of a message: those look like 019b76da-a800-7000-8000-000000000000",
            )
        ) from None


def _rests(service: Service, branches: list[Worded]) -> tuple[Shown, ...]:
    """Return what rests in quarantine, with its payload masked, of the first of *branches*."""
    held = [each.branch.status.quarantined for each in branches if each.branch.status is not None]
    return tuple(
        service.quarantine.show(each.id, group=each.group, topic=each.topic, payload=True)
        for each in [one for one in held if one is not None and one.state is State.QUARANTINED][:MOST_PANELS]
    )
