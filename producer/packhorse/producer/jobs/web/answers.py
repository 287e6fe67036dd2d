"""What goes back: a status, headers and a body; and what each error is to a caller. Pure: no I/O."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from packhorse.core.errors import (
    Forbidden,
    InfrastructureError,
    InvalidMessage,
    NotSignedIn,
    PackhorseError,
    PayloadTooLarge,
    ValueMismatch,
)
from packhorse.core.text import inert

AWAY_RETRY: Final = 5
"""Seconds after which a caller may ask again when the database is away."""
_MOST_DETAIL = 500
_ALWAYS: Final = {
    "cache-control": "private, no-cache",
    "vary": "authorization, cookie",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    One answer.

    Attributes:
        headers: Beside those that every answer has.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        """Return all headers as ASGI has them; a body of no bytes has a length of 0, but for 204 and 304, which have none."""
        length = {} if self.status in {204, 304} else {"content-length": str(len(self.body))}
        every = {**_ALWAYS, **length, **self.headers}
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in every.items()]


class Refused(Exception):
    """Carry the answer to a request that was found wanting to where it is sent."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


def json_answer(status: int, value: Mapping[str, Any], **headers: str) -> Answer:
    """Return *value* as an answer; names of *headers* have underscores for hyphens."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(
        status=status, headers={"content-type": "application/json", **named}, body=json_bytes(value)
    )


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """Return *value* as JSON in ASCII, so that no reader can take its bytes for something else."""
    return json.dumps(value, allow_nan=False).encode("ascii")


_TITLES: Final = {
    400: ("malformed", "The request can't be read"),
    401: ("not-signed-in", "You are not signed in"),
    403: ("forbidden", "You may not do that"),
    404: ("not-found", "There is nothing here"),
    405: ("no-such-method", "This address has no such method"),
    408: ("too-slow", "The request did not arrive in time"),
    409: ("conflict", "It can't be done as things stand"),
    413: ("too-large", "The request's body is too large"),
    415: ("no-json", "The body is no JSON"),
    422: ("invalid", "The request is not as it should be"),
    500: ("unexpected", "An error that nobody expected"),
    503: ("away", "It can't be done just now"),
}


def problem(status: int, detail: str, *, more: Mapping[str, Any] | None = None, **headers: str) -> Answer:
    """Return a problem by RFC 9457; *detail* says what was wrong and what to do, and repeats nothing that was sent."""
    code, title = _TITLES[status]
    value = {
        "type": f"urn:packhorse:problem:{code}",
        "title": title,
        "status": status,
        "detail": inert(detail, limit=_MOST_DETAIL),
        "code": code,
        **(more or {}),
    }
    answer = json_answer(status, value, **headers)
    return Answer(
        status=status,
        headers={**answer.headers, "content-type": "application/problem+json"},
        body=answer.body,
    )


NO_SUCH_JOB: Final = problem(
    404, "no such job is here, or it is not yours; ask whoever submitted it for its address"
)
"""One answer, whether there is none or it is somebody else's: nobody learns which."""
FORBIDDEN: Final = problem(403, "who you are has not the right for this; nothing was done")
OTHER_INPUT: Final = "this Idempotency-Key was sent with another request before; send the same body to be given that job, or a new key"


def answer_of(error: PackhorseError) -> Answer | None:
    """
    Return what *error* is to the caller; None for one that is nobody's but ours.

    >>> answer_of(NotSignedIn("no token")).status
    401
    >>> answer_of(PackhorseError("what is that?")) is None
    True
    """
    match error:
        case NotSignedIn():
            return problem(401, "sign in, and send the request again", www_authenticate="Bearer")
        case Forbidden():
            return problem(403, str(error) or "you have not the right for this; nothing was done")
        case ValueMismatch():
            where = inert(error.path, limit=200) or "(the whole)"
            wrong = [{"field": where, "allowed": inert(error.allowed, limit=_MOST_DETAIL)}]
            return problem(422, f"{where}: {error.allowed}", more={"errors": wrong})
        case PayloadTooLarge() | InvalidMessage():
            return problem(422, str(error))
        case InfrastructureError():
            detail = "the database does not answer; send the same request again, with the same Idempotency-Key if it had one"
            return problem(503, detail, retry_after=str(AWAY_RETRY))
        case _:
            return None


def unexpected(number: str) -> Answer:
    """Return the answer to an error that nobody expected; the log has more under *number*."""
    detail = f"something went wrong; whoever runs this finds more in the log under {number}"
    return problem(500, detail, more={"number": number})
