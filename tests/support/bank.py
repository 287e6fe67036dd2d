"""
One database for many tests of writing: a bank's tables beside Packhorse's, emptied before each test.

It is quicker than a database for each. Tests that change tables or rights take one of their own.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from tests.support.accounts import AccountOpened, AmountMoved
from tests.support.databases import fresh_database

from packhorse.testing import register_for_tests

# Row locks make balance_after the order of commits; a trigger writes it, so no writer under test can bend it.
TABLES = """
CREATE TABLE account (name text PRIMARY KEY, balance int NOT NULL DEFAULT 0);
CREATE TABLE history (name text, balance_after int, xid xid8 DEFAULT pg_current_xact_id());
CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO history VALUES (NEW.name, NEW.balance); RETURN NULL; END $$;
CREATE TRIGGER remember AFTER UPDATE ON account FOR EACH ROW EXECUTE FUNCTION remember();
CREATE TABLE turn (key text PRIMARY KEY, n int NOT NULL);
CREATE TABLE taken (id uuid, key text, n int);
CREATE TABLE business (n int);
CREATE TABLE figure (account text, amount int);
"""
EMPTY = """
SET LOCAL session_replication_role = replica;  -- past the trigger that forbids it
DELETE FROM packhorse.job; DELETE FROM packhorse.job_transition; DELETE FROM packhorse.job_request;
DELETE FROM packhorse.job_waiting; DELETE FROM packhorse.job_due; DELETE FROM packhorse.quarantined_message;
DELETE FROM packhorse.outbox; DELETE FROM packhorse.schema_version; DELETE FROM account; DELETE FROM history;
DELETE FROM turn; DELETE FROM taken; DELETE FROM business; DELETE FROM figure;
INSERT INTO account VALUES ('a', 0), ('b', 0);
"""


@contextmanager
def opened_bank(server_url: str, template: str) -> Iterator[str]:
    """Create the database from *template*, which has Packhorse's tables; yield its URL."""
    with fresh_database(server_url, template) as url:
        with psycopg.connect(url) as connection:
            connection.execute(TABLES)
        yield url


def emptied(url: str) -> str:
    """Empty the bank; its database knows no schema."""
    with psycopg.connect(url) as connection:
        connection.execute(EMPTY)
    return url


def registered(url: str) -> str:
    """Let the database know the bank's messages."""
    with psycopg.connect(url) as connection:
        register_for_tests(connection, AccountOpened, AmountMoved)
    return url
