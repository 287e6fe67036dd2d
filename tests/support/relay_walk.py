"""Drive the relay's core by hand: events in, the next command out; time passes only when a test says so."""

from packhorse.relay.deciding.commands import Command, Leave, RecordMode, RecordTrouble, Save
from packhorse.relay.deciding.core import decide
from packhorse.relay.deciding.events import Event, ModeRecorded, Owned, Saved, Started, TroubleRecorded
from packhorse.relay.deciding.state import State
from packhorse.relay.holds import Fault, Hold, Kind, Scope
from packhorse.relay.model import Batch, Policy, Position, Row

POLICY = Policy(  # powers of two, so that sums and differences of times are exact
    batch_rows=4, poll=1 / 64, idle_poll=1 / 16, save=1 / 4, flush_patience=1 / 64, flush_poll=1 / 1024, retry_first=1 / 8,
)  # fmt: skip
H0, H1, H2 = "1:5:", "1:9:", "1:12:"


class Walk:
    """One relay's mind."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.policy = policy
        self.state = State()
        self.now = 128.0
        self.command: Command = Leave()

    def on(self, *events: Event, after: float = 0.0) -> Command:
        """Let *events* happen *after* seconds; return what comes next."""
        self.now += after
        self.state, self.command = decide(self.state, events, now=self.now, policy=self.policy, jitter=0.0)
        return self.command

    def told(self) -> Command:
        """Answer every save and record until something else comes; return that."""
        answers: dict[type, Event] = {
            Save: Saved(),
            RecordTrouble: TroubleRecorded(),
            RecordMode: ModeRecorded(),
        }
        while (answer := answers.get(type(self.command))) is not None:
            self.on(answer)
        return self.command

    def owning(self, *holds: Hold, at: Position | None = None) -> Command:
        """Own the shard for 600 s, at horizon H0 unless *at* says otherwise."""
        self.on(Started())
        return self.on(Owned(at or Position(horizon=H0), deadline=self.now + 600, holds=holds))


def row(seq: int, key: str = "k") -> Row:
    """Return a row of topic orders."""
    return (seq, "orders", key, b"x", 0, f"id-{seq}", "t.T", "1", *[None] * 10)


def batch(
    *seqs: int, start: Position, target: str, complete: bool = True, unflushed: str | None = None
) -> Batch:
    """Return rows of key k."""
    rows = [row(seq) for seq in seqs]
    return Batch(start=start, target=target, rows=rows, complete=complete, unflushed=unflushed)


def fault(seq: int, reason: str = "too large", key: str = "k") -> Fault:
    """Return the fault of a row's own."""
    scope = Scope(kind=Kind.KEY, aggregatetype="orders", aggregateid=key)
    return Fault(
        scope=scope, code="too_large", reason=reason, heals=False, topic="t.orders", seq=seq, id=f"id-{seq}"
    )
