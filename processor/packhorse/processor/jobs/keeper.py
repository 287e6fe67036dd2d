"""Beside the loop: renew the leases of jobs, write their progress, learn who is cancelled, and send what is due."""

import threading

from packhorse.core.errors import PackhorseError
from packhorse.processor.jobs.runs import JobRun, Phase
from packhorse.processor.plant import Plant
from packhorse.processor.running.link import Link
from packhorse.processor.storing import postgres
from packhorse.processor.storing.jobs import MOST_DUE, Declared
from packhorse.processor.watching.watchdog import forever

BEAT = 2.0
"""Most seconds between two renewals of a lease: cancelling reaches a body in that time."""
UNRECORDED = 30
"""Renewals after which an end that nobody has recorded is given up, a minute as a rule: its record comes again long before that."""
EVERY = 1.0
"""Seconds between two looks: progress is as fresh as that, and a job whose time has come is late by no more."""


class JobKeeper:
    """
    Renew leases for as long as bodies run, in a thread of its own and on a connection of its own: a body that blocks its thread,
    or the event loop, keeps no lease from being renewed. A process that is frozen renews nothing, and another takes over.
    """

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._link = Link(plant)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="packhorse-jobs", daemon=True)
        self._types = [handler.type.type for handler in plant.app.jobs]
        self._beaten: dict[JobRun, float] = {}
        self._due_at = 0.0

    def start(self) -> None:
        """
        Put on record what is declared of the jobs of this processor, and start; nothing happens where there are none.

        Raises:
            DatabaseUnavailable, NotReady: It can't be put on record.
        """
        if not self._types:
            return
        declared = [
            Declared(one.type.type, one.contact, one.job.keep_result, one.job.keep)
            for one in self._plant.app.jobs
            if one.job is not None
        ]
        postgres.run(self._link.connection(), self._plant.store.declare_jobs(declared))
        self._thread.start()

    def stop(self) -> None:
        """
        Give all jobs back that are not at their end, so that others take them at once, and end; blocks for some seconds at most.

        What bodies that still run do from here on counts for nothing.
        """
        self._stop.set()
        if not self._thread.is_alive():
            return
        self._thread.join(2.0)
        left = self._plant.runs.all()
        for run in left:
            run.cancel, run.lost = run.cancel or "stopping", True
        try:
            if left:
                postgres.run(
                    self._link.connection(), self._plant.store.release_jobs(left, "its worker has stopped")
                )
        except PackhorseError as error:
            self._plant.log.warning("jobs wait for the end of their leases", jobs=len(left), cause=str(error))
        self._link.close()

    def look(self) -> float:
        """
        Renew the leases that are due and send the jobs that are; return the seconds until the next look.

        Raises:
            DatabaseUnavailable: The leases run on, for now.
        """
        now = self._plant.clock.monotonic()
        self._beat(now)
        if now < self._due_at:
            return min(EVERY, self._due_at - now)
        sent, wait = postgres.run(self._link.connection(), self._plant.store.due_jobs(self._types))
        if sent >= MOST_DUE:
            return 0.0
        pause = EVERY if wait is None else min(EVERY, wait)
        self._due_at = now + pause
        return pause

    def _beat(self, now: float) -> None:
        """Renew what is due, or has progress to tell; what is lost is told to its body."""
        plant = self._plant
        held = plant.runs.held()
        every = min(BEAT, plant.job_lease / 6)
        self._beaten = {run: self._beaten.get(run, now) for run in held}
        due = [run for run in held if run.progress is not None or now - self._beaten[run] >= every]
        if not due:
            return
        said = {run: run.progress for run in due}
        beat = postgres.run(self._link.connection(), plant.store.renew_jobs(due, plant.job_lease))
        for run in due:
            self._beaten[run] = now
            if run.progress is said[run]:
                run.progress = None
            if run.job_id in beat.lost:
                self._lost(run)
            elif run.job_id in beat.cancelled:
                run.cancel = run.cancel or "cancelled"
        self._give_up([run for run in due if run.phase is Phase.ENDED and run.job_id not in beat.lost])

    def _lost(self, run: JobRun) -> None:
        """Take that the lease of *run* is another's, or that its end was recorded although nobody here has heard of it."""
        if self._plant.runs.of(run.job_id) is not run:
            return
        run.lost = True
        if run.phase is Phase.ENDED:
            self._plant.runs.forget([run])
            return
        self._plant.log.warning(
            "a job was taken over by another worker", job=str(run.job_id), attempt=run.attempt
        )

    def _give_up(self, ended: list[JobRun]) -> None:
        """
        Give back jobs whose bodies have ended here and whose end nobody records: their partition went away in that moment.

        They run again elsewhere. While the database is away nothing is counted.
        """
        for run in ended:
            run.unrecorded += 1
        left = [run for run in ended if run.unrecorded >= UNRECORDED]
        if not left:
            return
        plant = self._plant
        postgres.run(self._link.connection(), plant.store.release_jobs(left, "its end was not recorded"))
        for run in left:
            run.lost = True
            plant.log.warning("the end of a job could not be recorded; it runs again", job=str(run.job_id))
        plant.runs.forget(left)

    def _serve(self) -> None:
        forever(self.look, self._stop, self._plant, every=EVERY, name="keeper of jobs")
