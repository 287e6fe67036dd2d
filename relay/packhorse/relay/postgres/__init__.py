"""The outbox's database through psycopg: ports `Outbox` and `LeaseTable`, and what `status` reads; every wait is bounded on this side of the network."""
