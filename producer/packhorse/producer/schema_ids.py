"""The registry's ids of schema versions, read from the database once and remembered."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from packhorse.core.errors import NotReady, SchemaNotRegistered
from packhorse.core.message import MessageType
from packhorse.producer.sql import Queries
from packhorse.producer.statements import Answer, Statement, Steps

Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaIds:
    """
    Remember ids by database, subject and version, for ever: an id never changes its schema.

    Only rows that no rollback can take back are remembered. Safe to share between threads and tasks.
    """

    schema: str
    queries: Queries
    known: dict[Key, int] = field(default_factory=dict)
    ready: set[str] = field(default_factory=set)

    def prepare(self, database: str) -> Steps[None]:
        """
        Check, once a database, that tables and rights are there; in a way that leaves the transaction usable.

        Raises:
            NotReady: Names the table or right that is missing.
        """
        if database not in self.ready:
            check_ready((yield Statement(self.queries.ready, (), returns=True)), self.schema)
            self.ready.add(database)

    def of(self, database: str, kinds: Iterable[MessageType]) -> Steps[dict[tuple[str, int], int]]:
        """
        Return the ids of *kinds* by subject and version; no statement when all are known.

        Raises:
            SchemaNotRegistered: Names subject and version; the transaction stays usable.
        """
        wanted = {(kind.subject, kind.version) for kind in kinds}
        found = {one: self.known[database, *one] for one in wanted if (database, *one) in self.known}
        missing = sorted(wanted - found.keys())
        if missing:
            subjects = sorted({subject for subject, _ in missing})
            rows = yield Statement(self.queries.schema_ids, (subjects,), returns=True)
            for subject, version, schema_id, settled in rows:
                found[subject, version] = schema_id
                if settled:
                    self.known[database, subject, version] = schema_id
            _check_found(missing, found, self.schema)
        return found


def check_ready(rows: Answer, schema: str) -> None:
    """Raise NotReady unless *rows* of `sql.READY` say that both tables are there and may be used."""
    allowed = {name: (may, user) for name, may, user in rows}
    for table, right in (("outbox", "INSERT"), ("schema_version", "SELECT")):
        if table not in allowed:
            raise NotReady(
                f"table {schema}.{table} is missing in this database; run `packhorse migrate up`, and check the outbox's "
                "schema setting"
            )
        may, user = allowed[table]
        if not may:
            raise NotReady(
                f"role {user} lacks {right} on {schema}.{table}; "
                f"`packhorse migrate sql --grants writer={user}` prints the grants"
            )


def _check_found(missing: list[tuple[str, int]], found: dict[tuple[str, int], int], schema: str) -> None:
    for subject, version in missing:
        if (subject, version) not in found:
            others = sorted(v for s, v in found if s == subject)
            known = (
                f"registered there: version {', '.join(map(str, others))}"
                if others
                else "no version of it is"
            )
            raise SchemaNotRegistered(
                f"schema {subject} version {version} is not in {schema}.schema_version ({known}); "
                "run `packhorse schemas register`"
            )
