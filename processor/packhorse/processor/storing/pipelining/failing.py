"""How a queued statement fails: later than it was queued, so its error names the member that queued it."""

from packhorse.core.errors import PackhorseError


class StatementFailed(PackhorseError):
    """
    A queued statement failed, and the transaction with it; the database's error is its cause.

    Attributes:
        member: Whose it was: what `Lent` was given, which need not be the member in hand.
    """

    def __init__(self, member: object, error: str) -> None:
        super().__init__(f"a statement of ctx.pipeline failed: {error}")
        self.member = member
