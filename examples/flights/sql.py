"""Every statement of the demo, named and described. Parameters are psycopg's."""

# -- the airline's operations database ---------------------------------------------------------------------------------

OPERATIONS_TABLES = """
CREATE SCHEMA airline;
CREATE TABLE airline.aircraft (
    tail_number text PRIMARY KEY,
    airport text
);
COMMENT ON COLUMN airline.aircraft.airport IS 'Where it stands; NULL while it is in the air or was never seen';
CREATE TABLE airline.flight (
    id text PRIMARY KEY,
    carrier text NOT NULL,
    number int NOT NULL,
    tail_number text REFERENCES airline.aircraft,
    origin text NOT NULL,
    destination text NOT NULL,
    scheduled_departure timestamptz NOT NULL,
    scheduled_arrival timestamptz NOT NULL,
    state text NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'departed', 'arrived', 'cancelled')),
    departed_at timestamptz,
    arrived_at timestamptz
);
"""

ADD_AIRCRAFT = "INSERT INTO airline.aircraft (tail_number) VALUES (%(tail_number)s) ON CONFLICT DO NOTHING"

PLAN_FLIGHT = """
INSERT INTO airline.flight
    (id, carrier, number, tail_number, origin, destination, scheduled_departure, scheduled_arrival)
VALUES (%(id)s, %(carrier)s, %(number)s, %(tail_number)s, %(origin)s, %(destination)s,
    %(scheduled_departure)s, %(scheduled_arrival)s)
"""

MOVE_FLIGHT = """
UPDATE airline.flight SET state = %(state)s, departed_at = %(departed_at)s, arrived_at = %(arrived_at)s
WHERE id = %(id)s
"""

MOVE_AIRCRAFT = "UPDATE airline.aircraft SET airport = %(airport)s WHERE tail_number = %(tail_number)s"

# -- the figures -------------------------------------------------------------------------------------------------------

# A busy airport's row would be a queue: every lane holds it until its transaction ends, and two of them in two orders
# are a deadlock. So each key counts in rows of its own, since no two lanes ever have one key, and a view adds them up.
FIGURES_TABLES = """
CREATE SCHEMA figures;
CREATE TABLE figures.airport_share (
    airport text,
    key text,
    planned int NOT NULL DEFAULT 0,
    departures int NOT NULL DEFAULT 0,
    arrivals int NOT NULL DEFAULT 0,
    cancelled int NOT NULL DEFAULT 0,
    departure_delay_minutes int NOT NULL DEFAULT 0,
    arrival_delay_minutes int NOT NULL DEFAULT 0,
    PRIMARY KEY (airport, key)
);
CREATE VIEW figures.airport AS
    SELECT airport, sum(planned)::int AS planned, sum(departures)::int AS departures, sum(arrivals)::int AS arrivals,
        sum(cancelled)::int AS cancelled, sum(departure_delay_minutes)::int AS departure_delay_minutes,
        sum(arrival_delay_minutes)::int AS arrival_delay_minutes
    FROM figures.airport_share GROUP BY airport;
CREATE TABLE figures.aircraft (
    tail_number text PRIMARY KEY,
    planned int NOT NULL DEFAULT 0,
    flights int NOT NULL DEFAULT 0,
    arrivals int NOT NULL DEFAULT 0,
    cancelled int NOT NULL DEFAULT 0,
    miles int NOT NULL DEFAULT 0,
    minutes_in_air int NOT NULL DEFAULT 0,
    minutes_under_way int NOT NULL DEFAULT 0,
    links_kept int NOT NULL DEFAULT 0,
    links_broken int NOT NULL DEFAULT 0,
    last_origin text,
    chain text NOT NULL DEFAULT ''
) WITH (fillfactor = 70);
COMMENT ON COLUMN figures.aircraft.chain IS
    'A hash over all its movements, each upon the last: another order, a gap or a repeat would give another';
"""

# Each handler's two counts, of the airport and of the aircraft, are one statement: one round trip a message. A flight
# without an aircraft has a tail number of NULL, which no row of aircraft equals.

COUNT_PLANNED = """
WITH airport AS (
    INSERT INTO figures.airport_share AS share (airport, key, planned) VALUES (%(origin)s, %(key)s, 1)
    ON CONFLICT (airport, key) DO UPDATE SET planned = share.planned + 1
)
INSERT INTO figures.aircraft AS craft (tail_number, planned)
SELECT %(tail_number)s, 1 WHERE %(tail_number)s::text IS NOT NULL
ON CONFLICT (tail_number) DO UPDATE SET planned = craft.planned + 1
"""

