"""Who is measured: each carrier's table, command and settings, and why one may be missing."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from bench.relay import debezium, peers
from bench.relay.ground import Ground, Place
from bench.relay.tables import FASTSTREAM, OUTBOX, QUEUE, TXOUTBOX, Table

from packhorse.relay.settings import RelaySettings

CHILDREN = Path(__file__).parent / "children"
Command = Callable[[Place], Sequence[str]]


def _nothing(place: Place) -> None:
    del place


def _clean(ground: Ground, place: Place) -> AbstractContextManager[None]:
    del ground, place
    return nullcontext()


def _there() -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """
    One contestant, or a limit.

    Attributes:
        command: The process that carries; it begins at once and goes on until SIGTERM, or until its rows are done.
        settings: On top of the place's own variables.
        share: Part of the asked rows that it gets: the slow ones need fewer for a rate.
        least: Rows that it gets at least.
        stock: Rows that are written for it at most, when it sends the same ones again; 0: all.
        warm: Part of the rows that are not counted, or, above 1, their number.
        latency: Whether it is measured at a fixed rate too.
        before: Runs when the table stands and before the backlog is written.
        ready: Raises or waits until the process is in the state that is to be measured.
        missing: Says why it can't run here, or None.
        live: The rows are written while it runs.
        condition: What holds in the database meanwhile; entered before the backlog is written.
    """

    name: str
    table: Table = OUTBOX
    command: Command
    settings: Mapping[str, str] = field(default_factory=dict)
    share: float = 1.0
    least: int = 0
    stock: int = 0
    warm: float = 0.1
    latency: bool = True
    before: Callable[[Place], None] = _nothing
    ready: Callable[[Place], bool] | None = None
    missing: Callable[[], str | None] = _there
    live: bool = False
    condition: Callable[[Ground, Place], AbstractContextManager[None]] = _clean

    def rows(self, asked: int) -> int:
        """Return how many rows it gets."""
        return max(int(asked * self.share), self.least)

    def warm_part(self, rows: int) -> float:
        """Return the part of *rows* that is not counted."""
        return self.warm / rows if self.warm > 1 else self.warm


def _relay(place: Place) -> Sequence[str]:
    del place
    return [sys.executable, "-m", "packhorse.relay", "run"]


def _module(name: str, *arguments: str) -> Command:
    return lambda place: [sys.executable, "-m", f"bench.relay.children.{name}", *arguments, str(place.rows)]


def _peer(name: str) -> Command:
    return lambda place: [
        str(peers.python(name)),
        str(CHILDREN / f"{name}_relay.py"),
        place.database,
        place.servers,
        place.topic,
    ]


def _unknown(*names: str) -> Callable[[], str | None]:
    def missing() -> str | None:
        absent = [name for name in names if name not in RelaySettings.model_fields]
        return f"the relay has no setting {', '.join(absent)}" if absent else None

    return missing


def _setup_cdc(place: Place) -> None:
    import os
    import subprocess

    command = [sys.executable, "-m", "packhorse.cli.main", "relay", "cdc-setup"]
    done = subprocess.run(
        command, env={**os.environ, **place.environment()}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"cdc-setup: {done.stderr.strip()}")


def _streams(place: Place) -> bool:
    with psycopg.connect(place.database) as connection:
        found = connection.execute("SELECT mode FROM packhorse.relay WHERE shard = 0").fetchone()
    return found is not None and found[0] == "cdc"


POLLING = "packhorse"

CARRIERS: tuple[Carrier, ...] = (
    Carrier(name=POLLING, command=_relay),
    Carrier(
        name="packhorse fenced", command=_relay, settings={"PACKHORSE_RELAY_FENCED": "true"}, missing=_unknown("fenced")
    ),
    Carrier(
        name="packhorse cdc", command=_relay, settings={"PACKHORSE_RELAY_MODE": "cdc"}, missing=_unknown("mode"),
        before=_setup_cdc, ready=_streams, live=True,
    ),
    Carrier(
        name="packhorse auto", command=_relay, settings={"PACKHORSE_RELAY_MODE": "auto"}, missing=_unknown("mode"),
        before=_setup_cdc, ready=_streams,
    ),
    Carrier(name="loop 1,000", table=QUEUE, command=_module("loop", "1000")),
    Carrier(name="loop 5,000", table=QUEUE, command=_module("loop", "5000"), latency=False),
    Carrier(
        name="txoutbox", table=TXOUTBOX, command=_peer("txoutbox"), share=0.2, missing=lambda: peers.missing("txoutbox")
    ),
    Carrier(
        name="faststream-outbox", table=FASTSTREAM, command=_peer("faststream"), share=0.03,
        missing=lambda: peers.missing("faststream"),
    ),
    Carrier(
        name="debezium", command=debezium.command, share=1.0, least=1_000_000, warm=200_000,
        before=debezium.prepare, missing=debezium.missing,
    ),
    Carrier(name="producing alone", command=_module("produce"), latency=False, least=1_000_000, stock=100_000),
    Carrier(name="fetching alone", command=_module("fetch"), latency=False),
)  # fmt: skip

LIMITS = frozenset({"producing alone", "fetching alone"})
