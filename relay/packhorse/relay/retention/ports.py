"""What retention needs from the outside: the outbox's partitions."""

from typing import Protocol

from packhorse.relay.retention.model import Facts, LastRun, Outcome, Report, Step


class Partitions(Protocol):
    """
    The outbox's partitions, through one connection that is made when it is needed.

    Every step is one transaction of its own that ends on the server, so a process that freezes or dies holds no lock.
    All raise DatabaseUnavailable, StatementFailed (the connection is still good) or NotReady (a function or right is missing).
    """

    def facts(self) -> Facts:
        """Return how the outbox stands."""

    def take(self, step: Step) -> Outcome:
        """Do *step*, or give way; what holds an unpublished or held row stays, whatever was asked for."""

    def look(self, step: Step) -> Outcome:
        """Say what `take` would do; change nothing."""

    def record(self, report: Report, *, by: str, keep_days: int | None) -> None:
        """Write down that a run is over and what is overdue."""

    def last(self) -> LastRun:
        """Return what `record` wrote last."""

    def cancel(self) -> None:
        """End the step that runs; may be called from any thread, never raises, blocks for a second at most."""

    def close(self) -> None:
        """Drop the connection; the next call makes a new one."""
