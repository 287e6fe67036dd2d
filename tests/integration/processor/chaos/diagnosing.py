"""Where a run stands that does not come to its end: the product's own tables, and what its threads do. Judges nothing."""

import signal
from collections.abc import Set as AbstractSet
from pathlib import Path
from uuid import UUID

import psycopg
from tests.integration.processor.chaos.members import Crew
from tests.support.processing import Ground

QUERIES = (
    'SELECT topic, partition, "offset" FROM packhorse.watermark ORDER BY 1, 2',
    "SELECT outcome, count(*) FROM packhorse.inbox GROUP BY 1",
    "SELECT * FROM packhorse.parked_key ORDER BY partition, parked_at",
    'SELECT key_hash, "offset", message_id, parked_at FROM packhorse.parked_message ORDER BY key_hash, "offset"',
    (
        'SELECT message_id, attempt, tier, due_at, sent_at, sent_partition, sent_offset, resend_at, key_hash, "offset"'
        " FROM packhorse.retry_message ORDER BY due_at"
    ),
    "SELECT message_id, state, attempts, redrives, key_hash, copy_offset FROM packhorse.quarantined_message ORDER BY quarantined_at",
    "SELECT * FROM packhorse.in_hand",
    "SELECT * FROM packhorse.started",
    "SELECT member, pid, seen_at, status FROM packhorse.processor_member",
    (
        "SELECT pid, state, wait_event_type, wait_event, xact_start, query_start, left(query, 120) FROM pg_stat_activity"
        " WHERE datname = current_database()"
    ),
)
STUCK = "SELECT message_id, outcome, attempt, due_at, changed_at, deliveries FROM packhorse.inbox WHERE message_id = ANY(%s)"


def write_down(ground: Ground, crew: Crew, ids: AbstractSet[UUID], folder: Path) -> None:
    """Write tables to `folder/tables`, and let each member write its threads' stacks to its log."""
    with (
        psycopg.connect(ground.database, autocommit=True) as connection,
        (folder / "tables").open("w") as out,
    ):
        done = {row[0] for row in connection.execute("SELECT id FROM effect")}
        stuck = sorted(ids - done)
        print(len(stuck), "messages have no effect; the first:", *stuck[:20], sep="\n", file=out)
        for query, parameters in (*((one, ()) for one in QUERIES), (STUCK, (stuck,))):
            print(f"\n{query}", file=out)
            for row in connection.execute(query, parameters):
                print("  ", *row, file=out)
    for member in crew.members:
        member.signal(signal.SIGUSR1)
