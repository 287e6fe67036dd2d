"""Read rows as the relay does and send none: `python -m bench.relay.children.fetch ROWS`; prints seconds and CPU seconds."""

import gc
import sys
import time

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.relay.allocator import keep_freed_memory
from packhorse.relay.daemon import GC_THRESHOLD
from packhorse.relay.postgres.outbox import PostgresOutbox
from packhorse.relay.settings import RelaySettings


def main() -> None:
    rows = int(sys.argv[1])
    settings = RelaySettings.load({})
    keep_freed_memory()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    outbox = PostgresOutbox(
        settings.database_url.get_secret_value(), settings.database_schema, batch_rows=settings.batch_rows
    )
    owned = outbox.own(SYSTEM_CHANCE.token(), "bench", 600)
    assert owned is not None
    position, read = owned.position, 0
    began, cpu = time.monotonic(), time.process_time()
    while read < rows:
        batch = outbox.fetch(position, settings.batch_rows)
        position, read = batch.end(len(batch.rows)), read + len(batch.rows)
    print(time.monotonic() - began, time.process_time() - cpu, flush=True)
    outbox.close()


if __name__ == "__main__":
    main()
