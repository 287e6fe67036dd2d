"""Deletes records of topics, as the trimmer of tiers orders."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from packhorse.core.kafka_properties import Property
from packhorse.processor.kafka.errors import FORBIDDEN, MISSING, asked, made, told
from packhorse.processor.kafka.offsets import Offsets
from packhorse.processor.tiers.trimming import Place, Trimmed

ASK_TIMEOUT = 5.0
"""Seconds for one question or order: the thread that trims has other work."""
SPREAD_TIMEOUT = 2.0
"""Seconds that the broker may wait until all replicas have deleted; they do it anyway."""

_GONE = MISSING | {KafkaError._UNKNOWN_PARTITION}  # noqa: SLF001 the client names its own errors so


class RecordDeleter:
    """See `tiers.trimming.DeletesRecords`."""

    def __init__(self, properties: Mapping[str, Property]) -> None:
        self._admin: AdminClient = made(lambda: AdminClient(dict(properties)))
        self._offsets = Offsets(properties)

    def first_offsets(self, places: Collection[Place]) -> Mapping[Place, int]:
        """Return the first offsets of those of *places* that exist. Raises BrokerUnavailable, NotReady."""
        found: dict[Place, int] = {}
        answers = self._offsets.firsts(list(places), timeout=ASK_TIMEOUT) if places else {}
        for (topic, partition), one in answers.items():
            if isinstance(one, int):
                found[topic, partition] = one
            elif one.code() not in _GONE:
                raise asked(KafkaException(one), f"{topic}[{partition}]")
        return found

    def delete_below(self, offsets: Mapping[Place, int]) -> Mapping[Place, Trimmed]:
        """Delete the records below *offsets*; returns how each order ended."""
        orders = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        futures = self._admin.delete_records(
            orders, request_timeout=ASK_TIMEOUT, operation_timeout=SPREAD_TIMEOUT
        )
        return {(one.topic, one.partition): _ended(future.result) for one, future in futures.items()}


def _ended(result: Callable[[], Any]) -> Trimmed:
    try:
        return Trimmed(int(result().low_watermark))
    except KafkaException as error:
        cause = error.args[0]
        return Trimmed(None, forbidden=cause.code() in FORBIDDEN, text=told(cause))
