"""Carry acts on jobs through at a terminal: show what is meant, ask, act, and tell what came of it."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from packhorse.console.jobs.deciding import Verdict, cancelling_words, check_cancellable, chosen_effect
from packhorse.console.jobs.render import (
    cancelling_line,
    effect_sheet,
    resolution_line,
)
from packhorse.console.output import at, tell, tell_json, terminal
from packhorse.console.quarantine.shell import service_for_act, tell_preview
from packhorse.console.render import preview_json
from packhorse.console.service import Service
from packhorse.console.settings import ConsoleSettings
from packhorse.console.truth.jobs import Effect, JobFacts
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import UsageError
from packhorse.schemas.asking import confirmed


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the person says of an effect on the command line; `answer` is None where none was given."""

    job_id: UUID
    verdict: Verdict
    effect: str | None
    answer: object
    why: str


def answer_from(text: str | None) -> object:
    """
    Return the value that *text* is in JSON; None: there is none.

    >>> answer_from('{"charge": "ch_17"}'), answer_from(None)
    ({'charge': 'ch_17'}, None)

    Raises:
        UsageError: It is no JSON; its text is not repeated.
    """
    if text is None:
        return None
    try:
        found: object = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise UsageError("""--answer is no JSON; write it as '{"charge": "ch_17"}' or '"ok"'""") from None
    return found


def _no_number(text: str) -> object:
    raise ValueError(text)


def run_cancel(
    job_id: UUID, settings: ConsoleSettings, *, why: str, yes: bool, claimed: str | None, as_json: bool
) -> None:
    """
    Take the job back, or ask its worker to stop.

    Raises:
        UnknownId, UsageError, OwnershipLost, Forbidden: As `Jobs.cancel`.
    """
    with service_for_act(
        settings, why=why, yes=yes, claimed=claimed, as_json=as_json, act="cancel"
    ) as service:
        if not as_json:
            facts = service.jobs.show(job_id, local=SYSTEM_CLOCK.local).facts
            check_cancellable(facts.job)  # nobody is asked to confirm what is refused then
            tell(
                f"job {job_id} of type {facts.job.type} is {facts.job.state} since {at(facts.job.changed_at)}"
            )
            for line in cancelling_words(facts.job, facts.in_doubt):
                tell(line)
            tell(f"on the record as {service.people.actor()}: {why.strip()}")
        if not yes:
            confirmed("cancel it?")
        done = service.jobs.cancel(job_id, why=why)
    if as_json:
        tell_json(done)
    else:
        tell(cancelling_line(done))


def redrive_one(service: Service, job_id: UUID, *, why: str, asks: bool, told: bool) -> dict[str, Any]:
    """
    Send one job back and return what came of it; nothing is waited for.

    Raises:
        UnknownId, UsageError, OwnershipLost, Forbidden: As `Jobs.preview` and `Jobs.redrive`.
    """
    if service.jobs.is_lost(job_id):
        return _send_anew(service, job_id, why=why, asks=asks, told=told)
    preview = service.jobs.preview(job_id)
    actor = service.people.actor()
    if told:
        tell_preview(preview, actor, why=why)
    if asks:
        confirmed("redrive it?")
    asked_at = service.jobs.redrive(preview.order, why=why)
    if told:
        tell(f"redrive asked at {at(asked_at)}; packhorse job show {job_id} tells how it goes on")
    return {"asked_at": asked_at, "actor": actor} | preview_json(preview)


def _send_anew(service: Service, job_id: UUID, *, why: str, asks: bool, told: bool) -> dict[str, Any]:
    actor = service.people.actor()
    if told:
        tell(
            f"job {job_id} is accepted, and neither outbox nor inbox know its message: it is written anew, under the same id; whichever "
            "copy comes second is a duplicate"
        )
        tell(f"on the record as {actor}: {why.strip()}")
    if asks:
        confirmed("send it anew?")
    sent_at = service.jobs.send(job_id, why=why)
    if told:
        tell(f"written anew at {at(sent_at)}; the relay publishes it: packhorse job show {job_id}")
    return {"sent_at": sent_at, "actor": actor}


def run_resolve(
    decision: Decision, settings: ConsoleSettings, *, yes: bool, claimed: str | None, as_json: bool
) -> None:
    """
    Put on the record what the person knows of an effect, exactly as it was shown; the job goes on if it was the last in doubt.

    Raises:
        UnknownId, UsageError, OwnershipLost, Forbidden: As `Jobs.resolve`.
    """
    with service_for_act(
        settings, why=decision.why, yes=yes, claimed=claimed, as_json=as_json, act="resolve"
    ) as service:
        facts = service.jobs.show(decision.job_id, local=SYSTEM_CLOCK.local).facts
        effect = _meant(facts, decision)
        if not as_json and effect is not None:
            terminal().print(effect_sheet(effect))
            tell(f"on the record as {service.people.actor()}: {decision.why.strip()}")
        if not yes:
            words = "has happened" if decision.verdict is Verdict.HAPPENED else "has not happened"
            confirmed(f"say that it {words}?")
        done = service.jobs.resolve(
            decision.job_id,
            decision.verdict,
            effect=decision.effect if effect is None else effect.key,
            calls=None if effect is None else effect.calls,
            answer=decision.answer,
            why=decision.why,
        )
    if as_json:
        tell_json(done)
    else:
        tell(resolution_line(done))


def _meant(facts: JobFacts, decision: Decision) -> Effect | None:
    """Return the effect that is meant, as it stands now; None: it is none of those that are read at once, and the act finds it."""
    named = next((each for each in facts.effects if each.key == decision.effect), None)
    if decision.effect is not None and named is None and len(facts.effects) < facts.effect_count:
        return None
    return chosen_effect(facts.job.id, facts.in_doubt, named, decision.effect)
