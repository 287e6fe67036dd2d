"""A person who decides about uncertain effects, redrives what failed for good, and now and then cancels."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.processor.effects.scripts import Effect

from packhorse.core.jobs import CANCELLABLE, JobState
from packhorse.processor.jobs.effects.model import START_WITHIN

if TYPE_CHECKING:
    from tests.simulation.processor.effects.world import World


class Person:
    """One person, who asks the other side before deciding, and waits until nothing can be on its way any more."""

    def __init__(self, world: "World") -> None:
        self.world = world

    def work(self) -> None:
        world = self.world
        while True:
            world.hub.pause(world.random.choice((5.0, 20.0)))
            for job in list(world.database.tables.jobs.values()):
                if job.state in {"uncertain", "quarantined"}:
                    self._redrive(job.id)
                elif world.random.random() < world.cancels:
                    self._cancel(job.id)

    def _cancel(self, job_id: object) -> None:
        database = self.world.database
        job = database.tables.jobs[job_id]  # type: ignore[index]
        if JobState(job.state) in CANCELLABLE:
            self.world.say(f"job {job.id.int} is cancelled")
            database.move(job, JobState.CANCELLED)
            self.world.checks._ended()
        elif job.state == "running":
            self.world.say(f"job {job.id.int} is to be cancelled")
            database.tables.jobs[job.id] = replace(job, cancel_asked=True)

    def _redrive(self, job_id: object) -> None:
        """Decide about each effect of a job that nobody knows of, then send the job back."""
        tables = self.world.database.tables
        for effect in self.world.effects(job_id):
            row = tables.effects.get((effect.job, effect.key))
            if row is not None and row.state in {"uncertain", "intended"} and not self._decide(effect):
                return
        job = tables.jobs[job_id]  # type: ignore[index]
        self.world.say(f"job {job.id.int} is redriven")
        self.world.database.move(job, JobState.RETRYING, due=self.world.hub.now, tries=0)

    def _decide(self, effect: Effect) -> bool:
        world = self.world
        effects = world.database.tables.effects
        row = effects[effect.job, effect.key]
        if world.hub.now - row.intended_at < row.timeout + START_WITHIN:
            return False
        assert world.outside.is_quiet(effect), "a request is on its way for longer than its time-out"
        done = world.outside.ledger.get(effect)
        if done:
            answer = f'"{done[0]}"' if world.random.random() < 0.7 else None
            effects[effect.job, effect.key] = replace(row, state="happened", answer=answer)
        else:
            effects[effect.job, effect.key] = replace(row, state="did-not-happen")
            world.checks.decided(effect)
        world.say(f"a person says of {effect.key} of job {effect.job.int}: {done}")
        return True
