"""Leases in the row of a run, and connections that come again after trouble."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from packhorse.console.acting.postgres import Database, Rows
from packhorse.console.connecting.postgres import Connection, connection_to
from packhorse.console.running.lease import LEASE, Lease, LeaseLost, Standing
from packhorse.console.running.sql import Statements

if TYPE_CHECKING:
    from packhorse.console.settings import ConsoleSettings


class Leases:
    """
    The leases of one kind of run in one database.

    Raises, each of its methods:
        DatabaseUnavailable, NotReady: The database does not answer; a table or right is missing.
    """

    def __init__(self, database: Database, statements: Statements) -> None:
        self._database = database
        self._of = statements

    def take(self, run: int, runner: str) -> Lease | None:
        """Have *run* for `LEASE` seconds; None when it does not run, or somebody's lease does."""
        values = {"id": run, "runner": runner, "seconds": LEASE}
        with self._database.working() as rows:
            row = rows.first(self._of.take, values)
        return None if row is None else Lease(run=run, token=row["token"])

    def renew(self, lease: Lease) -> bool:
        """Keep the run; False when it is another's by now, or does not run any more."""
        with self._database.working() as rows:
            return rows.first(self._of.renew, _values(lease)) is not None

    def leave(self, lease: Lease) -> None:
        """Let another take the run at once; nothing happens when it is another's already."""
        with self._database.working() as rows:
            rows.count(self._of.leave, _values(lease))

    def close(self, lease: Lease, *, state: str, said: str | None, final: bool) -> None:
        """
        Bring the run to *state*; *final*: for good.

        Raises:
            LeaseLost: It is not ours any more; nothing was written.
        """
        values = {"state": state, "said": said, "final": final} | _values(lease)
        with self._database.working() as rows:
            if rows.first(self._of.close, values) is None:
                raise _lost(lease)

    def standing(self, run: int) -> Standing | None:
        """Return how *run* stands; None when there is none."""
        with self._database.working() as rows:
            row = rows.first(self._of.standing, {"id": run})
        return None if row is None else Standing(**row)

    def free(self) -> int | None:
        """Return a run that runs and that nobody works on."""
        with self._database.working() as rows:
            row = rows.first(self._of.free)
        return None if row is None else int(row["id"])

    @contextmanager
    def writing(self, lease: Lease, *, timeout: float | None = None) -> Iterator[Rows]:
        """
        Write what comes of a run in one transaction that begins with asking for the token, and so renews the lease.

        Raises:
            LeaseLost: The token has moved, or a person paused or ended the run; nothing was written.
        """
        with self._database.working(timeout=timeout) as rows:
            if rows.first(self._of.renew, _values(lease)) is None:
                raise _lost(lease)
            yield rows


def _values(lease: Lease) -> dict[str, object]:
    return {"id": lease.run, "token": lease.token, "seconds": LEASE}


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(
        f"run {lease.run} is not this runner's any more: another has taken it, or a person has paused or ended it"
    )


class Reconnecting:
    """Lend one connection in autocommit, made when it is needed and anew when it is lost; for one thread."""

    def __init__(self, url: str, *, timeout: float) -> None:
        self._url = url
        self._timeout = timeout
        self._connection: Connection | None = None

    @contextmanager
    def __call__(self) -> Iterator[Connection]:
        """Lend it for one transaction; raises what `connection_to` does."""
        if self._connection is None or self._connection.closed:
            self._connection = connection_to(self._url, timeout=self._timeout)
        yield self._connection

    def close(self) -> None:
        """Close what is open."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


@contextmanager
def lasting(settings: "ConsoleSettings") -> Iterator[Database]:
    """Hand out the database over one connection that comes again after trouble; it is made when it is first needed."""
    lend = Reconnecting(settings.database_url.get_secret_value(), timeout=settings.timeout)
    try:
        yield Database(lend, schema=settings.database_schema, timeout=settings.timeout)
    finally:
        lend.close()
