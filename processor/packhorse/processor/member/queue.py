"""
Records of one partition that are read: which wait, which run, and how far all is dealt with without a gap.

    extend ─▶ ready ──take──▶ with a lane ──settle──▶ dealt with; the end moves behind what has no gap
               ▲   ╲ its key is with a lane: behind ─┐  │
               └──────────── the key is free ────────┴──┘ what is left goes back to the front

Messages of one key leave in order, all of them in one chunk or none while another chunk has the key. A record without a
key, or whose handler takes no order, is bound to nothing.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from packhorse.processor.partition.state import Load
from packhorse.processor.record import Delivery, Record

SLOW_KEYS = 1_000
"""Keys that are remembered as slow."""


class Kind(NamedTuple):
    """
    What may share a chunk: records of one kind.

    Attributes:
        is_async: Handlers are `async def`.
        batch: Name of the batch handler that takes them together; None for handlers of one message.
        alone: Nothing may share a chunk with it.
        job: They are bodies of jobs.
        paced: Name of the handler whose jobs share a chunk among themselves, as many as `take` is told; None for others.
    """

    is_async: bool = False
    batch: str | None = None
    alone: bool = False
    job: bool = False
    paced: str | None = None


PLAIN = Kind()


class Waiting(NamedTuple):
    """One record that is to be dealt with; *key* is the hash of its key, None where order does not bind it."""

    delivery: Delivery
    key: str | None
    kind: Kind
    gate: str | None
    size: int


class Queue:
    """The records of one partition; for one thread."""

    __slots__ = (
        "_ahead",
        "_behind",
        "_end",
        "_epoch",
        "_flying",
        "_gates",
        "_held",
        "_order",
        "_pending",
        "_ready",
        "_size",
        "_slow",
    )

    def __init__(self, offset: int = 0) -> None:
        self._slow: dict[str, None] = {}
        self.clear(offset)

    def clear(self, offset: int) -> None:
        """Forget all; reading starts anew at *offset*."""
        self._ready: deque[Waiting] = deque()
        self._behind: dict[str, deque[Waiting]] = {}
        self._flying: set[str] = set()
        self._held: list[tuple[float, Waiting]] = []
        self._gates: set[str | None] = set()
        self._order: deque[tuple[int, int | None]] = deque()
        self._ahead: set[int] = set()
        self._end = offset
        self._epoch: int | None = None
        self._pending = 0
        self._size = 0

    @property
    def load(self) -> Load:
        """Return what is here, in numbers."""
        return Load(
            pending=self._pending,
            size=self._size,
            tracked=len(self._order),
            end=self._end,
            epoch=self._epoch,
        )

    @property
    def end(self) -> int:
        """Return the offset below which all is dealt with."""
        return self._end

    @property
    def keys(self) -> Collection[str]:
        """Return the hashes of the keys that are with lanes."""
        return self._flying

    def __bool__(self) -> bool:
        return bool(self._ready)

    def extend(self, records: Iterable[Waiting]) -> None:
        """Append *records*, which lie behind all that is here, in offset order."""
        records = list(records)
        self._ready.extend(records)
        self._gates.update({one.gate for one in records})
        self._order.extend(
            [(one.delivery.record.offset, one.delivery.record.leader_epoch) for one in records]
        )
        self._pending += len(records)
        self._size += sum([one.size for one in records])
        self._move_end()

    def take(
        self,
        limit: int,
        *,
        lonely: Collection[int] = (),
        shut: Collection[str] = (),
        barred: Collection[int] = (),
        slow: bool = True,
        pace: Callable[[str], int] = lambda name: 1,  # noqa: ARG005 its name says what it is
    ) -> list[Waiting]:
        """
        Return the next chunk, at most *limit* records of one kind, in order for each key; empty when nothing may run.

        Args:
            limit: At least 1.
            lonely: Offsets that no other record may share a chunk with.
            shut: Gates that are shut: records behind one are passed over, and those of their keys with them.
            barred: Offsets that are passed over in the same way.
            slow: Whether a key that is known as slow may go now; it goes alone.
            pace: Says how many of a paced kind may share a chunk, by the name of their handler.
        """
        chunk: list[Waiting] = []
        passed: list[Waiting] = []
        blocked: set[str] = set()
        ready, flying = self._ready, self._flying
        most = 4 * limit + 64
        while ready and len(chunk) < limit and (not chunk or len(passed) < most):
            one = ready.popleft()
            key = one.key
            if key is not None and key in flying:
                self._behind.setdefault(key, deque()).append(one)
                continue
            offset = one.delivery.record.offset
            alone = one.kind.alone or key in self._slow or offset in lonely
            if (
                key in blocked
                or (one.gate is not None and one.gate in shut)
                or offset in barred
                or (alone and (chunk or (not slow and key in self._slow)))
                or (chunk and one.kind != chunk[0].kind)
            ):
                passed.append(one)
                if key is not None:
                    blocked.add(key)
                continue
            if not chunk and one.kind.paced is not None:
                limit = min(limit, pace(one.kind.paced))
            chunk.append(one)
            if alone:
                break
        ready.extendleft(reversed(passed))
        flying.update(one.key for one in chunk if one.key is not None)
        return chunk

    def candidates(self, gate: str) -> list[Waiting]:
        """
        Return records behind *gate* of which one may be tried: of some keys that are free, the first each.

        A gate of which nothing is found ready is looked for again only when records have come: there may be thousands.
        """
        if gate not in self._gates:
            return []
        seen: set[str] = set()
        found: list[Waiting] = []
        is_here = False
        for one in self._ready:
            is_here = is_here or one.gate == gate
            if one.key is not None and (one.key in seen or one.key in self._flying):
                continue
            if one.key is not None:
                seen.add(one.key)
            if one.gate == gate:
                found.append(one)
                if len(found) >= _PROBED:
                    break
        if not is_here:
            self._gates.discard(gate)
        return found

    def pull(self, one: Waiting) -> None:
        """Take *one* of the candidates out, as a chunk of its own."""
        self._ready.remove(one)
        if one.key is not None:
            self._flying.add(one.key)

    def settle(
        self, chunk: Sequence[Waiting], left: Collection[int], held: Mapping[int, float], now: float
    ) -> None:
        """Take back a chunk: all is dealt with but *left*, of which *held* wait alone for so many seconds from *now*."""
        left = frozenset(left)
        back: list[Waiting] = []
        after: dict[str, list[Waiting]] = {}
        first: set[str | None] = set()
        for one in chunk:
            offset = one.delivery.record.offset
            if offset not in left:
                self._ahead.add(offset)
                self._pending -= 1
                self._size -= one.size
            elif one.key is not None and one.key in after:
                after[one.key].append(one)
            elif offset in held and (one.key is None or one.key not in first):
                self._held.append((now + held[offset], one))
                if one.key is not None:
                    after[one.key] = []
            else:
                back.append(one)
                first.add(one.key)
        for key, later in after.items():
            if later:
                self._behind.setdefault(key, deque()).extendleft(reversed(later))
        self._free({one.key: None for one in chunk if one.key is not None and one.key not in after}, back)
        self._move_end()

    def _free(self, keys: Iterable[str], back: list[Waiting]) -> None:
        """Put *back* to the front, and behind it what had to wait for *keys*."""
        for key in keys:
            self._flying.discard(key)
            if (behind := self._behind.pop(key, None)) is not None:
                back.extend(behind)
        self._ready.extendleft(reversed(back))
        self._gates.update({one.gate for one in back})

    @property
    def waits_until(self) -> float | None:
        """Return when the first of those that wait alone is tried again; None when none waits."""
        return min((until for until, _ in self._held), default=None)

    def wake(self, now: float) -> bool:
        """Let those that waited alone until *now* go on; return whether there are any."""
        if not self._held:
            return False
        due = [one for until, one in self._held if until <= now]
        if due:
            self._held = [(until, one) for until, one in self._held if until > now]
            self._free([one.key for one in due if one.key is not None], due)
        return bool(due)

    def is_slow(self, key: str | None) -> bool:
        """Return whether *key* is known as slow: its records go alone."""
        return key in self._slow

    def learn(self, slow: Iterable[str], quick: Iterable[str]) -> None:
        """Remember which keys are slow, and which are no longer."""
        for key in slow:
            self._slow.pop(key, None)
            self._slow[key] = None
        for key in quick:
            self._slow.pop(key, None)
        while len(self._slow) > SLOW_KEYS:
            del self._slow[next(iter(self._slow))]

    def _move_end(self) -> None:
        order, ahead = self._order, self._ahead
        while order and order[0][0] in ahead:
            offset, self._epoch = order.popleft()
            ahead.discard(offset)
            self._end = offset + 1
        if order:
            self._end = order[0][0]


_PROBED = 50
"""Records among which a probe is chosen."""


def bytes_of(record: Record) -> int:
    """Return the bytes of key, value and headers: any of them can be what fills the memory."""
    size = len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name) if value is None else len(name) + len(value)
    return size
