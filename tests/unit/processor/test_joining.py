"""A client that can't join the group."""

from typing import Any

import pytest
from confluent_kafka import KafkaException

from packhorse.core.kafka_properties import Property
from packhorse.core.logs import logger
from packhorse.processor.kafka.consumer import GroupConsumer

NOWHERE: dict[str, Property] = {"bootstrap.servers": "127.0.0.1:1", "group.id": "unit", "log_level": 0}


def test_a_client_that_can_t_subscribe_is_closed() -> None:
    """Fails when it is left to the collector, which may wait for ever for it to end."""
    rebalances: Any = None
    nothing = [""]
    consumer = GroupConsumer(NOWHERE, nothing, rebalances, logger("processor"))
    with pytest.raises(KafkaException):
        consumer.join()
    with pytest.raises(RuntimeError, match="closed"):
        consumer._consumer.poll(0)
