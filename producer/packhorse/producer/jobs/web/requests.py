"""What a request asks for: the address, the headers and the body, each checked before anything is done."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, quote
from uuid import UUID

from packhorse.core.acts import checked_why
from packhorse.core.errors import SettingsError, UsageError
from packhorse.producer.jobs.rows import MAX_NAME
from packhorse.producer.jobs.web.answers import Refused, problem
from packhorse.producer.jobs.web.model import Act, header_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,63}\Z")
"""How kinds are named in addresses."""
BODY_WITHIN: Final = 30.0
"""Seconds that a body may take to arrive."""
_ID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")
_METHODS: Final = {Act.SUBMIT: ("POST",), Act.READ: ("GET", "HEAD"), Act.CANCEL: ("POST",)}


def checked_kind(name: str) -> str:
    """
    Return *name*, of a kind of jobs in addresses.

    Raises:
        SettingsError: It is not allowed.
    """
    if not KIND.match(name) or _ID.match(name):
        raise SettingsError(
            f"submit={name!r} is not allowed: 1 to 64 small letters, digits and hyphens, a letter first"
        )
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """
    What the address stands for.

    Attributes:
        base: The address that all others are below.
        kind: What is to be submitted, or None.
        job_id: What is to be read or cancelled, or None.
    """

    act: Act
    base: str
    kind: str | None = None
    job_id: UUID | None = None


def target_of(scope: Mapping[str, Any]) -> Target:
    """
    Return what a request's address and method ask for.

    Raises:
        Refused: 404 for an address that is none of ours, 405 for a method that it has not.
    """
    root, path = scope.get("root_path", "").rstrip("/"), scope["path"]
    # Whoever mounts us leaves its own part in the path, as the standard says, or takes it away.
    inside = path[len(root) :] if root and (path == root or path.startswith(f"{root}/")) else path
    found = _of_path(inside.removeprefix("/").split("/"), quote(root))
    allowed = _METHODS[found.act]
    if scope["method"] not in allowed:
        named = ", ".join(allowed)
        raise Refused(problem(405, f"this address has {named}", allow=named))
    return found


def _of_path(parts: list[str], base: str) -> Target:
    match parts:
        case [one] if KIND.match(one) and not _ID.match(one):
            return Target(act=Act.SUBMIT, base=base, kind=one)
        case [one] if _ID.match(one):
            return Target(act=Act.READ, base=base, job_id=UUID(one))
        case [one, "cancel"] if _ID.match(one):
            return Target(act=Act.CANCEL, base=base, job_id=UUID(one))
    raise Refused(problem(404, "jobs are submitted at /<kind>, read at /<id> and cancelled at /<id>/cancel"))


def request_key_of(scope: Mapping[str, Any]) -> str | None:
    """
    Return the Idempotency-Key, without the quotation marks that it may stand in.

    Raises:
        Refused: It comes twice, is empty or too long, or is no printable ASCII.
    """
    found = [value for name, value in scope["headers"] if name == b"idempotency-key"]
    if not found:
        return None
    text: str = found[0].decode("latin-1").strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if len(found) > 1 or not 1 <= len(text) <= MAX_NAME or not (text.isascii() and text.isprintable()):
        raise Refused(
            problem(
                400, f"Idempotency-Key is to come once, with 1 to {MAX_NAME} printable characters of ASCII"
            )
        )
    return text


def seconds_of(scope: Mapping[str, Any], *, most: float) -> float:
    """
    Return how long the answer may wait for a change, from the query's `wait`; more than *most* counts as that.

    Raises:
        Refused: It is no number of seconds.
    """
    said = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True).get("wait")
    if said is None:
        return 0.0
    if len(said) != 1 or not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", said[0]):
        raise Refused(problem(400, f"wait is to be a number of seconds, from 0 to {most:g}"))
    return min(float(said[0]), most)


def check_json(scope: Mapping[str, Any]) -> None:
    """
    Check that the body is said to be JSON in UTF-8; a form of another site can't say that without being asked first.

    Raises:
        Refused: It is said to be something else, or nothing is said.
    """
    said = (header_of(scope, "content-type") or "").lower().replace(" ", "").replace('"', "")
    media, _, parameters = said.partition(";")
    if media != "application/json" or parameters not in {"", "charset=utf-8"}:
        raise Refused(problem(415, "send Content-Type: application/json, in UTF-8"))
    if (header_of(scope, "content-encoding") or "identity").lower() != "identity":
        raise Refused(problem(415, "send the body as it is, without Content-Encoding"))


async def read_body(scope: Mapping[str, Any], receive: Receive, *, limit: int) -> bytes:
    """
    Return the body, of *limit* bytes at most; no more than that is ever held.

    Raises:
        Refused: It is larger, takes too long, or the connection ended.
    """
    too_large = problem(413, f"a body has {limit} bytes at most", connection="close")
    said = header_of(scope, "content-length")
    if said is not None and said.isascii() and said.isdigit() and (len(said) > 18 or int(said) > limit):
        raise Refused(too_large)
    parts: list[bytes] = []
    try:
        async with asyncio.timeout(BODY_WITHIN):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(problem(400, "the connection ended before the body did"))
                parts.append(message.get("body", b""))
                if sum(map(len, parts)) > limit:
                    raise Refused(too_large)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Refused(
            problem(408, f"the body did not arrive within {BODY_WITHIN:g} s", connection="close")
        ) from None


def object_of(body: bytes) -> dict[str, Any]:
    """
    Return the JSON object that *body* is.

    Raises:
        Refused: It is none: not UTF-8, no JSON, a name twice, a number that JSON has not, or too deep.
    """
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise Refused(problem(400, f"the body is no UTF-8, from byte {error.start} on")) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Refused(problem(400, f"the body is no JSON: {error.msg} at {where}")) from None
    except (ValueError, RecursionError):
        raise Refused(
            problem(400, "the body is no JSON that is taken: a name twice, a number without end, or too deep")
        ) from None
    if not isinstance(value, dict):
        raise Refused(problem(400, "the body is to be a JSON object: {…}"))
    return value


def why_of(body: bytes) -> str | None:
    """
    Return the reason that the body of a cancelling gives; None when it gives none.

    Raises:
        Refused: It says something else, or the reason is too long.
    """
    said = object_of(body) if body else {}
    if set(said) - {"why"} or not isinstance(said.get("why", ""), str):
        raise Refused(problem(422, 'send {} or {"why": "…"}'))
    try:
        return checked_why(said["why"]) if said else None
    except UsageError:
        raise Refused(problem(422, "why is a text of 1 to 500 characters")) from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(text)
