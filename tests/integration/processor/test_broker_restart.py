"""A broker that was restarted: what is asked of it is answered at once."""

from typing import Any

import pytest
from tests.support.stack import PrivateBroker
from tests.support.topics import make_topic
from tests.support.wait import eventually

from packhorse.core.errors import BrokerUnavailable
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.kafka.trimming import RecordDeleter


@pytest.mark.case("P-27")
def test_where_a_log_begins_and_ends_is_known_soon_after_a_restart(
    private_kafka: PrivateBroker, topic_prefix: str
) -> None:
    """
    Fails when it is asked through the admin client: that one is refused for minutes, with its old idea of the leader's epoch, and no
    partition could be opened meanwhile.
    """
    topic = f"{topic_prefix}.orders"
    properties: dict[str, str | int | float | bool] = {
        "bootstrap.servers": private_kafka.direct_bootstrap,
        "log_level": 0,
    }
    make_topic(private_kafka.direct_bootstrap, topic, partitions=1)
    questions, deleter = BrokerQuestions(properties), RecordDeleter(properties)

    def answers() -> Any:
        try:
            return questions.log_ends("readers", topic, 0), deleter.first_offsets([(topic, 0)])
        except BrokerUnavailable:
            return None

    there = (0, 0, None), {(topic, 0): 0}
    assert eventually(answers, what="the broker answers") == there
    private_kafka.kill()
    private_kafka.start()
    assert eventually(answers, what="the broker answers again", timeout=15) == there
    assert questions.ends([(topic, 0)]) == {(topic, 0): 0}
