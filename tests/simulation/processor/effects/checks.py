"""What must hold of every history: read from the other side's ledger and from what was written, by nobody's own account."""

from typing import TYPE_CHECKING, Any

from tests.simulation.processor.effects.database import QUERIES, RECORD_MESSAGE, Tables
from tests.simulation.processor.effects.scripts import Effect, Step

from packhorse.core.jobs import ENDED, JobState
from packhorse.processor.jobs.runs import JobRun

if TYPE_CHECKING:
    from tests.simulation.processor.effects.world import World

FENCED = {QUERIES.intend_effect, QUERIES.intend_again, QUERIES.change_effect, QUERIES.record_step}


IN_DOUBT = {"intended", "uncertain"}


class Checks:
    """
    What was seen.

    Attributes:
        called: How often each effect was called.
        open: Effects whose last call may have had an effect that nobody knows of.
        forgotten: Effects and steps whose record a restore took away.
    """

    def __init__(self, world: "World") -> None:
        self.world = world
        self.faults: list[str] = []
        self.called: dict[Effect, int] = {}
        self.open: set[Effect] = set()
        self.answers: dict[Effect, Any] = {}
        self.done: set[Step] = set()
        self.forgotten: set[Effect | Step] = set()
        self.ended: dict[Any, tuple[str, str | None]] = {}

    def found(self, text: str) -> None:
        self.faults.append(text)
        self.world.say(f"WRONG: {text}")

    def calls(self, effect: Effect, run: JobRun) -> None:
        """Take that a call begins: its intent must be on record, and nobody calls in silence after an unanswered one."""
        row = self.world.database.tables.effects.get((effect.job, effect.key))
        if (row is None or row.state != "intended") and effect not in self.forgotten and self._is_at(run):
            self.found(f"{effect.key} is called without an intent on record: {row}")
        if effect in self.open and effect.verify != "tells" and effect not in self.forgotten:
            self.found(f"{effect.key} is called again though nobody knows of the call before")
        self.called[effect] = self.called.get(effect, 0) + 1
        self.open.add(effect)

    def _is_at(self, run: JobRun) -> bool:
        job = self.world.database.tables.jobs[run.job_id]
        return (job.state, job.token) == ("running", run.token)

    def refused(self, effect: Effect) -> None:
        self.open.discard(effect)

    def decided(self, effect: Effect) -> None:
        """Take that a person has said that it did not happen."""
        self.open.discard(effect)

    def answered(self, effect: Effect, answer: Any) -> None:
        """Take what the body was given: the same each time, and what the other side has answered."""
        before = self.answers.setdefault(effect, answer)
        known = self.world.outside.ledger.get(effect, [])
        if effect not in self.forgotten and (before != answer or answer not in {None, *known}):
            self.found(f"{effect.key} answered {answer}, before {before}, the other side {known}")
        self.answers[effect] = answer

    def runs(self, step: Step, run: JobRun) -> None:
        """Take that a step runs: one that is done is not run again, but by who does not know yet that its job is lost."""
        if step in self.done and step not in self.forgotten and self._is_at(run):
            self.found(f"{step.name} is run again")

    def written(self, text: bytes, v: dict[str, Any], rows: list[tuple[Any, ...]]) -> None:
        """Look at what a statement has written, before its transaction goes on."""
        tables = self.world.database.tables
        if text in FENCED and rows[0][1]:
            job = tables.jobs[v["job"]]
            if (job.state, job.token) != ("running", v["token"]):
                self.found(f"job {job.id.int}: a run that has lost it writes {v}")
        if text == QUERIES.record_step and rows[0][1]:
            scripts = self.world.scripts[v["job"]]
            self.done.update(one for one in scripts if isinstance(one, Step) and one.name == v["name"])
        if text == RECORD_MESSAGE and tables.jobs[v["job"]].state == "quarantined":
            doubt = [
                key for (job, key), row in tables.effects.items() if job == v["job"] and row.state in IN_DOUBT
            ]
            if doubt:
                self.found(
                    f"job {v['job'].int} stops as quarantined, and {doubt} may or may not have happened"
                )
        if text in {QUERIES.finish_jobs, QUERIES.finish_job}:
            self._ended()

    def _ended(self) -> None:
        for job in self.world.database.tables.jobs.values():
            was = self.ended.get(job.id)
            if was is not None and was != (job.state, job.result):
                self.found(f"job {job.id.int} was {was}, and is {job.state} {job.result} now")
            if JobState(job.state) in ENDED:
                self.ended[job.id] = (job.state, job.result)

    def restored(self, before: Tables) -> None:
        """Take that the database, which was as *before*, has gone back: what it knew of calls and steps since is forgotten."""
        tables = self.world.database.tables
        self.ended = {}
        self._ended()
        for script in self.world.scripts.values():
            for item in script:
                if isinstance(item, Step):
                    if (item.job, item.name) not in tables.steps:
                        self.forgotten.add(item)
                elif tables.effects.get(item[:2]) != before.effects.get(item[:2]):
                    self.forgotten.add(item)

    def history(self) -> list[str]:
        """Return what is wrong at the end."""
        outside = self.world.outside
        for effect, done in outside.ledger.items():
            if len(done) > 1 and (outside.honours or effect not in self.forgotten):
                self.found(f"{effect.key} of job {effect.job.int} happened {len(done)} times")
        for effect, keys in outside.keys.items():
            if len(keys) > 1:
                self.found(f"{effect.key} of job {effect.job.int} went under {len(keys)} idempotency keys")
        for job in self.world.database.tables.jobs.values():
            for effect in self.world.effects(job.id):
                if job.state == "succeeded" and not outside.ledger.get(effect):
                    self.found(f"{effect.key} of job {effect.job.int}, which succeeded, never happened")
        return self.faults
