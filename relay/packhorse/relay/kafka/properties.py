"""The client's configuration: what order and "nothing lost" rest on, what a user may set otherwise, and what fencing adds."""

from collections.abc import Mapping

from packhorse.core.kafka_properties import Property

OURS: Mapping[str, Property] = {
    "enable.idempotence": True,
    "acks": "all",
    "max.in.flight.requests.per.connection": 5,
    "enable.gapless.guarantee": True,
    "message.timeout.ms": 0,
    "retries": 2_147_483_647,
    "partitioner": "murmur2_random",
    "delivery.report.only.error": True,
    "allow.auto.create.topics": False,
}
"""What order and "nothing lost" rest on; nobody may set them otherwise."""

RESERVED = frozenset({"transactional.id", "transaction.timeout.ms"})
"""What the setting `fenced` is for."""

BATCH_BYTES = 1_000_000
"""Size of a request's batch, at most; less when a topic takes less: the broker refuses whole batches."""

DEFAULTS: Mapping[str, Property] = {
    "compression.type": "lz4",
    # Of a backlog alone: a quarter of the broker's time less than with 5. A pause is spent in a flush, which ends lingering.
    "linger.ms": 20,
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 131_072,
    "message.max.bytes": 100_000_000,
    "batch.size": BATCH_BYTES,
    "reconnect.backoff.max.ms": 2_000,
    "client.id": "packhorse-relay",
}
"""What a user may set otherwise."""

TRANSACTION_SECONDS = 10.0
"""A transaction left open by a relay that is gone hides later records from readers of committed ones for this long, at most."""


def fence_name(namespace: str, schema: str, shard: int) -> str:
    """Return the name that the owner of a shard sends under; its releases of holds have one of their own."""
    return f"{namespace}.relay.{schema}.{shard}"


def fencing(transactional_id: str) -> dict[str, Property]:
    """
    Return what a fenced client needs on top.

    A row that isn't confirmed when its transaction has run out goes again with all rows of it, so that it needs no longer time.
    """
    milliseconds = int(TRANSACTION_SECONDS * 1000)
    return {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": milliseconds,
        "message.timeout.ms": milliseconds,
    }
