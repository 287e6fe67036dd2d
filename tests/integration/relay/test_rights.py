"""Database roles with exactly the rights that `packhorse migrate sql --grants` prints, and what a relay says that has fewer."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from tests.support.accounts import AmountMoved
from tests.support.cli import packhorse
from tests.support.databases import unique_name
from tests.support.relay import relays
from tests.support.topics import first_arrivals, make_topic, wait_for

from packhorse.core.errors import NotReady
from packhorse.local.settings import Endpoints
from packhorse.producer import Outbox
from packhorse.relay import needs_sql
from packhorse.relay.postgres.outbox import PostgresOutbox
from packhorse.testing import register_for_tests

OUTBOX = Outbox(origin="tests")
GRANTED = """
SELECT c.relname, a.privilege_type FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
 WHERE pg_get_userbyid(a.grantee) = %(role)s
UNION ALL
SELECT p.proname, a.privilege_type FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS a
 WHERE pg_get_userbyid(a.grantee) = %(role)s
"""


class Roles:
    """Roles of one database, and its URL as each of them."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.names = {purpose: unique_name(purpose) for purpose in ("relay", "writer", "operator")}
        self.owner = psycopg.connect(database, autocommit=True)
        for purpose, name in self.names.items():
            self.owner.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
            for grant in self.grants(purpose, name):
                self.owner.execute(grant.encode())

    @staticmethod
    def grants(purpose: str, name: str) -> list[str]:
        """Return the grants that the command prints for a role."""
        printed = packhorse("migrate", "sql", "--grants", f"{purpose}={name}").out
        found = [statement.strip() for statement in printed.split(";") if f'TO "{name}"' in statement]
        assert found
        return found

    def url(self, purpose: str) -> str:
        """Return the database's URL as the role for *purpose*."""
        return self.database.replace("postgres@", f"{self.names[purpose]}@")

    def close(self) -> None:
        for name in self.names.values():
            self.owner.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
            self.owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))
        self.owner.close()


@pytest.fixture
def roles(database: str) -> Iterator[Roles]:
    made = Roles(database)
    yield made
    made.close()


def test_the_whole_road_needs_no_more_than_what_is_printed(
    roles: Roles, tmp_path: Path, stack: Endpoints, topic_prefix: str
) -> None:
    """Fails when writer, relay or operator need a right more than their grants; a take-over and a stop are part of the road."""
    topic = f"{topic_prefix}.account"
    make_topic(stack.kafka_bootstrap, topic)
    with roles.owner.transaction():
        register_for_tests(roles.owner, AmountMoved)
    ids: list[str] = []
    with (
        relays(
            tmp_path, database=roles.url("relay"), bootstrap=stack.kafka_bootstrap, namespace=topic_prefix
        ) as group,
        psycopg.connect(roles.url("writer")) as writer,
    ):

        def emit() -> None:
            ids.append(str(OUTBOX.emit(writer, AmountMoved(account="a", amount=1), key="a", lock_key=True)))
            writer.commit()

        emit()
        assert group.start("saved", "1").ended() == -signal.SIGKILL
        emit()
        process = group.start()
        found = wait_for(stack.kafka_bootstrap, topic, 2)
        environ = {"PACKHORSE_DATABASE_URL": roles.url("operator"), "PACKHORSE_NAMESPACE": topic_prefix}
        assert packhorse("relay", "status", "--json", "--sample", "0", **environ).code == 0
        assert packhorse("status", ids[0], "--json", **environ).code == 0
        writer.execute("SET LOCAL synchronous_commit = off")  # the relay may have to flush the log itself
        emit()
        found = wait_for(stack.kafka_bootstrap, topic, 3)
        assert first_arrivals(found) == {b"a": ids}
        assert process.stop() == 0
        assert not [event for event in process.events() if "permission denied" in str(event)]


@pytest.mark.parametrize("purpose", ["relay", "writer", "operator"])
def test_what_is_not_granted_is_refused(purpose: str, roles: Roles) -> None:
    """Fails when the grants are wider than they say: rows of the outbox can be read by a writer, or changed by anybody."""
    refused = {
        "relay": ("INSERT INTO packhorse.outbox DEFAULT VALUES", "DELETE FROM packhorse.relay"),
        "writer": ("SELECT FROM packhorse.outbox", "UPDATE packhorse.relay SET epoch = 1"),
        "operator": (
            "INSERT INTO packhorse.outbox DEFAULT VALUES",
            "UPDATE packhorse.relay SET horizon = '1:1:'",
        ),
    }
    with psycopg.connect(roles.url(purpose), autocommit=True) as connection:
        for statement in (*refused[purpose], "TRUNCATE packhorse.outbox", "CREATE TABLE packhorse.more ()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())


@pytest.mark.case("X-11")
def test_each_missing_right_is_named_before_anything_is_sent(roles: Roles) -> None:
    """Fails when a right is left out of what is looked for, or looked for without being among the grants."""
    role = roles.names["relay"]
    outbox = PostgresOutbox(roles.url("relay"), "packhorse", batch_rows=10)
    outbox.check_ready()
    needs = roles.owner.execute(needs_sql.NEEDS.format(schema="packhorse").encode()).fetchall()
    granted = set(roles.owner.execute(GRANTED, {"role": role}).fetchall())
    assert {(name, privilege) for _, name, _, privilege, _ in needs} == granted - {
        ("alembic_version", "SELECT")
    }
    for kind, name, there, privilege, _ in needs:
        assert there, f"{kind} {name}"
        on = f"packhorse.{name}" if kind == "table" else f"{kind} packhorse.{name}"
        roles.owner.execute(f'REVOKE {privilege} ON {on} FROM "{role}"'.encode())
        with pytest.raises(NotReady, match=rf"no {privilege} on packhorse\.{name}; .*--grants relay="):
            outbox.check_ready()
        roles.owner.execute(f'GRANT {privilege} ON {on} TO "{role}"'.encode())
    roles.owner.execute(f'REVOKE USAGE ON SCHEMA packhorse FROM "{role}"'.encode())
    with pytest.raises(NotReady, match=r"SELECT on packhorse\.outbox"):
        outbox.check_ready()
    outbox.close()
