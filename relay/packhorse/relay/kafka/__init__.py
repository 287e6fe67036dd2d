"""The topics through librdkafka: the port `Broker`."""

from packhorse.relay.kafka.broker import KafkaBroker
from packhorse.relay.kafka.properties import DEFAULTS, OURS

__all__ = ["DEFAULTS", "OURS", "KafkaBroker"]
