"""How pages leave: HTML, and problems as pages that say what happened, what is true now and where to go on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fastapi.responses import HTMLResponse, RedirectResponse, Response

from packhorse.console.api.fastapi.answers import problem_or_log
from packhorse.console.api.problem import Problem
from packhorse.console.pages.jinja import rendered
from packhorse.console.pages.sessions import Session
from packhorse.core.errors import AlreadyDone
from packhorse.core.rights import Right, Standing

_NEXT = {
    401: "Nothing was done. Sign in, and look at what is true now before you ask again.",
    403: "Nothing was done. An admin can give the right.",
    404: "It may never have been here, or is older than what is kept. The search above finds messages and jobs by id or key.",
    409: "Nothing was done now. Look at how it stands, and preview again.",
    429: "Wait a little, and try again.",
    503: "What the page can't show is not lost. It goes on by itself once that answers again.",
}
"""What a person can do about each kind of problem, where the problem itself does not say it."""
_UNSURE = "Whether it was done stands on the record. To send the form again is safe: it is done once at most."
"""The same where a form was sent and the console itself, or what it stands on, failed."""
SENT = "/sent"
"""Where it is told whether the form of a number was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """
    Who sits at the page, and where.

    Attributes:
        who: How they stand on the record.
        mark: What the forms of the session carry.
        path: Of this page, with its query, to come back to.
        number: Draws the number of a form.
    """

    session: Session
    standing: Standing
    who: str
    mark: str
    path: str
    number: Callable[[], UUID]

    @property
    def may_act(self) -> bool:
        """Return whether acts are offered; the service decides, in the transaction of each."""
        return Right.ACT in self.standing.rights

    @property
    def may_administer(self) -> bool:
        """Return whether acts of admins are offered."""
        return Right.ADMINISTER in self.standing.rights

    @property
    def may_see_personal(self) -> bool:
        """Return whether fields that are personal are offered unmasked."""
        return Right.PERSONAL in self.standing.rights

    @property
    def may_edit(self) -> bool:
        """Return whether an edited copy is offered."""
        return Right.EDIT in self.standing.rights


def page(template: str, desk: Desk | None, *, status: int = 200, **values: Any) -> Response:
    """Return the page that *template* makes of *values* for whoever sits at *desk*."""
    return HTMLResponse(rendered(template, desk=desk, **values), status_code=status)


def onward(path: str) -> Response:
    """Send the browser to *path* by GET, so that to load the page again repeats nothing."""
    return RedirectResponse(path, status_code=303)


def trouble(
    problem: Problem,
    desk: Desk | None,
    *,
    back: str | None = None,
    once: UUID | None = None,
    onto: str | None = None,
) -> Response:
    """
    Return *problem* as a page.

    Args:
        problem: What went wrong.
        desk: Whose page it is; None: nobody is signed in, or it is not known who is.
        back: Where how things stand can be seen.
        once: The number of the form that was sent.
        onto: Where whoever signs in goes on.
    """
    unsure = once is not None and problem.status >= 500
    answer = page(
        "problem.html",
        desk,
        status=problem.status,
        problem=problem,
        next_step=_UNSURE if unsure else _NEXT.get(problem.status),
        back=back,
        asked=f"{SENT}/{once}" if unsure else None,
        onto=onto,
    )
    for name, value in problem.headers.items():
        if name != "WWW-Authenticate":  # browsers would ask for a password
            answer.headers[name] = value
    return answer


def no_rights(name: str) -> Response:
    """Return the page for whom the proxy signs in as *name*, and who may do nothing here: to sign in again would lead nowhere."""
    return page("no-rights.html", None, status=403, name=name)


def trouble_of(
    error: Exception,
    desk: Desk | None,
    *,
    back: str | None = None,
    once: UUID | None = None,
    onto: str | None = None,
) -> Response:
    """Return what *error* is to the person, as a page; of a form that has done its act before, what it has done."""
    if isinstance(error, AlreadyDone) and once is not None:
        return onward(f"{SENT}/{once}")
    return trouble(problem_or_log(error), desk, back=back, once=once, onto=onto)
