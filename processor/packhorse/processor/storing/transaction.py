"""One transaction on a connection of one's own: all of the block, or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

from packhorse.core.errors import PackhorseError
from packhorse.processor.storing import postgres
from packhorse.processor.storing.steps import COMMIT, ROLLBACK


@contextmanager
def transaction(connection: postgres.GuardedConnection) -> Iterator[None]:
    """
    Run the block in one transaction that is committed behind it; whatever it raises rolls it back.

    A connection on which that can't be done is ended: the server rolls back then.

    Raises:
        DatabaseUnavailable, Contention, NotReady: As `postgres.translated` says; nothing was done, unless the commit was on its way.
    """
    postgres.begin(connection)
    try:
        yield
        postgres.command(connection, COMMIT)
    except BaseException:
        _give_up(connection)
        raise


def _give_up(connection: postgres.GuardedConnection) -> None:
    try:
        postgres.command(connection, ROLLBACK)
    except PackhorseError:
        connection.end()
