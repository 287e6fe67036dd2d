"""The statements of the demo that goes on, named and described. Parameters are psycopg's."""

# The post is an outside system: it has a connection of its own, and who has sent a letter can't take it back. It drops a second
# one of the same key, as a good one does, and forgets after a day.
TABLES = """
CREATE INDEX flight_of_carrier ON airline.flight (carrier, scheduled_departure);
CREATE SCHEMA post;
CREATE TABLE post.letter (key text PRIMARY KEY, text text NOT NULL, sent_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX letter_age ON post.letter (sent_at);
"""

SEND_LETTER = """
WITH forgotten AS (DELETE FROM post.letter WHERE sent_at < clock_timestamp() - interval '1 day')
INSERT INTO post.letter (key, text) VALUES (%(key)s, %(text)s) ON CONFLICT DO NOTHING
"""

LETTER = "SELECT 1 FROM post.letter WHERE key = %(key)s"

# How late a carrier's flights left in a month of 2013, and how many have left.
MONTH = """
SELECT count(*), coalesce(round(avg(extract(epoch FROM departed_at - scheduled_departure)) / 60, 1), 0)::float8
FROM airline.flight
WHERE carrier = %(carrier)s AND departed_at IS NOT NULL
    AND scheduled_departure >= make_timestamptz(2013, %(month)s, 1, 0, 0, 0, 'America/New_York')
    AND scheduled_departure < make_timestamptz(2013, %(month)s, 1, 0, 0, 0, 'America/New_York') + interval '1 month'
"""

# Whose figures can't be written, and who waits behind one of theirs that is in quarantine: no further trouble is for them.
SPARED = """
SELECT tail_number FROM figures.outage
UNION SELECT convert_from(key, 'UTF8') FROM packhorse.quarantined_message
    WHERE group_id = 'figures' AND state = 'quarantined' AND key IS NOT NULL
"""

HEAL = "DELETE FROM figures.outage"

# What waits for a person in the group of the figures, the oldest first.
RESTING_MESSAGES = """
SELECT message_id::text, CASE WHEN convert_from(key, 'UTF8') LIKE 'POISON-%%' THEN 'poison' ELSE 'refused' END
FROM packhorse.quarantined_message
WHERE group_id = 'figures' AND state = 'quarantined' AND quarantined_at < clock_timestamp() - interval '2 minutes'
ORDER BY quarantined_at LIMIT 200
"""

# Which jobs wait for a person, the oldest first; none so young that its figures are not closed yet.
RESTING_JOBS = """
SELECT id::text, state FROM packhorse.job
WHERE state IN ('quarantined', 'uncertain') AND changed_at < clock_timestamp() - interval '2 minutes'
ORDER BY changed_at LIMIT 200
"""

# What is open now, for the screen; each count goes by an index of what is open, however much is done.
OPEN = """
SELECT
    (SELECT count(*) FROM packhorse.retry_message) AS retrying,
    (SELECT count(*) FROM packhorse.parked_message) AS behind,
    (SELECT count(*) FROM packhorse.quarantined_message WHERE group_id = 'figures' AND state = 'quarantined') AS quarantined,
    (SELECT count(*) FROM packhorse.job WHERE state IN ('accepted', 'running', 'retrying')) AS jobs,
    (SELECT count(*) FROM packhorse.job WHERE state IN ('quarantined', 'uncertain')) AS stopped
"""
