"""What goes wrong, as the API says it: one table from the tree of errors to status and code. Pure: no I/O."""

from dataclasses import dataclass, field

from packhorse.core.errors import (
    Forbidden,
    InfrastructureError,
    MessageFault,
    NotReady,
    NotSignedIn,
    OwnershipLost,
    PackhorseError,
    SettingsError,
    UnknownId,
    UsageError,
)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 5
"""Seconds after which a client may ask again when something underneath is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """
    Why a request was not answered, by RFC 9457.

    Attributes:
        code: One word for programs; `type` is made of it.
        title: The same for all problems of the code.
        detail: What was wrong this time, and what to do; holds no payload, key or secret.
        errors: Of a request that is not as the document asks: where, and what is wrong there.
        headers: To be sent beside it.
    """

    status: int
    code: str
    title: str
    detail: str
    errors: tuple[tuple[str, str], ...] = ()
    headers: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Return the body."""
        more = (
            {"errors": [{"where": where, "said": said} for where, said in self.errors]} if self.errors else {}
        )
        return {
            "type": f"urn:packhorse:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            **more,
        }


class Refused(Exception):
    """Carry a problem of the request itself, found before anything was done, to where it is answered."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


_RETRY = {"Retry-After": str(RETRY_AFTER)}
_SIGN_IN = {"WWW-Authenticate": 'Bearer realm="packhorse"'}
_BY_CLASS: tuple[tuple[type[PackhorseError], int, str, str, dict[str, str]], ...] = (
    (NotSignedIn, 401, "not-signed-in", "Nobody is signed in", _SIGN_IN),
    (Forbidden, 403, "forbidden", "The right for it is missing", {}),
    (SettingsError, 503, "not-set-up", "The console is not set up for it", {}),
    (NotReady, 503, "not-ready", "A table, topic, right or migration is missing", {}),
    (UnknownId, 404, "unknown-id", "The id is not known here", {}),
    (MessageFault, 400, "undecodable", "The message can't be decoded", {}),
    (UsageError, 400, "usage", "The request can't be carried out", {}),
    (OwnershipLost, 409, "lost", "Somebody has acted, or owns it by now", {}),
    (InfrastructureError, 503, "away", "Database, broker or registry does not answer", _RETRY),
)
"""Which error is which problem; the first that fits."""


def problem_of(error: PackhorseError) -> Problem | None:
    """
    Return the problem that *error* is to the caller; None for one that is nobody's but ours.

    >>> problem_of(UnknownId("message 7 is not in quarantine")).status
    404
    >>> problem_of(PackhorseError("what is that?")) is None
    True
    """
    for kind, status, code, title, headers in _BY_CLASS:
        if isinstance(error, kind):
            return Problem(status=status, code=code, title=title, detail=str(error), headers=headers)
    return None


def too_many(seconds: float) -> Problem:
    """Return the problem of an address whose tokens were refused again and again."""
    return Problem(
        status=429,
        code="too-many-sign-ins",
        title="Too many tokens were refused",
        detail="too many tokens from this address were refused; wait, and use a token that is known",
        headers={"Retry-After": str(max(1, int(seconds) + 1))},
    )


def unexpected(number: str) -> Problem:
    """Return the problem of an error that nobody expected; the log has more under *number*."""
    return Problem(
        status=500,
        code="unexpected",
        title="An error that nobody expected",
        detail=f"something went wrong in the console; its log says more under {number}; see what is true now before you act again",
    )


NO_SUCH_PAGE = Problem(
    status=404,
    code="no-such-page",
    title="There is no such page",
    detail="`after` is no position of ours; take it from `next` of the page before",
)
OTHER_MESSAGE = Problem(
    status=409,
    code="other-message",
    title="The order is of another message",
    detail="the order of a preview goes to the message that was previewed; nothing was done",
)


_BY_STATUS: dict[int, tuple[str, str]] = {
    400: ("malformed", "The request can't be read"),
    404: ("no-such-route", "There is no such route"),
    405: ("no-such-method", "The route has no such method"),
    408: ("too-slow", "The request did not arrive in time"),
    413: ("too-large", "The request's body is too large"),
    415: ("no-json", "The body is no JSON"),
    421: ("other-host", "The console has another name"),
    422: ("invalid", "The request is not as the document asks"),
}


def of_status(
    status: int,
    detail: str,
    *,
    errors: tuple[tuple[str, str], ...] = (),
    headers: dict[str, str] | None = None,
) -> Problem:
    """Return the problem of a request that no act or look was made of."""
    code, title = _BY_STATUS.get(status, ("refused", "The request is refused"))
    return Problem(status=status, code=code, title=title, detail=detail, errors=errors, headers=headers or {})
