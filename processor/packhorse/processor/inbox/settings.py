"""Settings of the inbox's retention: in the processor's own table, for the processor and for its command."""

from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator

from packhorse.processor.inbox.model import InboxRules


class InboxFields(BaseModel):
    """
    Say how long inbox rows live.

    Attributes:
        inbox_days: Days that closed inbox rows live after they changed last; 0: for ever. A message that comes back later runs
            again, so it is republish_days and the time that the source topics keep records, or the longest outage, together.
        republish_days: Days after which no source publishes a message again: the days that the longest outbox keeps its
            rows, and one more.
        discarded_days: Days that discarded messages are kept, so that they can be had back.
        inbox_ahead: Days after today that have a partition made for them.
        inbox_every: Seconds between two looks at what may go.
    """

    inbox_days: Annotated[int, Field(ge=0, le=36_500)] = 22
    republish_days: Annotated[int, Field(ge=1, le=36_500)] = 15
    discarded_days: Annotated[int, Field(ge=1, le=36_500)] = 90
    inbox_ahead: Annotated[int, Field(ge=1, le=60)] = 7
    inbox_every: Annotated[float, Field(ge=1, le=86_400)] = 300.0

    @model_validator(mode="after")
    def _outlives_what_comes_back(self) -> Self:
        if self.inbox_days and self.inbox_days < self.republish_days:
            raise ValueError(
                f"inbox_days {self.inbox_days} is less than republish_days {self.republish_days}: a message that its source "
                "publishes again would run twice; keep rows for longer, or lower republish_days if the outbox keeps less"
            )
        return self

    @property
    def inbox_rules(self) -> InboxRules:
        """Return what to keep."""
        return InboxRules(
            keep_days=self.inbox_days or None,
            discarded_days=max(self.discarded_days, self.inbox_days),
            ahead=self.inbox_ahead,
        )