COUNT_DEPARTURE = """
WITH airport AS (
    UPDATE figures.airport_share
    SET departures = departures + 1, departure_delay_minutes = departure_delay_minutes + %(delay)s
    WHERE airport = %(origin)s AND key = %(key)s
)
UPDATE figures.aircraft SET
    flights = flights + 1,
    miles = miles + %(miles)s,
    links_kept = links_kept + coalesce((last_origin = %(origin)s)::int, 0),
    links_broken = links_broken + coalesce((last_origin <> %(origin)s)::int, 0),
    last_origin = %(origin)s,
    chain = encode(sha256(convert_to(chain || 'departed ' || %(flight)s, 'UTF8')), 'hex')
WHERE tail_number = %(tail_number)s
"""

COUNT_ARRIVAL = """
WITH airport AS (
    INSERT INTO figures.airport_share AS share (airport, key, arrivals, arrival_delay_minutes)
    VALUES (%(destination)s, %(key)s, 1, %(delay)s)
    ON CONFLICT (airport, key) DO UPDATE SET
        arrivals = share.arrivals + 1,
        arrival_delay_minutes = share.arrival_delay_minutes + excluded.arrival_delay_minutes
)
UPDATE figures.aircraft SET
    arrivals = arrivals + 1,
    minutes_in_air = minutes_in_air + %(minutes_in_air)s,
    minutes_under_way = minutes_under_way + %(minutes_under_way)s,
    chain = encode(sha256(convert_to(chain || 'arrived ' || %(flight)s, 'UTF8')), 'hex')
WHERE tail_number = %(tail_number)s
"""

COUNT_CANCELLED = """
WITH airport AS (
    UPDATE figures.airport_share SET cancelled = cancelled + 1
    WHERE airport = %(origin)s AND key = %(key)s
)
UPDATE figures.aircraft SET
    cancelled = cancelled + 1,
    chain = encode(sha256(convert_to(chain || 'cancelled ' || %(flight)s, 'UTF8')), 'hex')
WHERE tail_number = %(tail_number)s
"""

# -- trouble on purpose ------------------------------------------------------------------------------------------------

# Class P0 of SQLSTATE is an error that may pass, class 22 (a value out of range) one that another try does not mend.
OUTAGE_TABLES = """
CREATE TABLE figures.outage (tail_number text PRIMARY KEY, code text NOT NULL);
CREATE FUNCTION figures.refuse_during_outage() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    state text := (SELECT code FROM figures.outage WHERE tail_number = NEW.tail_number);
BEGIN
    IF state IS NOT NULL THEN
        RAISE EXCEPTION 'the figures of this aircraft can''t be written for now' USING ERRCODE = state;
    END IF;
    RETURN NEW;
END
$body$;
CREATE TRIGGER refuse_during_outage BEFORE INSERT OR UPDATE ON figures.aircraft
    FOR EACH ROW EXECUTE FUNCTION figures.refuse_during_outage();
"""

BEGIN_OUTAGE = """
INSERT INTO figures.outage SELECT unnest(%(aircraft)s::text[]), %(code)s ON CONFLICT DO NOTHING
"""

END_OUTAGE = "DELETE FROM figures.outage WHERE tail_number = ANY(%(aircraft)s)"

RAW_OUTBOX_ROW = """
INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload)
VALUES (%(id)s, %(aggregatetype)s, %(key)s, %(type)s, %(schema_version)s, %(payload)s)
"""

# -- facts, while it runs ----------------------------------------------------------------------------------------------

# What is open, small at any size of the run. `published` counts a repeat again and lags a little. What was redriven and has
# not run again is no longer in quarantine and not done.
OPEN = """
SELECT
    (SELECT coalesce(sum(published), 0)::bigint FROM packhorse.relay) AS published,
    (SELECT count(*) FROM packhorse.inbox WHERE group_id = 'figures' AND outcome = 'retry') AS waiting,
    (SELECT count(*) FROM packhorse.inbox WHERE group_id = 'figures' AND outcome = 'parked') AS behind,
    (SELECT count(*) FROM packhorse.inbox WHERE group_id = 'figures' AND outcome = 'quarantine') AS quarantined,
    (SELECT count(*) FROM packhorse.quarantined_message WHERE state = 'quarantined' AND copy_offset IS NULL) AS uncopied,
    (SELECT count(*) FROM packhorse.failed_attempt) AS failed_attempts
"""

# What is done: reads the whole inbox. Each attempt is a delivery too, by a copy; what more there were are duplicates.
DONE = """
SELECT count(*) FILTER (WHERE outcome = 'done') AS done,
    coalesce(sum(greatest(0, deliveries - greatest(attempt, 1))), 0)::bigint AS duplicates
FROM packhorse.inbox WHERE group_id = 'figures'
"""

