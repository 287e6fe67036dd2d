"""A process that runs jobs: the product's leases, keeper, effects and steps; bodies are scripts."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from tests.simulation.processor.effects.database import QUERIES, RECORD_MESSAGE
from tests.simulation.processor.effects.outside import FATES
from tests.simulation.processor.effects.scripts import Effect, Step
from tests.simulation.processor.hub import Life, SimChance, SimClock

from packhorse.core.errors import DatabaseUnavailable, OwnershipLost
from packhorse.core.jobs import JobState
from packhorse.processor.jobs.deciding import Wait, not_had, state_after
from packhorse.processor.jobs.effects.calling import Effects
from packhorse.processor.jobs.effects.model import EffectInDoubt
from packhorse.processor.jobs.keeper import JobKeeper
from packhorse.processor.jobs.runs import JobRun, Phase, Runs
from packhorse.processor.jobs.steps_done import DoneSteps
from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.policy import Later
from packhorse.processor.storing.jobs import JobEnd, Wanted
from packhorse.processor.storing.steps import Statement, Steps
from packhorse.processor.storing.store import Store

if TYPE_CHECKING:
    from tests.simulation.processor.effects.world import World

T = TypeVar("T")
GROUP = "jobs"
STORE = Store(queries=QUERIES, group=GROUP, schema="packhorse")
AGAIN = 5.0
"""Seconds after which a failed job is tried again."""


class Cancelled(Exception):
    """The body stops because somebody wants it to."""


class InDoubt(Exception):
    """A job that is to stop has an effect of which nobody knows."""


class Process:
    """One process: a thread that runs jobs, and the keeper of their leases beside it."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.life = Life(name)
        self.chance = SimChance(world.hub)
        self.clock: Any = SimClock(world.hub)
        self.runs = Runs()
        plant: Any = SimpleNamespace(
            runs=self.runs,
            clock=self.clock,
            store=STORE,
            job_lease=world.lease,
            app=SimpleNamespace(jobs=[]),
            log=SimpleNamespace(warning=lambda *more, **fields: None),
        )
        self.keeper = JobKeeper(plant)
        self.keeper._link = SimpleNamespace(connection=lambda: self)  # type: ignore[assignment]
        world.hub.spawn(self.life, f"{name} worker", self._work)
        world.hub.spawn(self.life, f"{name} keeper", self._keep)

    def run(self, steps: Steps[T]) -> T:
        """Execute *steps* in one transaction; now and then the server is away, before it or behind it."""
        world = self.world
        world.hub.pause(world.latency())
        if not world.database_up or world.fault("statement lost"):
            raise DatabaseUnavailable("away")
        result = world.database.run(steps)
        if world.fault("answer of the database lost"):
            raise DatabaseUnavailable("away")
        world.hub.pause(world.latency())
        return result

    def _keep(self) -> None:
        while True:
            try:
                self.world.hub.pause(max(self.keeper.look(), 0.05))
            except DatabaseUnavailable:
                self.world.hub.pause(0.5)

    def _work(self) -> None:
        world = self.world
        while True:
            world.hub.pause(world.random.choice((0.05, 0.5, 2.0)))
            waiting = world.delivered()
            if not waiting:
                continue
            try:
                self._deal_with(world.random.choice(waiting))
            except DatabaseUnavailable:
                world.hub.pause(0.5)

    def _deal_with(self, job: UUID) -> None:
        """Be what a lane does with the message of a job."""
        tries = self.world.database.tables.jobs[job].tries
        wanted = Wanted(job, self.chance.token(), None, tries + 1)
        had = self.run(STORE.claim_jobs([wanted], UUID(int=1), self.world.lease))
        if job not in had:
            self._leave(job)
            return
        run = JobRun(job, wanted.token, wanted.attempt)
        self.runs.enter(run)
        try:
            self._run(run)
        finally:
            self.runs.forget([run])

    def _leave(self, job: UUID) -> None:
        row = self.run(STORE.look_up_jobs([job])).get(job)
        found = not_had(row, GROUP)
        if isinstance(found, Wait):
            self.world.hub.pause(found.seconds)
            return
        state = state_after(found.outcome, found.reason)
        self._finish(JobEnd(job, None, state, 0, found.reason, None), tries=0, due=0.0)

    def _run(self, run: JobRun) -> None:
        tries, due, result = run.attempt, 0.0, None
        try:
            answers = self._body(run)
        except OwnershipLost:
            self.world.say(f"{self.name} has lost job {run.job_id.int}")
            return
        except DatabaseUnavailable:
            return  # its lease ends
        except Cancelled:
            outcome, reason = Outcome.SKIPPED, Reason.CANCELLED.value
        except EffectInDoubt:
            outcome, reason = Outcome.QUARANTINE, Reason.UNCERTAIN.value
        except Later as later:
            outcome, reason = Outcome.RETRY, Reason.LATER.value
            tries, due = run.attempt - 1, self.world.hub.now + later.after
        except (TimeoutError, ConnectionRefusedError):
            is_last = run.attempt >= self.world.attempts
            outcome = Outcome.QUARANTINE if is_last else Outcome.RETRY
            reason, due = Reason.FAILED.value, self.world.hub.now + AGAIN
        else:
            outcome, reason, result = Outcome.DONE, "", f'"{answers}"'
        run.phase = Phase.ENDED
        end = JobEnd(
            run.job_id, run.token, state_after(outcome, reason), run.attempt, reason or None, None, result
        )
        self._finish(end, tries=tries, due=due)

    def _finish(self, end: JobEnd, *, tries: int, due: float) -> None:
        """Record the end and what became of the message in one transaction."""

        def steps() -> Steps[None]:
            if end.id not in (yield from STORE.finish_jobs([end])):
                raise OwnershipLost("another's")
            if end.state is JobState.QUARANTINED and (yield from STORE.effects_in_doubt([end.id])):
                raise InDoubt
            if end.state in {JobState.RETRYING, JobState.QUARANTINED, JobState.UNCERTAIN}:
                yield Statement(RECORD_MESSAGE, {"job": end.id, "due": due, "tries": tries})

        try:
            self.run(steps())
        except OwnershipLost:
            self.world.say(f"{self.name} has nothing to end of job {end.id.int}")
            return
        except InDoubt:
            self.world.say(
                f"{self.name} finds an effect of job {end.id.int} in doubt, which stops for {end.reason}"
            )
            doubt = end._replace(state=JobState.UNCERTAIN, reason=Reason.UNCERTAIN.value)
            self._finish(doubt, tries=tries, due=due)
            return
        self.world.say(f"{self.name} ends job {end.id.int}: {end.state} {end.reason}")

    def _body(self, run: JobRun) -> list[Any]:
        world = self.world
        effects = Effects(run, self.run, self.clock, queries=QUERIES, pause=world.hub.pause)
        steps = DoneSteps(run, self.run, queries=QUERIES, pause=world.hub.pause)
        answers = []
        for item in world.scripts[run.job_id]:
            if run.cancel == "cancelled":
                raise Cancelled
            if isinstance(item, Effect):
                answers.append(self._effect(effects, run, item))
            else:
                answers.append(steps.step(item.name, lambda item=item: self._step(item, run)))  # type: ignore[misc]
        return answers

    def _effect(self, effects: Effects, run: JobRun, effect: Effect) -> Any:
        world = self.world

        def call(key: str) -> str:
            fate = (
                world.random.choice(FATES[world.theme])
                if world.fault("call", world.call_faults)
                else "answered"
            )
            world.say(f"{self.name} calls {effect.key} of job {effect.job.int}: {fate}")
            world.checks.calls(effect, run)
            world.perhaps_kill(self)
            try:
                answer = world.outside.call(effect, key, fate)
            except ConnectionRefusedError:
                world.checks.refused(effect)
                raise
            world.hub.pause(world.latency())
            return answer

        def verify(key: str) -> Any:
            verdict = world.outside.verify(effect, key, effect.verify == "tells")
            world.say(f"{self.name} asks about {effect.key} of job {effect.job.int}: {verdict}")
            return verdict

        answer = effects.call(
            effect.key,
            call,
            verify=None if effect.verify == "none" else verify,
            arguments={"effect": effect.key},
            timeout=effect.timeout,
            refused=(ConnectionRefusedError,),
        )
        world.checks.answered(effect, answer)
        return answer

    def _step(self, step: Step, run: JobRun) -> str:
        self.world.checks.runs(step, run)
        self.world.hub.pause(step.seconds)
        return step.name
