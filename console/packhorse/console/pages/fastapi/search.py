"""Pages: the search, from whatever somebody has of what they look for."""

from collections.abc import Iterator
from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import Response

from packhorse.console.facts import QuarantinedMessage
from packhorse.console.finding.model import MOST_OF_KEY, MOST_ROWS
from packhorse.console.pages.fastapi.answers import onward, page
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Query, read
from packhorse.console.pages.finding import LONGEST, Sought, hits, looked, not_looked, sought
from packhorse.console.quarantine.pages import Filter
from packhorse.console.service import Service
from packhorse.core.errors import UnknownId, UsageError

router = APIRouter(prefix="/search")


class SearchAsked(Asked):
    """What is looked for; as it is typed, for whatever is wrong with it is an answer too."""

    q: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """The newest message of a group of failures; None: `said` says why there is none to show."""

    newest: QuarantinedMessage | None = None
    said: str = ""


@router.get("")
def search(service: Asking, desk: At, query: Query) -> Response:
    """Find it: an id leads to its page at once, all else is looked for in what can be looked through at a bounded cost."""
    wanted = sought(read(SearchAsked, query).q)
    if wanted.id is not None:
        return onward(f"/{'jobs' if service.finding.is_job(wanted.id) else 'messages'}/{wanted.id}")
    if wanted.wrong is not None or not wanted.text:
        return page("search.html", desk, wanted=wanted, found=None, most=LONGEST)
    runs = tuple(_runs(service, wanted))
    found = service.finding.find(key=wanted.key, hashed=wanted.key_hash, name=wanted.text)
    place = None if wanted.place is None else service.finding.at(wanted.place)
    failures = None if wanted.print is None else _failures(service, wanted.print)
    return page(
        "search.html",
        desk,
        wanted=wanted,
        found=found,
        runs=runs,
        place=place,
        failures=failures,
        hits=hits(wanted, found, runs=runs, place=place)
        + int(failures is not None and failures.newest is not None),
        looked=looked(wanted, found),
        not_looked=not_looked(wanted),
        most_of_key=MOST_OF_KEY,
        most_rows=MOST_ROWS,
        most=LONGEST,
    )


def _runs(service: Service, wanted: Sought) -> Iterator[tuple[str, int, str]]:
    """Yield those of the wanted runs that are there: kind, number, state."""
    for kind, number in wanted.runs:
        try:
            if kind == "redrive":
                yield kind, number, service.redrives.find(number)[0].state
            else:
                yield kind, number, service.replays.show(number).state
        except UnknownId:
            continue


def _failures(service: Service, prefix: str) -> Failures:
    try:
        found = service.quarantine.page(Filter(failure=prefix, state=None), after=None, limit=1).messages
    except (UnknownId, UsageError) as error:
        return Failures(said=str(error))
    return Failures(newest=found[0] if found else None)
