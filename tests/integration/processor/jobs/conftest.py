"""The ground of the tests of jobs: one database a module, its tables empty for each test, and a topic a test."""

import pytest
from tests.support.jobs import JobGround

from packhorse.local.settings import Endpoints


@pytest.fixture
def jobs(stack: Endpoints, shared_tables: str, topic_prefix: str) -> JobGround:
    """Provide one partition, nothing in it."""
    return JobGround(stack, shared_tables, topic_prefix)


@pytest.fixture
def wide_jobs(stack: Endpoints, shared_tables: str, topic_prefix: str) -> JobGround:
    """Provide two partitions."""
    return JobGround(stack, shared_tables, topic_prefix, partitions=2)
