"""
Settings of Debezium's Postgres connector with which it puts on the topics what our relay does.

Pure. What each choice rests on was seen on the real connector, 3.6.1 on Kafka Connect 4.3.0; a test compares the bytes.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from packhorse.core.errors import SettingsError
from packhorse.core.message import HEADER_COLUMNS
from packhorse.core.naming import IDENTIFIER_MAX, checked_identifier
from packhorse.relay.cdc.stream import SLOT_PREFIX

PASSWORD = "${env:PACKHORSE_DATABASE_PASSWORD}"  # noqa: S105 it says where it is
"""Where Connect finds the database's password; a reference, resolved on the worker."""
HEARTBEAT = 10.0
_REFERENCE = re.compile(r"\$\{[A-Za-z][^}\s]*:[^}\s]+\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_HIDDEN = ("xid", "seq")
"""Columns of the outbox that are ours alone; the connector can't read the type of the first."""
_LARGEST = 16 * 1024 * 1024
"""The largest record that the connector sends; Java's client has 1 MiB by default, and 32 MiB for all that waits."""
_QUEUED = 64 * 1024 * 1024
"""Bytes that the connector reads ahead, at most: it counts 8,192 rows by default, whatever their size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """
    Where the connector finds the database.

    Attributes:
        tls: Its settings by libpq's names: sslmode, sslrootcert, sslcert, sslkey.
    """

    host: str
    port: int
    database: str
    user: str
    tls: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """
    What a person may choose.

    Attributes:
        name: The connector's name; also the first part of the topics that the connector makes up for itself.
        schema: Database schema of the outbox.
        namespace: First part of the topics' names.
        slot, publication: What it reads from; made beforehand, see `preparation`.
        password: Reference to the password, such as `${env:NAME}` or `${file:/path:key}`.
        heartbeat: Seconds between two heartbeats; 0: none, and an idle outbox then holds back write-ahead log.

    Raises:
        SettingsError: A value is not allowed; says what is.
    """

    name: str
    schema: str
    namespace: str
    slot: str
    publication: str
    password: str = PASSWORD
    heartbeat: float = HEARTBEAT

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise SettingsError(
                f"--name {self.name!r} is not allowed: 1 to 100 letters, digits, dots, dashes and underscores"
            )
        checked_slot(self.slot)
        checked_identifier(self.publication, what="publication")
        if not _REFERENCE.fullmatch(self.password):
            raise SettingsError(
                "--password-from is no reference; it looks like ${env:NAME} or ${file:/path/of/file:key}. "
                "The password itself is never a flag: the process list shows flags to everybody"
            )
        if not (self.heartbeat == 0 or 0.1 <= self.heartbeat <= 3_600):
            raise SettingsError(f"--heartbeat {self.heartbeat:g} is not allowed: 0 for none, or 0.1 to 3600")

    @property
    def heartbeat_topic(self) -> str | None:
        """The topic that has to be there when heartbeats are sent."""
        return f"__debezium-heartbeat.{self.name}" if self.heartbeat else None


def checked_slot(slot: str) -> str:
    """
    Return the name of a slot for a connector.

    Raises:
        SettingsError: It is no legal name, or one of those that the relay's own slots have.
    """
    checked_identifier(slot, what="slot")
    if slot.startswith(SLOT_PREFIX):
        raise SettingsError(
            f"--slot {slot} is not allowed: names that begin with {SLOT_PREFIX} are those of the relay's own slots; "
            "take another, such as debezium_…"
        )
    return slot


def slot_of(schema: str) -> str:
    """Return the slot's name unless a person chooses one."""
    return f"debezium_{schema}"[:IDENTIFIER_MAX]


def configuration(connector: Connector, source: Source) -> dict[str, str]:
    """Return the connector's configuration, in the order in which a person reads it."""
    outbox = f"{connector.schema}.outbox"
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "database.hostname": source.host,
        "database.port": str(source.port),
        "database.dbname": source.database,
        "database.user": source.user,
        "database.password": connector.password,
        **{f"database.{name}": value for name, value in source.tls.items()},
        "topic.prefix": connector.name,
        "plugin.name": "pgoutput",
        "slot.name": connector.slot,
        "slot.max.retries": "60",  # a restarted task finds its own slot in use for a moment
        "slot.retry.delay.ms": "1000",
        "publication.name": connector.publication,
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "no_data",
        "table.include.list": outbox,
        "column.exclude.list": ",".join(f"{outbox}.{column}" for column in _HIDDEN),
        "message.prefix.exclude.list": ".*",  # the relay's own log messages would end the task
        "tombstones.on.delete": "false",
        "extended.headers.enabled": "false",
        "poll.interval.ms": "10",
        "max.queue.size.in.bytes": str(_QUEUED),
        **_heartbeats(connector.heartbeat),
        **_converters(),
        **_router(connector.namespace),
        "producer.override.max.request.size": str(_LARGEST),
    }


def _heartbeats(seconds: float) -> dict[str, str]:
    """
    Return how the slot moves on while the outbox is idle and the rest of the database is not.

    From Postgres 15 on nothing of other tables reaches the connector, so that only `connector_and_driver` moves the slot
    then; that mode switches heartbeats on by itself, hence the other one where there are to be none.
    """
    return {
        "lsn.flush.mode": "connector_and_driver" if seconds else "connector",
        "heartbeat.interval.ms": str(round(seconds * 1000)),
        "status.update.interval.ms": "1000",  # how soon the server hears how far it has come
    }


def _converters() -> dict[str, str]:
    """Return converters that move bytes; the delegate writes heartbeats, which are no bytes."""
    binary = "io.debezium.converters.BinaryDataConverter"
    return {
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": binary,
        "value.converter.delegate.converter.type": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.delegate.converter.type.schemas.enable": "false",
        "header.converter": "org.apache.kafka.connect.storage.StringConverter",
    }


def _router(namespace: str) -> dict[str, str]:
    """Return the outbox event router's settings; the header `id` is its own and always the first."""
    (first, _), *others = HEADER_COLUMNS
    assert first == "id", "the router puts the header id first, whatever it is told"
    table, transform = "transforms.outbox.table", "io.debezium.transforms.outbox.EventRouter"
    return {
        "transforms": "outbox",
        "transforms.outbox.type": transform,
        f"{table}.field.event.id": "id",
        f"{table}.field.event.key": "aggregateid",
        f"{table}.field.event.type": "type",
        f"{table}.field.event.payload": "payload",
        f"{table}.field.event.timestamp": "created_at",
        "transforms.outbox.route.by.field": "aggregatetype",
        "transforms.outbox.route.topic.replacement": f"{namespace}.${{routedByValue}}",
        f"{table}.fields.additional.placement": ",".join(
            f"{column}:header:{name}" for name, column in others
        ),
    }


def as_json(name: str, config: Mapping[str, str]) -> str:
    """Return the body of `POST /connectors`."""
    return json.dumps({"name": name, "config": dict(config)}, indent=2) + "\n"


def as_properties(name: str, config: Mapping[str, str]) -> str:
    r"""
    Return the file that a standalone worker reads.

    >>> as_properties("n", {"a": "C:\\x"})
    'name=n\na=C:\\\\x\n'
    """
    lines = ({"name": name} | dict(config)).items()
    return "".join(f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in lines)
