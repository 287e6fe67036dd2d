"""Pages: signing in and out."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from packhorse.console.api.fastapi.answers import problem_or_log
from packhorse.console.api.problem import Refused
from packhorse.console.pages.doorkeeper import Doorkeeper, Kept
from packhorse.console.pages.fastapi.answers import onward, page
from packhorse.console.pages.fastapi.joints import At, Form
from packhorse.console.pages.origins import path_on_here
from packhorse.core.errors import NotSignedIn

router = APIRouter()


@router.get("/sign-in")
def sign_in(request: Request, next: str | None = None) -> Response:  # noqa: A002 the name in the address
    """Show the ways in, or go on for whoever is in already."""
    if getattr(request.state, "desk", None) is not None:
        return onward(path_on_here(next))
    return _door(request, onto=next)


@router.post("/sign-in")
def sign_in_by_token(request: Request, form: Form) -> Response:
    """Sign in whoever holds the token."""
    keeper: Doorkeeper = request.app.state.keeper
    try:
        kept = keeper.by_token(form.get("token", ""), address=_address_of(request))
    except (NotSignedIn, Refused) as error:
        return _door(request, onto=form.get("next"), error=error)
    return _in(request, kept, form.get("next"))


@router.get("/sign-in/link")
def link(request: Request, word: str = "") -> Response:
    """Ask whether the link is to be used: programs that look at links before people do would use it up."""
    return page("link.html", getattr(request.state, "desk", None), word=word)


@router.post("/sign-in/link")
def sign_in_by_link(request: Request, form: Form) -> Response:
    """Sign in by a link that is good once, or make one and tell of it where the console runs."""
    keeper: Doorkeeper = request.app.state.keeper
    if "word" not in form:
        return _door(request, onto=form.get("next"), told=True, made=keeper.make_link())
    try:
        kept = keeper.by_link(form["word"], address=_address_of(request))
    except (NotSignedIn, Refused) as error:
        return _door(request, onto=None, error=error)
    return _in(request, kept, form.get("next"))


@router.post("/sign-out")
def sign_out(request: Request, desk: At) -> Response:
    """End the session, also for whoever has copied its cookie."""
    request.app.state.keeper.end(desk.session)
    answer = onward("/sign-in")
    answer.headers["Set-Cookie"] = request.state.cookie.gone()
    answer.headers["Clear-Site-Data"] = '"cache"'
    return answer


def _door(
    request: Request,
    *,
    onto: str | None,
    error: Exception | None = None,
    told: bool = False,
    made: bool = False,
) -> Response:
    keeper: Doorkeeper = request.app.state.keeper
    problem = None if error is None else problem_or_log(error)
    return page(
        "sign-in.html",
        None,
        status=200 if problem is None else problem.status,
        onto=path_on_here(onto),
        problem=problem,
        ways=keeper.ways,
        told=told,
        made=made,
    )


def _in(request: Request, kept: Kept, onto: str | None) -> Response:
    assert kept.cookie is not None, "a new session has a cookie"
    answer = onward(path_on_here(onto))
    answer.headers["Set-Cookie"] = request.state.cookie.keeping(kept.cookie)
    return answer


def _address_of(request: Request) -> str:
    return "" if request.client is None else request.client.host
