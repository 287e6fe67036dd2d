"""Settings of `packhorse processor` and `topics`."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from packhorse.processor.inbox.settings import InboxFields
from packhorse.processor.jobs.keeping.settings import JobKeepingFields
from packhorse.processor.offsets.starting import MissingRecords
from packhorse.processor.partition.state import (
    Limits,
)
from packhorse.processor.watching.settings import WatchFields
from packhorse.schemas.settings import PartSettings
from packhorse.schemas.systems import DatabaseSettings, KafkaSettings, RegistrySettings


class ProcessorSettings(
    WatchFields,
    InboxFields,
    JobKeepingFields,
    DatabaseSettings,
    KafkaSettings,
    RegistrySettings,
    PartSettings,
):
    """
    Say how a processor works; durations are in seconds.

    Attributes:
        concurrency: Lanes of each process, each with a database connection of its own; a key is with one of them at a time.
        group_protocol: "consumer" is KIP-848, "classic" the older one (cooperative-sticky).
        batch_records: Most records of one transaction.
        buffer_records: Records read ahead of one partition at which fetching pauses.
        buffer_bytes: Bytes that a process reads ahead, over all its partitions; each has an equal part, at least 1 MiB.
        parked_records: Messages behind parked keys of one partition of a topic at which the partition pauses, with an alarm,
            until a tenth of them is gone: they lie in the database.
        parked_bytes: The same in bytes.
        commit_interval: Least seconds between two offset commits of one partition; the watermark in the database is what
            counts.
        drain_timeout: Seconds that what runs may take after SIGTERM, before it is given up.
        revoke_timeout: Seconds that what runs may take when its partition goes to another member.
        idle_transaction_timeout: Seconds that a handler may leave its transaction idle: below the group's session
            time-out, so that a frozen owner can't block the next one.
        lock_timeout: Longest wait for a lock, in seconds; a message that waits longer runs again, uncharged.
        job_lease: Seconds that the lease of a job runs on without being renewed: a worker that died or froze is replaced after
            that, and after the end of its session with the broker.
        unknown_types: What becomes of messages of a type that no handler knows: "quarantine" or "skip".
        missing_records: What to do when records above the watermark are no longer in the topic: "stop" the process, or
            "continue" behind the gap, which loses them.
    """

    section: ClassVar[str] = "processor"
    concurrency: Annotated[int, Field(ge=1, le=256)] = 4
    group_protocol: Literal["consumer", "classic"] = "consumer"
    batch_records: Annotated[int, Field(ge=1, le=10_000)] = 500
    buffer_records: Annotated[int, Field(ge=1, le=1_000_000)] = 5_000
    buffer_bytes: Annotated[int, Field(ge=1)] = 32 * 1024 * 1024
    parked_records: Annotated[int, Field(ge=1)] = 100_000
    parked_bytes: Annotated[int, Field(ge=1)] = 1024 * 1024 * 1024
    commit_interval: Annotated[float, Field(ge=0, le=60)] = 0.5
    drain_timeout: Annotated[float, Field(ge=0, le=3_600)] = 25.0
    revoke_timeout: Annotated[float, Field(ge=0, le=600)] = 10.0
    idle_transaction_timeout: Annotated[float, Field(ge=1, le=3_600)] = 40.0
    lock_timeout: Annotated[float, Field(ge=0.1, le=3_600)] = 10.0
    job_lease: Annotated[float, Field(ge=3, le=3_600)] = 30.0
    unknown_types: Literal["quarantine", "skip"] = "quarantine"
    missing_records: MissingRecords = MissingRecords.STOP

    @model_validator(mode="after")
    def _buffer_holds_a_batch(self) -> Self:
        if self.buffer_records < self.batch_records:
            raise ValueError(
                f"buffer_records {self.buffer_records} is less than batch_records {self.batch_records}"
            )
        return self

    def of_group(self, at: int) -> Self:
        """Return the settings of processor number *at* of those that share a process: each answers for its health by itself."""
        if not at or not self.health_port:
            return self
        return self.model_copy(update={"health_port": self.health_port + at})

    def limits(self) -> Limits:
        """Return the limits of one partition."""
        return Limits(
            batch=self.batch_records,
            buffered=self.buffer_records,
            buffered_bytes=self.buffer_bytes,
            commit_every=self.commit_interval,
        )


class InboxSettings(ProcessorSettings):
    """Say what `packhorse processor retention` and `packhorse job retention` work on; they need neither broker nor registry."""

    kafka_bootstrap_servers: str = "none:0"
    registry_url: str = "http://none"


class TopicsSettings(KafkaSettings, PartSettings):
    """
    Say how `packhorse topics` makes source topics.

    Attributes:
        partitions: Partitions of a source topic that is made, 6 if unset; set, it is checked of those that exist.
        replication: Replicas of a source topic that is made; -1: the broker's default.
    """

    section: ClassVar[str] = "topics"
    partitions: Annotated[int, Field(ge=1, le=100_000)] | None = None
    replication: Annotated[int, Field(ge=-1, le=100)] = -1


class StatusSettings(DatabaseSettings, KafkaSettings, PartSettings):
    """Say which database and broker `packhorse processor status` asks."""

    section: ClassVar[str] = ""


class OverviewSettings(DatabaseSettings, PartSettings):
    """Say which database `packhorse processor status` asks about all groups; no broker is asked."""

    section: ClassVar[str] = ""
