"""Every act that the pages offer: something that it can be done to, the page that offers it, and what a person fills in."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.console_rows import new_id, one
from tests.support.console_stages import KEY, Stages
from tests.support.console_world import GROUP, WHY, World
from tests.support.held import held_key, owned
from tests.support.job_rows import accepted, register_reference, running, stopped, uncertain
from tests.support.sitting import Sheet, Sitter, form_in

from packhorse.processor.record import key_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAct:
    """
    One act.

    Attributes:
        route: Of the form, as the pages have it.
        page: Makes something that it can be done to, and returns where it is offered.
        filled: What a person fills in.
        shows: The answer to the form is a page; nothing leads on.
    """

    route: str
    page: Callable[[World], str]
    filled: dict[str, str] = field(default_factory=lambda: {"why": WHY})
    shows: bool = False

    def offered(self, sitter: Sitter, world: World) -> Sheet:
        """Return its form, filled in."""
        sheet = sitter.form(self.page(world))
        if self.route.endswith("/edit"):
            sheet = _previewed(sitter, sheet)
        return Sheet(page=sheet.page, action=sheet.action, fields={**sheet.fields, **self.filled})


def _previewed(sitter: Sitter, sheet: Sheet) -> Sheet:
    answer = sitter.send(sheet, step="preview", payload=json.dumps({"n": 2}))
    assert answer.status_code == 200, answer.text
    return form_in(answer.text, sheet.page)


def _resting(act: str) -> Callable[[World], str]:
    return lambda world: f"/quarantine/{world.message()}/{act}?group={GROUP}&topic=airline.aircraft"


def _restored(world: World) -> str:
    return f"/quarantine/{world.discarded()}/restore?group={GROUP}&topic=airline.aircraft"


def _edited(world: World) -> str:
    return f"/quarantine/{world.edit()[0]}/edit?group={GROUP}&topic=airline.aircraft"


def _frozen(world: World) -> str:
    world.message()
    return f"/quarantine/redrive?group={GROUP}"


def _ticked(world: World) -> str:
    world.message()
    return "/quarantine/messages?tick=all"


def _failure(act: str, *, acknowledged: bool = False) -> Callable[[World], str]:
    return lambda world: f"/quarantine/failures/{world.failure(acknowledged=acknowledged)}{act}"


def _redrive(state: str, act: str) -> Callable[[World], str]:
    return lambda world: f"/redrives/{world.redrive(state)}/{act}"


def _replay(state: str, act: str) -> Callable[[World], str]:
    return lambda world: f"/replays/{world.replay(state)}/{act}"


def _pause(world: World) -> str:
    return f"/groups/{GROUP}/pause?topic={world.topic}"


def _resume(world: World) -> str:
    assert world.topic is not None
    Stages(world.connection).pause(topic=world.topic, partition=0)
    return f"/groups/{GROUP}/resume?topic={world.topic}&partition=0"


def _key_pause(world: World) -> str:
    return f"/keys/pause?group={GROUP}&topic={world.topic}&key={new_id()}"


def _key_resume(world: World) -> str:
    Stages(world.connection).parked(None, by="ann (role ops)")
    return f"/keys/resume?group={GROUP}&topic=airline.aircraft&key_hash={key_hash(KEY.encode())}"


def _release(world: World) -> str:
    hold, _ = held_key(world.connection, key=str(new_id()))
    return f"/relay/holds/release?ids={hold}"


def _given_up(world: World) -> str:
    hold, ids = held_key(world.connection, key=str(new_id()))
    owned(world.connection)
    return f"/relay/holds/{hold}/discard?row={ids[0]}"


def _job(made: Callable[..., Any], act: str, **given: Any) -> Callable[[World], str]:
    return lambda world: f"/jobs/{made(world.connection, **given)}/{act}"


def _lost_job(world: World) -> str:
    register_reference(world.connection)
    assert world.topic is not None
    return f"/jobs/{accepted(world.connection, topic=world.topic.replace('.flights', '.jobs'))}/send"


def _planned(world: World) -> str:
    return f"/replays/new?group={GROUP}&topic={world.topic}&partition=0&from_offset=0"


ACTS = {
    "redrive": PageAct(route="/quarantine/{message_id:uuid}/redrive", page=_resting("redrive")),
    "discard": PageAct(route="/quarantine/{message_id:uuid}/discard", page=_resting("discard")),
    "unmask": PageAct(route="/quarantine/{message_id:uuid}/unmask", page=_resting("unmask"), shows=True),
    "restore": PageAct(
        route="/quarantine/{message_id:uuid}/restore",
        page=_restored,
        filled={"why": WHY, "out_of_order": "yes"},
    ),
    "edit": PageAct(
        route="/quarantine/{message_id:uuid}/edit", page=_edited, filled={"why": WHY, "step": "send"}
    ),
    "freeze": PageAct(route="/quarantine/redrive", page=_frozen, filled={}),
    "freeze those ticked": PageAct(route="/quarantine/redrive/picked", page=_ticked, filled={}),
    "note": PageAct(
        route="/quarantine/failures/{failure}/note",
        page=_failure(""),
        filled={"text": "the fix is on its way"},
    ),
    "acknowledge": PageAct(route="/quarantine/failures/{failure}/acknowledge", page=_failure("/acknowledge")),
    "unacknowledge": PageAct(
        route="/quarantine/failures/{failure}/unacknowledge",
        page=_failure("/unacknowledge", acknowledged=True),
    ),
    "redrive a set": PageAct(route="/redrives/{number}/{act}", page=_redrive("previewed", "run")),
    "pause a redrive": PageAct(route="/redrives/{number}/{act}", page=_redrive("running", "pause")),
    "resume a redrive": PageAct(route="/redrives/{number}/{act}", page=_redrive("paused", "resume")),
    "abort a redrive": PageAct(route="/redrives/{number}/{act}", page=_redrive("running", "abort")),
    "plan a replay": PageAct(route="/replays/new", page=_planned, filled={}),
    "run a replay": PageAct(route="/replays/{number}/{act}", page=_replay("planned", "run")),
    "pause a replay": PageAct(route="/replays/{number}/{act}", page=_replay("running", "pause")),
    "resume a replay": PageAct(route="/replays/{number}/{act}", page=_replay("halted", "resume")),
    "stop a replay": PageAct(route="/replays/{number}/{act}", page=_replay("running", "stop")),
    "pause": PageAct(route="/groups/{group:path}/pause", page=_pause),
    "resume": PageAct(route="/groups/{group:path}/resume", page=_resume),
    "pause a key": PageAct(route="/keys/pause", page=_key_pause),
    "resume a key": PageAct(route="/keys/resume", page=_key_resume),
    "release": PageAct(route="/relay/holds/release", page=_release),
    "give up a row": PageAct(route="/relay/holds/{hold}/discard", page=_given_up),
    "cancel a job": PageAct(route="/jobs/{job_id}/cancel", page=_job(running, "cancel")),
    "redrive a job": PageAct(route="/jobs/{job_id}/redrive", page=_job(stopped, "redrive")),
    "send a job": PageAct(route="/jobs/{job_id}/send", page=_lost_job),
    "resolve an effect": PageAct(
        route="/jobs/{job_id}/resolve",
        page=_job(uncertain, "resolve"),
        filled={"why": WHY, "verdict": "happened"},
    ),
    "unmask a job": PageAct(route="/jobs/{job_id}/unmask", page=_job(running, "unmask"), shows=True),
    "give rights": PageAct(
        route="/people/give", page=lambda world: "/people", filled={"why": WHY, "name": "ann@example.org"}
    ),
    "remove": PageAct(
        route="/people/remove", page=lambda world: f"/people/remove?kind=token&name={world.holder()}"
    ),
}
"""By a name for people; a test fails as long as a form of the pages is not here."""
LEADS_ON = {"/sign-in", "/sign-in/link", "/sign-out"}
"""Forms that do nothing for which there is a record."""


def count(world: World) -> int:
    """Return how many acts are on the record."""
    return int(one(world.connection, "SELECT count(*) FROM packhorse.audit"))
