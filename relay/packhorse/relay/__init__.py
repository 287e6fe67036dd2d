"""
Outbox to Kafka: rows of committed transactions leave at least once, in the order in which their keys were committed.

What order is promised, and what a writer does for it: the first arrivals of a key stand in commit order if each writer of
that key holds a lock on it before its row's seq is drawn: by the row of its own that it changes, or by `lock_key=True`.
Nothing is lost without such locks, but two writers of one key may swap. docs/decisions/0001-horizon-polling.md says why.

    model, steps        positions, batches; what happened and what to do
    state, after,       the core: `decide(state, events, now) -> (state, command)`, without I/O
    choice, core
    shell, ports        runs the commands; what it needs from outside
    postgres/, kafka    the adapters
    lease, pace         threads
"""
