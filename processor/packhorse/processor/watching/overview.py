"""All groups of a database in a line each, for `packhorse processor status` without a group."""

from typing import NamedTuple

from packhorse.core.text import counted, inert
from packhorse.processor.settings import OverviewSettings
from packhorse.processor.storing import postgres
from packhorse.processor.storing.steps import Statement, Steps
from packhorse.processor.watching import sql
from packhorse.processor.watching.member_row import ALIVE


class GroupLine(NamedTuple):
    """
    One group, in short.

    Attributes:
        alive: Processes that were seen lately.
        parked_keys, quarantine: Keys that are parked, messages that rest.
        pauses: What people have paused of it, keys apart.
    """

    group: str
    alive: int
    parked_keys: int
    quarantine: int
    pauses: int

    @property
    def told(self) -> str:
        """
        Return it for people.

        >>> GroupLine("figures", 1, 0, 3, 1).told
        'figures: 1 process alive, 0 parked keys, 3 messages in quarantine, 1 PAUSE'
        """
        paused = f", {counted(self.pauses, 'PAUSE')}" if self.pauses else ""
        return (
            f"{inert(self.group)}: {counted(self.alive, 'process', 'processes')} alive, "
            f"{counted(self.parked_keys, 'parked key')}, {counted(self.quarantine, 'message')} in quarantine{paused}"
        )


def read_overview(settings: OverviewSettings) -> list[GroupLine]:
    """
    Ask the database for all groups that left anything behind in it; no broker is asked.

    Raises:
        DatabaseUnavailable, NotReady: It does not answer, or a table is missing.
    """
    url = settings.database_url.get_secret_value()
    connection = postgres.connect(postgres.settings_of(url, idle_ms=60_000, lock_ms=10_000))
    try:
        return postgres.run(connection, _lines(settings.database_schema))
    finally:
        connection.end()


def _lines(schema: str) -> Steps[list[GroupLine]]:
    answer = yield Statement(sql.GROUPS.replace("{schema}", schema).encode(), {"alive": ALIVE})
    return [GroupLine._make(row) for row in answer.rows]
