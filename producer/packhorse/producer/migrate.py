"""Make the tables, say how they stand, or print the SQL: what `packhorse migrate` does, for programs and tests."""

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from packhorse.core.naming import checked_identifier
from packhorse.producer.grants import grants
from packhorse.producer.partitions import DAYS_AHEAD, days_from

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStatus:
    """
    How the tables of one database schema stand.

    Attributes:
        schema: The database schema.
        current: Number of the last migration that ran; None before the first.
        head: Number of the last migration that this version of Packhorse knows.
        pending: Numbers of those still to run, in order.
        newer: The tables were made by a later version of Packhorse; it keeps them usable for this one.
        partitions_until: Last day with a partition made ahead; None without any.
        default_rows: True when a row lies in the default partition: partitions were not made in time.
    """

    schema: str
    current: str | None
    head: str
    pending: tuple[str, ...]
    newer: bool
    partitions_until: date | None
    default_rows: bool

    @property
    def ready(self) -> bool:
        """Return True when nothing is pending."""
        return self.current is not None and not self.pending

    def as_json(self) -> dict[str, object]:
        """Return all of it as values that JSON has."""
        return {
            "schema": self.schema,
            "current": self.current,
            "head": self.head,
            "pending": list(self.pending),
            "newer": self.newer,
            "partitions_until": self.partitions_until.isoformat() if self.partitions_until else None,
            "default_rows": self.default_rows,
            "ready": self.ready,
        }


def upgrade(url: str, schema: str = "packhorse", *, days_ahead: int = DAYS_AHEAD) -> MigrationStatus:
    """
    Bring the tables of *schema* up to date and make day partitions ahead; return how they stand then.

    Idempotent; tables of a later version are left as they are. All migrations run in one transaction under an advisory lock, so a second caller waits and then finds
    nothing to do; a crash leaves either all or nothing. Each partition is made in a transaction of its own that gives
    way to writers after a short wait and tries again.

    Raises:
        SettingsError: *schema* is no legal name.
        NotReady: A right is missing; names it.
        DatabaseUnavailable: The database does not answer, or writers held their locks through all tries.
    """
    from packhorse.producer import alembic

    checked_identifier(schema, what="database schema")
    alembic.run_migrations(url, schema)
    alembic.make_partitions(url, schema, days_ahead)
    return alembic.read_status(url, schema)


def status(url: str, schema: str = "packhorse") -> MigrationStatus:
    """
    Return how the tables of *schema* stand; changes nothing.

    Raises:
        SettingsError: *schema* is no legal name.
        DatabaseUnavailable: The database does not answer.
    """
    from packhorse.producer import alembic

    return alembic.read_status(url, checked_identifier(schema, what="database schema"))


def sql(
    schema: str = "packhorse",
    *,
    today: date,
    days_ahead: int = DAYS_AHEAD,
    roles: "Sequence[tuple[str, str]]" = (),
) -> str:
    """
    Return one script, to be run once on an empty database schema by `psql`, that does what `upgrade` does.

    Args:
        schema: The database schema.
        today: First day that gets a partition.
        days_ahead: How many more days get one.
        roles: Pairs of a purpose (writer, relay, processor, operator, registrar) and the database role that gets its rights;
            without any, the grants are printed as comments for roles of the form packhorse_writer.
    """
    from packhorse.producer import alembic

    checked_identifier(schema, what="database schema")
    lines = ["BEGIN;", f'CREATE SCHEMA IF NOT EXISTS "{schema}";', alembic.migrations_as_sql(schema)]
    for day in days_from(today, days_ahead):
        lines += [f"{statement};" for statement in day.statements(schema)]
    lines += grants(schema, roles)
    return "\n".join([*lines, "COMMIT;", ""])
