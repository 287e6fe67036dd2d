"""Settings of the retention of jobs: in the processor's own table, for the processor and for its command."""

from typing import Annotated

from pydantic import BaseModel, Field

from packhorse.processor.jobs.keeping.model import DAY, JobRules


class JobKeepingFields(BaseModel):
    """
    Say how long jobs live whose type declares nothing (`@app.job(…, keep=…, keep_result=…)`).

    Attributes:
        job_days: Days after its end that a job is known, with its history; 0: for ever. A request key stands for its job so long.
        job_result_days: Days after its end that input, result, checkpoint and the answers of steps and effects are kept; 0: as
            long as the job.
        job_every: Seconds between two looks at what may go.
    """

    job_days: Annotated[int, Field(ge=0, le=36_500)] = 90
    job_result_days: Annotated[int, Field(ge=0, le=36_500)] = 30
    job_every: Annotated[float, Field(ge=1, le=86_400)] = 900.0

    @property
    def job_rules(self) -> JobRules:
        """Return what to keep."""
        return JobRules(
            keep=self.job_days * DAY or None,
            keep_result=self.job_result_days * DAY or None,
        )
