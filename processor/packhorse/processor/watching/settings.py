"""Settings of what watches a processor, and of how many processes work."""

from typing import Annotated

from pydantic import BaseModel, Field


class WatchFields(BaseModel):
    """
    Say when something counts as standing still, and where health is told; durations are in seconds.

    Attributes:
        processes: Processes that work, each a member of the group with its own threads and connections. More than one share
            no interpreter, so handlers that compute gain cores; none helps beyond the count of partitions.
        stall_after: Time without a move after which a partition with work, or a handler, is named, with the handler's stack.
        health_port: Port that answers `/health/live` and `/health/ready` over HTTP; 0: none. Process number N of several
            answers on this port + N, from 0.
        health_host: Address that it answers on; 0.0.0.0 or :: for all.
    """

    processes: Annotated[int, Field(ge=1, le=256)] = 1
    stall_after: Annotated[float, Field(ge=0.5, le=86_400)] = 60.0
    health_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    health_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
