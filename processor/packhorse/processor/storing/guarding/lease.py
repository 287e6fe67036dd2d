"""How long one handler may use a connection, and what it may send there."""

from typing import NoReturn

from packhorse.processor.outcomes import TransactionRefused
from packhorse.processor.storing.guarding.statements import ENDING, Verdict

OVER = (
    "the handler has returned and its transaction is over: use a connection of your own in threads and tasks that outlive the "
    "handler"
)


def refuse(what: str) -> NoReturn:
    """Refuse to end the transaction."""
    raise TransactionRefused(f"{what} {ENDING}")


class Lease:
    """
    How long one handler may use the connection, and what it did there.

    Attributes:
        is_over: The handler has returned.
        savepoints: Names of the savepoints that it has set.
    """

    __slots__ = ("is_over", "savepoints")

    def __init__(self) -> None:
        self.is_over = False
        self.savepoints: set[bytes] = set()

    def check(self) -> None:
        if self.is_over:
            raise TransactionRefused(OVER)

    def admit(self, verdict: Verdict) -> None:
        if verdict.refused:
            raise TransactionRefused(verdict.refused)
        self.savepoints |= verdict.sets
        if foreign := verdict.uses - self.savepoints:
            name = next(iter(foreign)).decode(errors="replace")
            raise TransactionRefused(
                f"savepoint {name} is refused: this handler did not set it, and other messages share the transaction; set it "
                "first, or use `with ctx.connection.transaction():`"
            )
