"""Settings of `packhorse relay`."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, SecretStr, model_validator

from packhorse.relay.retention.settings import RetentionFields
from packhorse.schemas.settings import PartSettings
from packhorse.schemas.systems import DatabaseSettings, DatabaseUrl, KafkaSettings, NamespaceSettings


class RelaySettings(RetentionFields, DatabaseSettings, KafkaSettings, NamespaceSettings, PartSettings):
    """
    Say how the relay works; durations are in seconds.

    Attributes:
        batch_rows: Rows in one fetch, at most.
        poll: Pause between polls while rows come.
        idle_poll: Pause between polls once none came for five seconds.
        lease: How long the shard stays this process's own without a sign of life; a standby waits this long.
        silence: Waiting longer than this for the broker's confirmations is told as trouble.
        stop_within: How long a clean stop may take.
        database_timeout: Longest wait for any answer of the database.
        release_rate: Rows a second, at most, when what was held goes back on its way.
        mode: How rows are read. `polling` needs nothing but the tables. `cdc` and `auto` stream them from a replication slot
            (see `packhorse relay cdc-setup`) for the lowest latency, and poll whenever there is no stream.
        wal_budget: Bytes of write-ahead log that the slot may hold; above it the slot is given up and rows are polled.
        listen: Let commits wake the relay between two polls, after `packhorse relay notify on`; at a price for every commit
            (docs/decisions/0010-notify.md).
        stream_retry: Pause before a stream that failed is looked for again; it grows to twelve times that while it fails.
        replication_url: Where to stream from and to listen, when database_url leads to a pooler: the same primary and database, directly.
        fenced: Send in transactions under a name that one relay has at a time, so that readers of committed records never see what a
            relay sends after its successor; for readers without an inbox, at a price in latency (docs/decisions/0013-fencing.md).
        null_headers: Send a null for each absent header, as Debezium's outbox event router does, instead of leaving it out.
    """

    section: ClassVar[str] = "relay"
    batch_rows: Annotated[int, Field(ge=1, le=100_000)] = 5_000
    poll: Annotated[float, Field(ge=0.001, le=60)] = 0.005
    idle_poll: Annotated[float, Field(ge=0.001, le=60)] = 0.05
    lease: Annotated[float, Field(ge=1, le=600)] = 5.0
    silence: Annotated[float, Field(ge=0.1, le=3_600)] = 5.0
    stop_within: Annotated[float, Field(ge=0, le=600)] = 10.0
    database_timeout: Annotated[float, Field(ge=1, le=600)] = 10.0
    mode: Literal["polling", "cdc", "auto"] = "polling"
    wal_budget: Annotated[int, Field(ge=64 * 1024 * 1024)] = 4 * 1024**3
    stream_retry: Annotated[float, Field(ge=0.1, le=3_600)] = 5.0
    replication_url: DatabaseUrl | None = None
    release_rate: Annotated[int, Field(ge=1, le=10_000_000)] = 10_000
    listen: bool = False
    fenced: bool = False
    null_headers: bool = False

    @model_validator(mode="after")
    def _polls(self) -> Self:
        if self.poll > self.idle_poll:
            raise ValueError(f"poll {self.poll:g} is longer than idle_poll {self.idle_poll:g}")
        return self


class StatusSettings(DatabaseSettings, PartSettings):
    """Say which database `packhorse relay status` reads; other settings of the relay may stand in the same table."""

    section: ClassVar[str] = ""


class OrderSettings(PartSettings):
    """
    Say who orders.

    Attributes:
        token: For the commands: whose rights count and who is on record, instead of the database's role; set it from a file.
    """

    section: ClassVar[str] = "console"
    partial: ClassVar[bool] = True

    token: SecretStr | None = None


class RetentionSettings(RelaySettings):
    """Say which database `packhorse retention` works on; it needs neither broker nor namespace."""

    kafka_bootstrap_servers: str = "none:0"
    namespace: str = "none"


class CdcSettings(RelaySettings):
    """Say which database `packhorse relay cdc-setup` works on; it needs neither broker nor namespace."""

    kafka_bootstrap_servers: str = "none:0"
    namespace: str = "none"


class DebeziumSettings(DatabaseSettings, NamespaceSettings, PartSettings):
    """Say what `packhorse relay debezium-config` prints a configuration for; the database's user is the connector's."""

    section: ClassVar[str] = ""


class VerifySettings(DatabaseSettings, KafkaSettings, NamespaceSettings, PartSettings):
    """Say which outbox and which topics `packhorse relay verify` compares."""

    section: ClassVar[str] = ""


class TopicSettings(DatabaseSettings, NamespaceSettings, PartSettings):
    """Say which database a command works on that names a topic."""

    section: ClassVar[str] = ""
