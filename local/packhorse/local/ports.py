"""Choose free ports once and keep them: a stack that comes up again stands where it stood."""

import hashlib
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

# Below the range from which the kernel draws local ports of outgoing connections (32768 on Linux, 49152 elsewhere):
# a client that keeps knocking at a stopped broker could otherwise be given the broker's own port.
FIRST, LAST = 20_000, 32_000
LOOPBACK = "127.0.0.1"


def candidates(folder: Path) -> Iterator[int]:
    """Yield every port of the range once, beginning at a place that depends on *folder*."""
    width = LAST - FIRST
    start = int.from_bytes(hashlib.sha256(str(folder).encode()).digest()[:4]) % width
    for step in range(width):
        yield FIRST + (start + step) % width


def assign(
    names: Sequence[str],
    remembered: Mapping[str, int],
    offered: Iterator[int],
    is_free: Callable[[int], bool],
) -> dict[str, int]:
    """
    Give each name a port: the remembered one if it is still free, else the next free one that is offered.

    >>> assign(["a", "b"], {"b": 7}, iter([7, 8, 9]), lambda port: port != 8)
    {'a': 9, 'b': 7}

    Raises:
        LookupError: *offered* ran out.
    """
    kept = {name: port for name in names if (port := remembered.get(name)) is not None and is_free(port)}
    taken = set(kept.values()) | set(remembered.values())
    fresh = (port for port in offered if port not in taken and is_free(port))
    chosen = {}
    for name in names:
        port = kept[name] if name in kept else next(fresh, None)
        if port is None:
            raise LookupError(f"no free port left between {FIRST} and {LAST} for {name}")
        chosen[name] = port
    return chosen


def is_free(port: int) -> bool:
    """Tell whether nobody listens on *port* of the loopback address; a connection winding down does not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
