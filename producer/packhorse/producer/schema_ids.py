"""The registry's ids of schema versions, read from the database once and remembered."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from packhorse.core.errors import NotReady, SchemaNotRegistered
from packhorse.core.message import MessageType
from packhorse.producer.sql import Queries
from packhorse.producer.statements import Answer, Statement, Steps
from packhorse.schemas import fingerprint

Version = tuple[str, int]
Key = tuple[str, str, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaIds:
    """
    Remember ids by database, subject, version and schema, for ever: an id never changes its schema.

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

    def of(self, database: str, kinds: Iterable[MessageType]) -> Steps[dict[Version, int]]:
        """
        Return the ids of *kinds* by subject and version; no statement when all are known.

        Raises:
            SchemaNotRegistered: Names subject and version; the transaction stays usable. So it is too when the class
                was made from another schema than the registered one: readers could not decode what it encodes.
        """
        found: dict[Version, int] = {}
        missing: dict[Version, MessageType] = {}
        for kind in kinds:
            known = self.known.get((database, kind.subject, kind.version, kind.schema))
            if known is None:
                missing[kind.subject, kind.version] = kind
            else:
                found[kind.subject, kind.version] = known
        if missing:
            subjects = sorted({subject for subject, _ in missing})
            rows = yield Statement(self.queries.schema_ids, (subjects,), returns=True)
            self._take(database, rows, missing, found)
        return found

    def _take(
        self, database: str, rows: Answer, missing: dict[Version, MessageType], found: dict[Version, int]
    ) -> None:
        there = {(subject, version): rest for subject, version, *rest in rows}
        _check_found(sorted(missing), there.keys(), self.schema)
        for (subject, version), kind in missing.items():
            schema_id, registered, settled = there[subject, version]
            if registered != fingerprint(kind.schema):
                raise SchemaNotRegistered(
                    f"the class of {kind.type} was made from another schema than the registered {subject} version "
                    f"{version}; a released version never changes: put the change into version {version + 1}, then run "
                    "`packhorse schemas register` and `packhorse schemas generate`"
                )
            found[subject, version] = schema_id
            if settled:
                self.known[database, subject, version, kind.schema] = schema_id


_NEEDED = (("outbox", "INSERT"), ("schema_version", "SELECT"))


def check_ready(rows: Answer, schema: str, needed: Sequence[tuple[str, str]] = _NEEDED) -> None:
    """Raise NotReady unless *rows* of `sql.READY` say that the tables *needed* are there, with the right beside each."""
    allowed = {name: (may, user) for name, may, user in rows}
    for table, right in needed:
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


def _check_found(missing: Iterable[Version], found: Collection[Version], schema: str) -> None:
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
