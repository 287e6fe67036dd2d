"""Errors to plant: each is one small change that a careless hand could make, and the checker must find every one."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import count
from math import inf
from typing import Any
from unittest.mock import patch
from uuid import UUID

from tests.simulation.processor.effects.database import Database, ids
from tests.simulation.processor.hub import SimChance, current

from packhorse.processor.jobs.driving import Call
from packhorse.processor.jobs.effects import calling, deciding, performing
from packhorse.processor.jobs.effects.deciding import Ask, Intend
from packhorse.processor.jobs.effects.model import CANT_TELL, DID_NOT_HAPPEN, EffectState
from packhorse.processor.jobs.effects.table import EffectTable
from packhorse.processor.jobs.steps_done import StepTable
from packhorse.processor.storing.jobs import JobSteps

Planted = AbstractContextManager[Any]


def call_before_the_intent() -> Planted:
    """Swap the record of the intent and the call."""
    intended = performing._intended
    waiting: list[Any] = []

    def put_off(*more: Any) -> Any:
        waiting.append(more)
        yield from ()
        return True

    def called(effect: Any, outside: Any, table: Any, calls: int, began: float) -> Any:
        more = waiting.pop()
        answer = yield Call(lambda: outside.call(effect.idempotency_key))
        yield from intended(*more)
        text = json.dumps(answer)
        yield from performing._changed(effect, table, calls, EffectState.ANSWERED, answer=text)
        return answer

    return patch.multiple(performing, _intended=put_off, _called=called)


def no_fence_of_effects() -> Planted:
    """Let effects and steps be written by whoever has run the job, and let nobody look before."""

    def unfenced(name: str) -> Any:
        statement = getattr(Database, name)

        def run(self: Database, v: dict[str, Any]) -> Any:
            with patch.object(Database, "_owns", lambda self, v: True):
                return statement(self, v)

        return run

    names = ("read_effect", "intend_effect", "intend_again", "change_effect", "read_step", "record_step")
    changed: dict[str, Any] = {name: unfenced(name) for name in names}
    planted: Planted = patch.multiple(Database, **changed)
    return planted


def look_for_the_lease_when_reading_alone() -> Planted:
    """Let the fence hold where an effect is read, and not where it is written."""
    owns = Database._owns

    def read_only(self: Database, v: dict[str, Any]) -> bool:
        return "digest" in v or "was" in v or owns(self, v)

    return patch.object(Database, "_owns", read_only)


def no_fence_of_the_end() -> Planted:
    """Let whoever has run a job end it."""
    finish_jobs = Database.finish_jobs

    def finish(self: Database, v: dict[str, Any]) -> Any:
        with patch.object(Database, "_owns", lambda self, v: True):
            return finish_jobs(self, v)

    return patch.object(Database, "finish_jobs", finish)


def one_token_for_all() -> Planted:
    """Take a job over under the token that it had."""
    return patch.object(SimChance, "token", lambda self: UUID(int=5))


def renew_what_is_another_s() -> Planted:
    """Take a job back with a beat."""
    renew_jobs = Database.renew_jobs

    def renew(self: Database, v: dict[str, Any]) -> Any:
        for one, token in zip(ids(v["ids"]), ids(v["tokens"]), strict=True):
            job = self.tables.jobs[one]
            if job.state == "running":
                self.tables.jobs[one] = replace(job, token=token)
        return renew_jobs(self, v)

    return patch.object(Database, "renew_jobs", renew)


def believe_a_no_at_once() -> Planted:
    return patch.object(deciding, "counts_in", lambda row: 0.0)


def believe_a_no_after_the_time_out_alone() -> Planted:
    """Forget that a call may begin some seconds after its intent."""
    return patch.object(deciding, "START_WITHIN", 0.0)


def begin_a_call_however_late() -> Planted:
    return patch.object(performing, "START_WITHIN", inf)


def count_from_the_first_intent() -> Planted:
    """Let a further intent not move the time from which a "no" counts."""
    intend_again = Database.intend_again

    def again(self: Database, v: dict[str, Any]) -> Any:
        where = (v["job"], v["key"])
        before = self.tables.effects.get(where)
        answer = intend_again(self, v)
        if before is not None:
            row = self.tables.effects[where]
            self.tables.effects[where] = replace(row, intended_at=before.intended_at)
        return answer

    return patch.object(Database, "intend_again", again)


def take_every_error_for_a_no() -> Planted:
    """Take each error of a call for one that means that nothing happened."""

    def outside(call: Any, verify: Any, refused: Any, elapsed: Any) -> Any:
        return performing.Outside(call, verify, (Exception,), elapsed)

    return patch.object(calling, "Outside", outside)


def another_idempotency_key_each_time() -> Planted:
    numbers = count()
    read = EffectTable.read

    def with_another(self: EffectTable, key: str) -> Any:
        found = yield from read(self, key)
        return None if found is None else replace(found, idempotency_key=f"{next(numbers):08d}")

    return patch.object(EffectTable, "read", with_another)


def _unanswered_as(change: Callable[[Any, Any, Any], Any]) -> Planted:
    unanswered = deciding._unanswered

    def changed(row: Any, effect: Any, verdict: Any) -> Any:
        return change(row, effect, verdict) or unanswered(row, effect, verdict)

    return patch.object(deciding, "_unanswered", changed)


def call_again_in_silence() -> Planted:
    """Call what was not answered again where it has no verify."""
    return _unanswered_as(lambda row, effect, verdict: not effect.verifiable and Intend(row.calls + 1))


def call_again_when_it_can_not_tell() -> Planted:
    """Take "can't tell" for "no"."""
    unanswered = deciding._unanswered
    return _unanswered_as(
        lambda row, effect, verdict: verdict is CANT_TELL and unanswered(row, effect, DID_NOT_HAPPEN)
    )


def _deciding_as(change: Callable[[Any, Any, Any], Any]) -> Planted:
    decide = deciding.decide

    def changed(row: Any, effect: Any, verdict: Any = None) -> Any:
        return change(row, effect, verdict) or decide(row, effect, verdict)

    return patch.object(performing, "decide", changed)


def judge_by_the_age_after_the_question() -> Planted:
    """Believe a "no" when it comes late enough, though it was asked for too early."""
    decide = deciding.decide

    def change(row: Any, effect: Any, verdict: Any) -> Any:
        if verdict is None:
            return None
        world = current().world
        found = world.database.tables.effects.values()
        at = [one.intended_at for one in found if one.idempotency_key == row.idempotency_key]
        return decide(replace(row, age=world.hub.now - at[0]), effect, verdict) if at else None

    return _deciding_as(change)


def forget_what_a_person_said() -> Planted:
    """Ask again, or call again, though a person has said that it happened."""

    def change(row: Any, effect: Any, verdict: Any) -> Any:
        if row is None or row.state is not EffectState.HAPPENED or verdict is not None:
            return None
        return Ask() if effect.verifiable else Intend(row.calls + 1)

    return _deciding_as(change)


def stop_without_a_look_at_effects() -> Planted:
    """Let a job that stops for good be one failure among others, though an effect of its may have happened."""

    def none(self: JobSteps, ids: Any) -> Any:
        yield from ()
        return {}

    return patch.object(JobSteps, "effects_in_doubt", none)


def run_steps_again() -> Planted:
    def read(self: StepTable, name: str) -> Any:
        yield from ()
        return None

    return patch.object(StepTable, "read", read)


PLANTS: dict[Callable[[], Planted], str] = {
    call_before_the_intent: "",
    no_fence_of_effects: "",
    look_for_the_lease_when_reading_alone: "",
    no_fence_of_the_end: "",
    one_token_for_all: "",
    renew_what_is_another_s: "",
    believe_a_no_at_once: "late",
    believe_a_no_after_the_time_out_alone: "late",
    begin_a_call_however_late: "late",
    count_from_the_first_intent: "late",
    take_every_error_for_a_no: "",
    another_idempotency_key_each_time: "",
    call_again_in_silence: "",
    call_again_when_it_can_not_tell: "",
    judge_by_the_age_after_the_question: "late",
    forget_what_a_person_said: "",
    stop_without_a_look_at_effects: "",
    run_steps_again: "",
}
"""Each with the theme in which it shows."""
