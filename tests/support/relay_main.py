"""
A relay process that ends itself with SIGKILL at a named point: `python -m tests.support.relay_main POINT NUMBER`.

Without arguments it is the plain relay. Points are those of the relay's port `Probe`; the NUMBER-th time counts.
"""

import os
import signal
import sys

from packhorse.relay.daemon import run
from packhorse.relay.settings import RelaySettings


class Killer:
    """Kill this process when *point* is reached for the *number*-th time."""

    def __init__(self, point: str, number: int) -> None:
        self._point = point
        self._left = number

    def reached(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    run(RelaySettings.load(), probe=Killer(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 1 else None)
