"""An act whose commit is durable, and whose answer is lost between database and console."""

import threading
from collections.abc import Callable
from typing import TypeVar

import psycopg
from tests.support.console_rows import one
from tests.support.stack import PrivateDatabase
from tests.support.wait import eventually

T = TypeVar("T")


def commit_without_answer(private: PrivateDatabase, act: Callable[[], T]) -> T:
    """Run *act*, lose the database's answer to its commit, and return what *act* returned; the tables have an empty record before."""
    with (
        psycopg.connect(private.direct_url, autocommit=True) as connection,
        psycopg.connect(private.direct_url) as other,
    ):
        connection.execute(
            "CREATE FUNCTION wait_in_commit() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NULL; END$$;"
            "CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON packhorse.audit DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION wait_in_commit()"
        )
        other.execute("SELECT pg_advisory_lock(77)")
        answers: list[T] = []
        asking = threading.Thread(target=lambda: answers.append(act()))
        asking.start()
        eventually(
            lambda: one(
                connection, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            ),
            what="the commit waits",
        )
        private.proxy.swallow_answers()
        other.execute("SELECT pg_advisory_unlock(77)")
        eventually(
            lambda: one(connection, "SELECT count(*) FROM packhorse.audit") == 1, what="the act is committed"
        )
        private.proxy.resume()
        asking.join(timeout=30)
        return answers[0]
