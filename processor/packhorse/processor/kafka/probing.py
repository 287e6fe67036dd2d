"""A second look at a partition, apart from the member of the group: where it ends, and whether anything is there to read."""

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from packhorse.core.clock import Clock
from packhorse.core.errors import PackhorseError
from packhorse.core.kafka_properties import Property
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.kafka.errors import made

READ_WITHIN = 5.0
"""Seconds for one read."""

Place = tuple[str, int]


class Probe:
    """Ask and read; joins no group and commits nothing; blocks, so it is for a thread of its own."""

    def __init__(self, broker: BrokerQuestions, properties: Mapping[str, Property], clock: Clock) -> None:
        self._broker = broker
        self._properties = {**properties, "enable.partition.eof": True}
        self._clock = clock

    def ends(self, places: Mapping[Place, int]) -> dict[Place, int | str]:
        """
        Return, of partitions and the positions from which they are to be read, where each ends, or why that is not known.

        Of one that holds nothing to read from there the position is returned: what lies there may be the marks of
        transactions, or compacted away, and is no work.
        """
        try:
            found = self._broker.ends(list(places))
        except PackhorseError as error:
            return dict.fromkeys(places, str(error))
        return {
            place: self._readable(place, places[place], end) if isinstance(end, int) else end
            for place, end in found.items()
        }

    def _readable(self, place: Place, position: int, end: int) -> int | str:
        """Return *end* when a record can be read from *position*; else the position, or why that is not known."""
        if end <= position:
            return end
        consumer = made(lambda: Consumer(self._properties))
        try:
            consumer.assign([TopicPartition(*place, position)])
            return self._first(consumer, position, end)
        except KafkaException as error:
            return str(error.args[0].str())
        finally:
            consumer.close()

    def _first(self, consumer: Consumer, position: int, end: int) -> int | str:
        deadline = self._clock.monotonic() + READ_WITHIN
        while self._clock.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                return end
            if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 the client names its own errors so
                return position
        return f"the broker gave nothing to read within {READ_WITHIN:g} s"
