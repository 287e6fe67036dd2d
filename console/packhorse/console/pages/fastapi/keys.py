"""Pages: one key of a group, what waits behind it, and its pause."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BeforeValidator

from packhorse.console.api.models.base import Key, Moment, Name, Why
from packhorse.console.api.models.flow import KeyHash
from packhorse.console.pages.fastapi.answers import Desk, onward, page
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Form, Query, come_back, read
from packhorse.console.pages.keyed import address, is_through, pause_offer, resume_offer, stages_of
from packhorse.console.pages.way import MOVING, RESTING
from packhorse.console.pages.wording import words_of
from packhorse.console.service import Service
from packhorse.console.truth.moments import utc
from packhorse.console.truth.service import KeyTold
from packhorse.core.errors import UsageError
from packhorse.processor.pausing.pauses import Scope
from packhorse.processor.record import key_hash as hash_of

router = APIRouter(prefix="/keys")
Ticked = Annotated[bool, BeforeValidator(lambda value: value == "yes")]


class KeyAsked(Asked):
    """
    Which key.

    Attributes:
        key, key_hash: One of them: the key itself, or its name in the tables.
        asked: What somebody has just asked for; how far that is is shown.
        was: It was so already, and nothing was done.
    """

    group: Name | None = None
    topic: Name | None = None
    key: Key | None = None
    key_hash: KeyHash | None = None
    asked: Literal["pause", "resume"] | None = None
    was: bool = False


class Named(Asked):
    """Exactly one key, by either name."""

    group: Name
    topic: Name
    key: Key | None = None
    key_hash: KeyHash | None = None

    @property
    def hashed(self) -> str:
        """Return the key as the tables name it; raises UsageError without exactly one name."""
        if self.key is not None and self.key_hash is None:
            return hash_of(self.key.encode())
        if self.key_hash is None or self.key is not None:
            raise UsageError("a key is named by itself or by its hash: one of them")
        return self.key_hash

    def path(self, **more: str) -> str:
        """Return where it is seen."""
        return address(self.group, self.topic, key=self.key, key_hash=self.key_hash, **more)


class Paused(Asked):
    """
    What a preview gives back to a pause, and the reason.

    Attributes:
        hash: Of the key that was previewed: a form does not carry every key as it is.
        anyway: Ticked by whoever means a group that nobody knows.
    """

    group: Name
    topic: Name
    key: Key
    hash: KeyHash
    anyway: Ticked = False
    why: Why


class Resumed(Named):
    """
    What a preview gives back to a resume, and the reason.

    Attributes:
        hash: Of the key that was previewed.
        since: When it was paused; where it was not, when that was seen.
    """

    hash: KeyHash
    since: Moment | None = None
    why: Why


@router.get("")
def key(service: Asking, desk: At, query: Query) -> Response:
    """Show how a group stands with one key; without one, what keys are paused, and how to ask for one."""
    asked = read(KeyAsked, query)
    if asked.group is None or asked.topic is None or (asked.key is None and asked.key_hash is None):
        missing = bool(query)
        return page(
            "keys.html", desk, asked=asked, is_incomplete=missing, everywhere=service.pausing.everywhere()
        )
    named = Named(group=asked.group, topic=asked.topic, key=asked.key, key_hash=asked.key_hash)
    told = _told(service, named)
    facts = told.facts
    stages = () if asked.asked is None else stages_of(facts, asked.asked)
    waits = asked.asked is not None and not is_through(facts, asked.asked)
    return page(
        "key.html",
        desk,
        asked=asked,
        facts=facts,
        standing=told.explanation.standing,
        words=words_of(told.explanation.parts[0], here="/keys"),
        stages=stages,
        look_again=MOVING if waits else RESTING,
    )


@router.get("/pause")
def offer_to_pause(service: Asking, desk: At, query: Query) -> Response:
    """Say what a pause of the key will do."""
    named = read(Named, query)
    if named.key is None:
        raise UsageError(
            "a key is paused by itself, since its hash does not say to which partition it belongs; name the key"
        )
    facts = _told(service, named).facts
    return page(
        "key-act.html",
        desk,
        offer=pause_offer(facts, named.key, desk.standing),
        ask_anyway=not facts.reads and facts.key is None,
    )


@router.post("/pause")
def pause(service: Asking, request: Request, form: Form) -> Response:
    """Pause the key, and show how far that is."""
    body = read(Paused, form)
    named = Named(group=body.group, topic=body.topic, key=body.key)
    come_back(request, named.path())
    check_same(named, body.hash)
    scope = Scope(topic=body.topic, key=body.key.encode())
    done = service.pausing.pause(body.group, scope, why=body.why, anyway=body.anyway)
    return onward(named.path(asked="pause", **_was(done=done)))


@router.get("/resume")
def offer_to_resume(service: Asking, desk: At, query: Query) -> Response:
    """Say what will happen once the key may go on."""
    named = read(Named, query)
    return _resume_page(desk, named, _told(service, named))


@router.post("/resume")
def resume(service: Asking, request: Request, form: Form) -> Response:
    """Let the key go on, and show how far that is."""
    body = read(Resumed, form)
    named = Named(group=body.group, topic=body.topic, key=body.key, key_hash=body.key_hash)
    come_back(request, named.path())
    check_same(named, body.hash)
    scope = Scope(
        topic=body.topic,
        key=None if body.key is None else body.key.encode(),
        key_hash=body.key_hash,
    )
    done = service.pausing.resume(body.group, scope, why=body.why, since=body.since).done
    return onward(named.path(asked="resume", **_was(done=done)))


def check_same(named: Named, previewed: str) -> None:
    """
    Check that the form has brought the key that was previewed: browsers change line ends, and pages write what can't be seen as escapes.

    Raises:
        UsageError: It is another one.
    """
    if named.hashed != previewed:
        raise UsageError(
            "the form has brought another key than the one that was previewed: it holds line ends or characters that can't be "
            "seen; nothing was done, use the command line for it"
        )


def _resume_page(desk: Desk, named: Named, told: KeyTold) -> Response:
    offer = resume_offer(told.facts, key=named.key, standing=desk.standing)
    return page("key-act.html", desk, offer=offer, ask_anyway=False)


def _told(service: Service, named: Named) -> KeyTold:
    return service.truth.told_key(named.group, named.topic, named.hashed, local=utc)


def _was(*, done: bool) -> dict[str, str]:
    return {} if done else {"was": "true"}
