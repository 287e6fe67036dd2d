"""Read where a group stands, and reset a stopped one: the audit row and the watermark first, then the coordinator."""

import json
from collections.abc import Sequence
from uuid import UUID

from packhorse.core.errors import OwnershipLost, UsageError
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.offsets.resetting import Move, Reset, Standing, moves
from packhorse.processor.record import Stream
from packhorse.processor.running.lanework import COMMIT, ROLLBACK
from packhorse.processor.storing import postgres
from packhorse.processor.storing.store import Store


def standings(
    connection: postgres.GuardedConnection, store: Store, broker: BrokerQuestions, topic: str
) -> list[Standing]:
    """
    Return where the group stands in each partition of *topic*.

    Raises:
        NotReady: The topic or a table is missing.
        BrokerUnavailable, DatabaseUnavailable: Either does not answer.
    """
    topic_id, count = broker.describe([topic])[topic]
    found = []
    for partition in range(count):
        stream = Stream(topic=topic, topic_id=topic_id, source=topic)
        mark = postgres.run(connection, store.read_watermark(stream, partition))
        ends = broker.log_ends(store.group, topic, partition)
        found.append(Standing(topic, topic_id, partition, mark.offset, ends.committed, ends.low, ends.high))
    return found


def check_stopped(broker: BrokerQuestions, group: str) -> None:
    """
    Check that nobody runs the group.

    Raises:
        OwnershipLost: It has members.
    """
    state, members = broker.group_state(group)
    if members:
        raise OwnershipLost(
            f"group {group} has {members} members and is {state}; stop its processors, then reset its offsets"
        )


def carry_out(
    connection: postgres.GuardedConnection,
    store: Store,
    broker: BrokerQuestions,
    planned: Sequence[Move],
    *,
    actor: str,
    why: str,
) -> None:
    """
    Set watermarks and committed offsets as *planned*.

    Watermarks and the audit row are one transaction; the coordinator follows. A crash in between leaves the watermark,
    which counts; repeat the command to finish.

    Raises:
        UsageError: Nothing is planned.
        BrokerUnavailable: The coordinator refused, e.g. because a member has joined by now.
    """
    if not planned:
        raise UsageError("nothing to do: watermark and committed offset are there already")
    topic, topic_id = planned[0].standing.topic, planned[0].standing.topic_id
    postgres.begin(connection)
    try:
        _write(connection, store, planned, topic_id=topic_id, actor=actor, why=why)
        postgres.command(connection, COMMIT)
    except BaseException:
        postgres.command(connection, ROLLBACK)
        raise
    broker.set_offsets(store.group, topic, {move.standing.partition: move.to for move in planned})


def _write(
    connection: postgres.GuardedConnection,
    store: Store,
    planned: Sequence[Move],
    *,
    topic_id: UUID,
    actor: str,
    why: str,
) -> None:
    topic = planned[0].standing.topic
    stream = Stream(topic=topic, topic_id=topic_id, source=topic)
    for move in planned:
        postgres.run(connection, store.reset_watermark(stream, move.standing.partition, move.to))
    detail = {
        "topic_id": str(topic_id),
        "partitions": [
            {
                "partition": move.standing.partition,
                "watermark": move.standing.watermark,
                "committed": move.standing.committed,
                "to": move.to,
            }
            for move in planned
        ],
    }
    steps = store.audit(actor=actor, act="reset offsets", topic=topic, detail=json.dumps(detail), why=why)
    postgres.run(connection, steps)


__all__ = ["Move", "Reset", "Standing", "carry_out", "check_stopped", "moves", "standings"]
