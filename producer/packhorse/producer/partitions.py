"""Day partitions of the outbox: their names, and the statements that make them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from packhorse.core.naming import checked_identifier

DAYS_AHEAD = 14

CREATE_DAY = """
CREATE TABLE IF NOT EXISTS "{schema}".{name}
    (LIKE "{schema}".outbox INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)"""

ATTACH_DAY = """
ALTER TABLE "{schema}".outbox ATTACH PARTITION "{schema}".{name} FOR VALUES FROM ('{first}') TO ('{end}')"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One partition: the rows created on *first*, UTC."""

    first: date

    @property
    def name(self) -> str:
        """Return the partition's table name, e.g. outbox_20260731."""
        return f"outbox_{self.first:%Y%m%d}"

    def statements(self, schema: str) -> tuple[str, str]:
        """
        Return the two statements that make the partition: create the table, attach it.

        In this form writers wait only while the default partition is looked at, not for a lock on the whole outbox as
        CREATE TABLE … PARTITION OF would take.
        """
        checked_identifier(schema, what="database schema")
        names = {
            "schema": schema,
            "name": self.name,
            "first": self.first,
            "end": self.first + timedelta(days=1),
        }
        return CREATE_DAY.format(**names).strip(), ATTACH_DAY.format(**names).strip()


def days_from(today: date, ahead: int = DAYS_AHEAD) -> Iterator[Day]:
    """Yield *today* and the *ahead* days after it."""
    return (Day(first=today + timedelta(days=n)) for n in range(ahead + 1))
