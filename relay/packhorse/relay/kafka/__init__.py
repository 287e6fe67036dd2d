"""The topics through librdkafka: the port `Broker`."""

from packhorse.relay.kafka.broker import KafkaBroker
from packhorse.relay.kafka.properties import DEFAULTS, OURS, RESERVED, fence_name

__all__ = ["DEFAULTS", "OURS", "RESERVED", "KafkaBroker", "fence_name"]
