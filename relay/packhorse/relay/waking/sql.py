"""SQL of waking by NOTIFY. `{schema}` is the database schema; the channel is `packhorse_` and its name."""

LISTEN = 'LISTEN "packhorse_{schema}"'

NAME = "SELECT set_config('application_name', 'packhorse-relay-wake', false)"
"""Tells this session from the relay's others, for people who look at pg_stat_activity."""

ALIVE = "SELECT 1"

SWITCHED = """
SELECT EXISTS (SELECT FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = '{schema}' AND c.relname = 'outbox' AND t.tgname = 'wake_relay' AND t.tgenabled <> 'D')
"""

GIVE_WAY = "SELECT set_config('lock_timeout', '1000', true)"
"""Writers that begin meanwhile queue behind the lock that is asked for: no longer than this."""

ON = """
CREATE OR REPLACE TRIGGER wake_relay AFTER INSERT ON "{schema}".outbox
    FOR EACH STATEMENT EXECUTE FUNCTION "{schema}".wake_relay()
"""
"""Once for each INSERT into the outbox, however many rows and whatever partition; partitions made later need nothing."""

OFF = 'DROP TRIGGER IF EXISTS wake_relay ON "{schema}".outbox'
