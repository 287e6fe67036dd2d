"""The client's errors, classed; and clients made so that a wrong property is named."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from packhorse.core.errors import BrokerUnavailable, NotReady, UsageError

MOVED_ON = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.GROUP_ID_NOT_FOUND,
        KafkaError._ASSIGNMENT_LOST,  # noqa: SLF001 the client names its own errors so
    }
)
FORBIDDEN = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,  # noqa: SLF001 the client names its own errors so
    }
)
OUT_OF_RANGE = frozenset(
    {
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001
        KafkaError._LOG_TRUNCATION,  # noqa: SLF001
    }
)


COORDINATOR = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
AWAY = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError._AUTHENTICATION,  # noqa: SLF001
    }
)
"""No broker answers, whatever is asked."""
MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})  # noqa: SLF001


def asked(error: KafkaException, what: str) -> Exception:
    """Return the error of our tree for a question about *what* that failed."""
    cause = error.args[0]
    if cause.code() in MISSING:
        return NotReady(f"{what} does not exist; `packhorse topics plan` says what is missing")
    if cause.code() in FORBIDDEN:
        return NotReady(f"{what}: {told(cause)}; grant this client the right to describe and read it")
    if cause.code() in COORDINATOR:
        return BrokerUnavailable(
            f"{what}: {told(cause)}; the coordinator is not ready yet, try again in a moment"
        )
    return BrokerUnavailable(
        f"{what}: {told(cause)}; is the broker up, and is PACKHORSE_KAFKA_BOOTSTRAP_SERVERS right?"
    )


def told(error: KafkaError) -> str:
    """Return name and text of *error*."""
    return f"{error.name()}: {error.str().strip(' :')}"


def made(make: Callable[[], Any]) -> Any:
    """
    Return the client that *make* makes.

    Raises:
        UsageError: A property is unknown or its value is not allowed; names it.
    """
    try:
        return make()
    except KafkaException as error:
        raise UsageError(f"kafka_properties: {told(error.args[0])}") from error
    except (TypeError, ValueError) as error:
        raise UsageError(f"kafka_properties: {error}") from error
