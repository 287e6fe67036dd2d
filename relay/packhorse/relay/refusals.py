"""
Whose fault a refusal is: of one row, of a topic, or of nobody; told by the name that the Kafka client gives to the error.

Nobody's fault is all that a row or a topic can't help: the network, brokers on their way up or down, time-outs, logins, a client
that was fenced or gave up, and what was dropped because of another row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from packhorse.relay.holds import Fault, Kind, Scope, scope_of
from packhorse.relay.model import AGGREGATETYPE, ID, SEQ, Row


class Blame(Enum):
    """Who must wait until it is mended."""

    ROW = "row"
    TOPIC = "topic"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """
    What an error means.

    Attributes:
        blame: Whose fault it is.
        code: As in Fault; empty when nobody is to blame.
        step: What to do about it.
        heals: As in Fault.
    """

    blame: Blame
    code: str = ""
    step: str = ""
    heals: bool = False


NOBODY = Refusal(blame=Blame.NOBODY)
TOO_LARGE = Refusal(
    blame=Blame.ROW,
    code="too_large",
    step="raise max.message.bytes on the topic and release the hold, or discard the row",
)
REFUSED = Refusal(
    blame=Blame.ROW,
    code="refused",
    step="compare the row with the topic's settings (cleanup.policy, message.timestamp.*), mend them and release the hold, "
    "or discard the row",
)
HEADER = Refusal(
    blame=Blame.ROW, code="header", step="the client takes no such header; discard the row and write it again"
)
UNKNOWN = Refusal(
    blame=Blame.ROW, code="unknown", step="the relay tries again by itself; see the broker's log", heals=True
)
MISSING = Refusal(
    blame=Blame.TOPIC,
    code="missing",
    step="the topic does not exist; make it with `packhorse topics apply`; the relay goes on by itself",
    heals=True,
)
IMPOSSIBLE = Refusal(
    blame=Blame.TOPIC,
    code="missing",
    step="no topic can have this name, so its rows can't go anywhere: discard them, and mend what wrote them",
)
FORBIDDEN = Refusal(
    blame=Blame.TOPIC,
    code="forbidden",
    step="the relay may not use the topic; grant it Describe, DescribeConfigs and Write; it goes on by itself",
    heals=True,
)

_MEANINGS: Mapping[Refusal, str] = {
    TOO_LARGE: "MSG_SIZE_TOO_LARGE RECORD_LIST_TOO_LARGE INVALID_MSG_SIZE",
    REFUSED: "INVALID_RECORD INVALID_TIMESTAMP _BAD_MSG",
    MISSING: "UNKNOWN_TOPIC_OR_PART _UNKNOWN_TOPIC _UNKNOWN_PARTITION UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID",
    IMPOSSIBLE: "TOPIC_EXCEPTION",
    FORBIDDEN: "TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED",
    NOBODY: """
        _PURGE_QUEUE _PURGE_INFLIGHT _FATAL _GAPLESS_GUARANTEE _INVALID_DIFFERENT_RECORD _DESTROY _STATE _QUEUE_FULL _INCONSISTENT
        OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER UNKNOWN_PRODUCER_ID INVALID_PRODUCER_ID_MAPPING
        _FENCED PRODUCER_FENCED INVALID_PRODUCER_EPOCH INVALID_TXN_STATE TRANSACTION_ABORTABLE TRANSACTION_COORDINATOR_FENCED
        CONCURRENT_TRANSACTIONS INVALID_TRANSACTION_TIMEOUT TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR
        _TRANSPORT _ALL_BROKERS_DOWN _RESOLVE _SSL _AUTHENTICATION _MSG_TIMED_OUT _TIMED_OUT _TIMED_OUT_QUEUE _WAIT_CACHE
        _WAIT_COORD _NODE_UPDATE _RETRY _INTR _CRIT_SYS_RESOURCE _ISR_INSUFF _UNKNOWN_BROKER _DESTROY_BROKER
        REQUEST_TIMED_OUT NETWORK_EXCEPTION BROKER_NOT_AVAILABLE LEADER_NOT_AVAILABLE NOT_LEADER_FOR_PARTITION REPLICA_NOT_AVAILABLE
        FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND KAFKA_STORAGE_ERROR
        THROTTLING_QUOTA_EXCEEDED REBOOTSTRAP_REQUIRED STALE_BROKER_EPOCH NOT_CONTROLLER
        SASL_AUTHENTICATION_FAILED ILLEGAL_SASL_STATE UNSUPPORTED_SASL_MECHANISM SECURITY_DISABLED
        _UNSUPPORTED_FEATURE UNSUPPORTED_VERSION UNSUPPORTED_COMPRESSION_TYPE INVALID_REQUIRED_ACKS""",
}
_BY_NAME = {name: refusal for refusal, names in _MEANINGS.items() for name in names.split()}


def judged(name: str) -> Refusal:
    """
    Return what the error that the client calls *name* means for the row that it was reported of.

    >>> judged("MSG_SIZE_TOO_LARGE").code, judged("_UNKNOWN_TOPIC").blame.value, judged("_TRANSPORT").blame.value
    ('too_large', 'topic', 'nobody')
    >>> judged("something new").code
    'unknown'
    """
    return _BY_NAME.get(name, UNKNOWN)


def topic_scope(aggregatetype: str) -> Scope:
    """Return the scope of all rows of a topic."""
    return Scope(kind=Kind.TOPIC, aggregatetype=aggregatetype)


def fault_of(refusal: Refusal, row: Row, *, topic: str, said: str) -> Fault:
    """Return the fault that *row* met; *said* is the client's own text, which must quote nothing of the row."""
    reason = f"{said}: {refusal.step}" if said else refusal.step
    if refusal.blame is Blame.TOPIC:
        scope = topic_scope(row[AGGREGATETYPE])
        return Fault(scope=scope, code=refusal.code, reason=reason, heals=refusal.heals, topic=topic)
    return Fault(
        scope=scope_of(row), code=refusal.code, reason=reason, heals=refusal.heals, topic=topic, seq=row[SEQ], id=row[ID]
    )  # fmt: skip


def partition_fault(
    aggregatetype: str, partition: int, partitions: int, *, topic: str, code: str, reason: str
) -> Fault:
    """Return the fault of one partition; it heals by itself."""
    scope = Scope(
        kind=Kind.PARTITION, aggregatetype=aggregatetype, partition=partition, partitions=partitions
    )
    return Fault(scope=scope, code=code, reason=reason, heals=True, topic=topic)
