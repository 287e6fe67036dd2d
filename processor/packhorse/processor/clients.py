"""The properties of our Kafka clients: what is forced, what can be set, what is refused by name."""

from collections.abc import Mapping

from packhorse.core.kafka_properties import Property, merged
from packhorse.processor.settings import ProcessorSettings
from packhorse.schemas.systems import KafkaSettings

_SHARED = (
    "security.",
    "sasl.",
    "ssl.",
    "enable.ssl",
    "enable.sasl",
    "socket.",
    "broker.",
    "client.",
    "metadata.",
    "topic.metadata.",
    "reconnect.",
    "retry.backoff",
    "api.version.",
    "oauthbearer.",
    "log_level",
    "debug",
)


CRITICAL = 2
"""The level of syslog above which the client's own log is not asked for: its errors reach ours, and an outage is one line there
and twenty a second here."""


def consumer_properties(settings: ProcessorSettings, group: str) -> dict[str, Property]:
    """
    Return the consumer's properties.

    Offsets are committed behind results alone and reading starts where the watermark says, so what would let the client
    do either by itself is refused.

    Raises:
        SettingsError: Names a property of the user's that would break that.
    """
    ours: dict[str, Property] = {
        "group.id": group,
        "group.protocol": settings.group_protocol,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": False,
        "enable.partition.eof": False,
    }
    if settings.group_protocol == "classic":
        ours["partition.assignment.strategy"] = "cooperative-sticky"
    defaults: dict[str, Property] = {
        "client.id": "packhorse-processor",
        "queued.min.messages": 20_000,
        "queued.max.messages.kbytes": 32 * 1024,
        "fetch.queue.backoff.ms": 20,
        # With the classic protocol new partitions, and topics that come back, are seen by the client alone.
        "topic.metadata.refresh.interval.ms": 60_000,
    }
    if settings.group_protocol == "consumer":
        # Each topic is dealt out by itself, and all alike: "uniform" may give one member the sources and another the tiers.
        defaults["group.remote.assignor"] = "range"
    return {**defaults, **_merged(settings, settings.kafka_properties, ours)}


def producer_properties(settings: KafkaSettings) -> dict[str, Property]:
    """Return the properties of the producer of copies."""
    ours: dict[str, Property] = {
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 0,
        "message.timeout.ms": 10_000,
        # A topic that is missing is named after a second, not taken for a slow broker.
        "topic.metadata.propagation.max.ms": 1_000,
        "message.max.bytes": 100_000_000,
    }
    return _merged(settings, _shared(settings.kafka_properties), ours)


def admin_properties(settings: KafkaSettings) -> dict[str, Property]:
    """Return the properties of the client that asks and changes topics and groups."""
    # What it fails at is told as an error; its own log would repeat that on the terminal twenty times a second.
    return _merged(settings, {"log_level": 0, **_shared(settings.kafka_properties)}, {})


def _shared(properties: Mapping[str, Property]) -> dict[str, Property]:
    """Return those properties that every kind of client knows; the others are meant for the consumer."""
    return {name: value for name, value in properties.items() if name.startswith(_SHARED)}


def _merged(
    settings: KafkaSettings, user: Mapping[str, Property], ours: Mapping[str, Property]
) -> dict[str, Property]:
    password = settings.kafka_sasl_password
    return merged(
        {"log_level": CRITICAL, **user},
        ours,
        bootstrap_servers=settings.kafka_bootstrap_servers,
        sasl_password=password.get_secret_value() if password else None,
        part="processor",
    )
