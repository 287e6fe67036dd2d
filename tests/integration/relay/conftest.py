"""What the relay's integration tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.relay import Relays, relays
from tests.support.topics import make_topic

from packhorse.local.settings import Endpoints


@pytest.fixture
def topic(stack: Endpoints, topic_prefix: str) -> str:
    """Provide the topic that rows of aggregate type "orders" go to."""
    name = f"{topic_prefix}.orders"
    make_topic(stack.kafka_bootstrap, name)
    return name


@pytest.fixture
def group(tmp_path: Path, database: str, stack: Endpoints, topic_prefix: str, topic: str) -> Iterator[Relays]:
    """Provide relays between the fresh database and the shared broker."""
    with relays(tmp_path, database=database, bootstrap=stack.kafka_bootstrap, namespace=topic_prefix) as made:
        yield made
