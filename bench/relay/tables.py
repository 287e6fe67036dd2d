"""The carriers' tables: how each is made, filled with a backlog, and written to, one row at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from bench.relay.ground import Ground, Place

PAYLOAD_BYTES = 300
KEYS = 10_000
PER_TRANSACTION = 100
"""Rows that one transaction of a backlog wrote."""

# An id, a text that compresses as an event's does, and two digests that do not.
_PAYLOAD = (
    """convert_to(rpad(gen_random_uuid()::text || '{{"customer": "customer-' || n % 97 || '", "placed_at": "2026-07-31T12:00:00", """
    """"currency": "EUR", "note": "' || md5(n::text) || md5((n + 1)::text), 298, 'please deliver ') || '"}}', 'UTF8')"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """
    One carrier's table.

    Attributes:
        make: Statements that make it; none for the outbox, which stands already.
        name: For VACUUM ANALYZE after the backlog.
        fill: INSERT of the rows {first} to {last}.
        insert: INSERT of one row: %(id)s, %(key)s, %(payload)s; what wakes the carrier is part of it.
    """

    make: Sequence[str] = ()
    name: str
    fill: str
    insert: str

    def prepare(self, place: Place) -> None:
        """Make it."""
        with psycopg.connect(place.database, autocommit=True) as connection:
            for statement in self.make:
                connection.execute(statement)

    def backlog(self, ground: Ground, place: Place, rows: int, *, first: int = 1) -> None:
        """Write *rows* rows in transactions of a hundred, after a checkpoint; then vacuum and analyze."""
        ground.checkpoint()
        last = first + rows - 1
        end = f"least(begin_ + {PER_TRANSACTION - 1}, {last})"
        fill = self.fill.format(first="begin_", last=end, namespace=place.namespace)
        with psycopg.connect(place.database, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = off")
            connection.execute(
                f"DO $$ BEGIN FOR begin_ IN {first}..{last} BY {PER_TRANSACTION} "
                f"LOOP {fill}; COMMIT; END LOOP; END $$"
            )
            connection.execute(f"VACUUM ANALYZE {self.name}")
            connection.execute("SET synchronous_commit = on")
            connection.execute("SELECT pg_logical_emit_message(true, 'bench', 'flush')")

    def one(self, place: Place) -> str:
        """Return the INSERT of one row."""
        return self.insert.replace("{namespace}", place.namespace)


OUTBOX = Table(
    name="packhorse.outbox",
    fill=(
        "INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload, origin) "
        f"SELECT gen_random_uuid(), 'bench', 'key-' || n % {KEYS}, 'bench.Happened', '1', {_PAYLOAD}, 'bench' "
        "FROM generate_series({first}, {last}) AS n"
    ),
    insert=(
        "INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload, origin) "
        "VALUES (%(id)s, 'bench', %(key)s, 'bench.Happened', '1', %(payload)s, 'bench')"
    ),
)

QUEUE = Table(
    name="queue",
    make=(
        """CREATE TABLE queue (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL, key text NOT NULL,
        type text NOT NULL, schema_version text NOT NULL, payload bytea, origin text)""",
    ),
    fill=(
        "INSERT INTO queue (id, key, type, schema_version, payload, origin) "
        f"SELECT gen_random_uuid(), 'key-' || n % {KEYS}, 'bench.Happened', '1', {_PAYLOAD}, 'bench' "
        "FROM generate_series({first}, {last}) AS n"
    ),
    insert=(
        "INSERT INTO queue (id, key, type, schema_version, payload, origin) "
        "VALUES (%(id)s, %(key)s, 'bench.Happened', '1', %(payload)s, 'bench')"
    ),
)
"""What somebody writes by hand."""

# As txoutbox 0.2.2 prints it for its users' migrations, with the trigger that wakes the relay.
TXOUTBOX = Table(
    name="outbox",
    make=(
        """CREATE TABLE outbox (id BIGSERIAL PRIMARY KEY, topic TEXT NOT NULL, key TEXT, payload BYTEA NOT NULL,
        headers JSONB NOT NULL DEFAULT '{}', status TEXT NOT NULL DEFAULT 'pending', attempts INT NOT NULL DEFAULT 0,
        retry_at TIMESTAMPTZ, leased_by TEXT, lease_until TIMESTAMPTZ, last_error TEXT,
        created_at TIMESTAMPTZ NOT NULL DEFAULT now())""",
        "CREATE INDEX outbox_pending_idx ON outbox (id) WHERE status = 'pending'",
        "CREATE INDEX outbox_key_pending_idx ON outbox (key, id) WHERE status = 'pending'",
        """CREATE FUNCTION outbox_notify() RETURNS trigger AS $$ BEGIN PERFORM pg_notify('outbox', NEW.id::text);
        RETURN NEW; END; $$ LANGUAGE plpgsql""",
        "CREATE TRIGGER outbox_notify AFTER INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION outbox_notify()",
    ),
    fill=(
        "INSERT INTO outbox (topic, key, payload, headers) "
        f"SELECT '{{namespace}}.bench', 'key-' || n % {KEYS}, {_PAYLOAD}, "
        """jsonb_build_object('id', gen_random_uuid(), 'type', 'bench.Happened', 'schema-version', '1', 'origin', 'bench') """
        "FROM generate_series({first}, {last}) AS n"
    ),
    insert=(
        "INSERT INTO outbox (topic, key, payload, headers) VALUES ('{namespace}.bench', %(key)s, %(payload)s, "
        "jsonb_build_object('id', %(id)s::text, 'type', 'bench.Happened', 'schema-version', '1', 'origin', 'bench'))"
    ),
)

_FASTSTREAM_HEADERS = (
    "jsonb_build_object('id', {id}, 'type', 'bench.Happened', 'schema-version', '1', 'origin', 'bench', "
    "'correlation_id', {id})"
)
# As faststream-outbox 0.19.0's make_outbox_table declares it, with the autovacuum settings that its documentation asks for.
FASTSTREAM = Table(
    name="outbox",
    make=(
        """CREATE TABLE outbox (id BIGSERIAL PRIMARY KEY, queue VARCHAR(255) NOT NULL, payload BYTEA NOT NULL, headers JSONB,
        attempts_count BIGINT NOT NULL DEFAULT 0, deliveries_count BIGINT NOT NULL DEFAULT 0,
        created_at TIMESTAMPTZ NOT NULL DEFAULT now(), next_attempt_at TIMESTAMPTZ NOT NULL DEFAULT now(),
        first_attempt_at TIMESTAMPTZ, last_attempt_at TIMESTAMPTZ, acquired_at TIMESTAMPTZ, acquired_token UUID,
        timer_id VARCHAR(255), CONSTRAINT outbox_lease_ck CHECK ((acquired_token IS NULL) = (acquired_at IS NULL)))""",
        "CREATE INDEX outbox_pending_idx ON outbox (queue, next_attempt_at, id) WHERE acquired_token IS NULL",
        "CREATE UNIQUE INDEX outbox_timer_id_uq ON outbox (queue, timer_id) WHERE timer_id IS NOT NULL",
        "CREATE INDEX outbox_leased_idx ON outbox (queue, next_attempt_at, id) WHERE acquired_token IS NOT NULL",
        """ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000)""",
    ),
    fill=(
        f"INSERT INTO outbox (queue, payload, headers) SELECT 'bench', {_PAYLOAD}, "
        + _FASTSTREAM_HEADERS.format(id="gen_random_uuid()::text")
        + " FROM generate_series({first}, {last}) AS n"
    ),
    insert=(
        "WITH written AS (INSERT INTO outbox (queue, payload, headers) VALUES ('bench', %(payload)s, "
        + _FASTSTREAM_HEADERS.format(id="%(id)s::text")
        + ") RETURNING queue) SELECT pg_notify('outbox_outbox', queue) FROM written"
    ),
)
