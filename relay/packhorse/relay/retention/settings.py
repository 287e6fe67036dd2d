"""Settings of retention: in the relay's own table, for the relay and for `packhorse retention`."""

from typing import Annotated

from pydantic import BaseModel, Field

from packhorse.relay.retention.model import Rules


class RetentionFields(BaseModel):
    """
    Say how long outbox rows are kept.

    Attributes:
        retention_days: Days that published outbox rows are kept beside today; 0: for ever.
        partitions_ahead: Days after today that have a partition made for them.
        retention_every: Seconds between two looks at what is due.
    """

    retention_days: Annotated[int, Field(ge=0, le=36_500)] = 14
    partitions_ahead: Annotated[int, Field(ge=1, le=400)] = 14
    retention_every: Annotated[float, Field(ge=1, le=86_400)] = 300.0

    @property
    def rules(self) -> Rules:
        """Return what to keep."""
        return Rules(keep_days=self.retention_days or None, ahead=self.partitions_ahead)
