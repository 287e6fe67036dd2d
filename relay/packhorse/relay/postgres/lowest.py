"""Where the rows between two snapshots begin, so that no read walks through what is published already."""

from collections.abc import Callable

from packhorse.relay.model import Row

CHUNK = 20_000
"""Rows of one look; the index alone is read."""
Rows = Callable[..., list[Row]]
"""Runs a statement by its name with these values."""


class Lowest:
    """
    The search for the lowest seq among the rows that are visible in *target* and not in *horizon*; void with the connection.

    Attributes:
        late: Transactions that ran when the horizon was taken, are over in the target, and left rows.
        low: Lowest seq of the transactions since; None: none was found so far.
        low_of_late: Lowest seq of the late ones.
        done: All was looked at.
    """

    def __init__(self, rows: Rows, horizon: str, target: str) -> None:
        """Find the late ones; `look` finds the rest."""
        self._rows = rows
        self.horizon = horizon
        self.target = target
        self.xmax = self._first = horizon.split(":")[1]
        found = rows("RUNNING_THEN", horizon=horizon, target=target)
        self.late = [xid for xid, _ in found]
        self.low_of_late = min((seq for _, seq in found), default=None)
        self.low: int | None = None
        self.done = False

    def look(self) -> None:
        """Look at the next CHUNK rows, in the order of their transactions."""
        least, last, count = self._rows("LOWEST", first=self._first, target=self.target)[0]
        if least is not None:
            self.low = least if self.low is None else min(self.low, least)
        self.done = count < CHUNK
        if last is not None:
            self._first = str(int(last) + 1)