# -- facts, when it is over --------------------------------------------------------------------------------------------

AIRPORTS = "SELECT * FROM figures.airport"

AIRCRAFT = "SELECT * FROM figures.aircraft"

# Outbox rows against inbox rows, each way: a message without a result, and a result without a message.
ACCOUNT = """
SELECT
    count(o.id) AS written,
    count(DISTINCT o.id) AS ids,
    count(*) FILTER (WHERE i.outcome = 'done') AS done,
    count(*) FILTER (WHERE i.outcome = 'quarantine') AS quarantined,
    count(*) FILTER (WHERE i.message_id IS NULL) AS lost,
    count(*) FILTER (WHERE o.id IS NULL) AS invented
FROM packhorse.outbox AS o
FULL JOIN (SELECT * FROM packhorse.inbox WHERE group_id = 'figures') AS i ON i.message_id = o.id
"""

# A key's messages in commit order (seq, since its writers lock the key first): their offsets must rise.
OUT_OF_ORDER = """
SELECT count(*) FROM (
    SELECT i."offset", i.partition,
        lag(i."offset") OVER key AS offset_before, lag(i.partition) OVER key AS partition_before
    FROM packhorse.outbox AS o JOIN packhorse.inbox AS i ON i.message_id = o.id AND i.group_id = 'figures'
    WINDOW key AS (PARTITION BY o.aggregateid ORDER BY o.seq)
) AS pairs WHERE "offset" <= offset_before OR partition <> partition_before
"""

QUARANTINED = """
SELECT q.message_id, q.reason, q.payload IS NOT DISTINCT FROM o.payload AS same_bytes,
    q.copy_offset IS NOT NULL AS copied
FROM packhorse.quarantined_message AS q LEFT JOIN packhorse.outbox AS o ON o.id = q.message_id
WHERE q.state = 'quarantined'
"""

# The message of one key that is in quarantine, and those that wait behind it.
REFUSED = """
SELECT q.message_id, q.reason, array(SELECT m.message_id FROM packhorse.parked_message AS m
    WHERE m.group_id = q.group_id AND m.topic = q.topic AND m.key_hash = q.key_hash) AS behind
FROM packhorse.quarantined_message AS q
WHERE q.group_id = 'figures' AND q.key = convert_to(%(key)s, 'UTF8') AND q.state = 'quarantined'
"""

OUTCOMES = """
SELECT message_id, outcome FROM packhorse.inbox WHERE group_id = 'figures' AND message_id = ANY(%(ids)s)
"""

# What still waits somewhere; a key that is parked by a message in quarantine rests with it.
LEFT_WAITING = """
SELECT (SELECT count(*) FROM packhorse.retry_message) AS "in tiers",
    (SELECT count(*) FROM packhorse.parked_message) AS "behind parked keys",
    (SELECT count(*) FROM packhorse.parked_key AS k WHERE NOT EXISTS (SELECT FROM packhorse.quarantined_message AS q
        WHERE q.message_id = k.head_id AND q.state = 'quarantined')) AS "keys parked by nothing"
"""

COMMIT_TIMES = "SELECT current_setting('track_commit_timestamp') = 'on'"

# From the commit of the event's transaction to the commit of its result's, by the database's clock. A row of the inbox
# that a later delivery has touched no longer knows its first transaction: it is left out.
LATENCY = """
SELECT percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY extract(epoch FROM
    pg_xact_commit_timestamp(i.xmin) - pg_xact_commit_timestamp(o.xid::xid))::float8)
FROM packhorse.outbox AS o JOIN packhorse.inbox AS i ON i.message_id = o.id AND i.group_id = 'figures'
WHERE i.outcome = 'done' AND i.deliveries = 1 AND o.seq > %(after)s AND o.seq <= %(upto)s
"""

# The same where the server keeps no commit times: from the outbox row's insert to the inbox row's.
LATENCY_OF_INSERTS = """
SELECT percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY extract(epoch FROM
    i.recorded_at - o.created_at AT TIME ZONE 'UTC')::float8)
FROM packhorse.outbox AS o JOIN packhorse.inbox AS i ON i.message_id = o.id AND i.group_id = 'figures'
WHERE i.outcome = 'done' AND i.deliveries = 1 AND o.seq > %(after)s AND o.seq <= %(upto)s
"""

# Records below the watermarks, which began at 0, less the rows that they came from: what the relay sent again.
PUBLISHED_AGAIN = """
SELECT (SELECT coalesce(sum("offset"), 0)::bigint FROM packhorse.watermark WHERE topic = %(topic)s)
    - (SELECT count(*) FROM packhorse.outbox)
"""

LAST_SEQ = "SELECT coalesce(max(seq), 0) FROM packhorse.outbox"
