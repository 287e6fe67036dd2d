"""Who is measured: each one's command, settings and promise, and why one may be missing."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.processor import peers
from bench.processor.ground import Place

from packhorse.processor import Context, Processor

CHILDREN = Path(__file__).parent / "children"
PACKHORSE = [sys.executable, "-m", "packhorse.cli.main"]
APP = "bench.processor.children.app:app"

INBOX = "one effect; order by key, through retries"
BY_HAND_INBOX = "one effect; order by partition"
AT_LEAST = "at least once; order by partition"


def _there() -> str | None:
    return None


def _nothing(place: Place) -> None:
    del place


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """
    One way from a topic to results.

    Attributes:
        command: The process; it begins at once and goes on until SIGTERM.
        settings: On top of the place's own variables.
        promise: What it keeps, for the table.
        share: Part of the asked records that it gets: the slow ones need fewer for a rate.
        before: Runs before the process.
        missing: Says why it can't run here, or None.
    """

    name: str
    command: Sequence[str]
    settings: Mapping[str, str] = field(default_factory=dict)
    promise: str
    share: float = 1.0
    before: Callable[[Place], None] = _nothing
    missing: Callable[[], str | None] = _there

    def wanted(self, records: int) -> int:
        """Return how many results end its run."""
        return int(records * self.share)


def environment(contestant: Contestant, place: Place) -> dict[str, str]:
    """Return the environment of its process."""
    return {**os.environ, **place.environment(), **contestant.settings}


def packhorse(
    name: str, mode: str, *, share: float = 1.0, settings: Mapping[str, str] | None = None
) -> Contestant:
    """Return Packhorse with the handler of a mode of `children/app.py`, with default settings but for *settings*."""
    contestant: Contestant

    def apply(place: Place) -> None:
        done = subprocess.run(
            [*PACKHORSE, "topics", "apply", APP], env=environment(contestant, place), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"topics apply: {done.stderr.strip() or done.stdout.strip()}")

    contestant = Contestant(
        name=name,
        command=[*PACKHORSE, "processor", "run", APP],
        settings={"BENCH_MODE": mode, **(settings or {})},
        promise=INBOX,
        share=share,
        before=apply,
        missing=_no_such_mode(mode),
    )
    return contestant


def _no_such_mode(mode: str) -> Callable[[], str | None]:
    needed = {"batch": (Processor, "batch_handler"), "pipelined": (Context, "pipeline")}

    def missing() -> str | None:
        if mode in needed and not hasattr(*needed[mode]):
            owner, name = needed[mode]
            return f"this version has no {owner.__name__}.{name}"
        return None

    return missing


def _by_hand(name: str, way: str, promise: str, *, share: float = 1.0) -> Contestant:
    command = [sys.executable, "-m", "bench.processor.children.loop", way]
    return Contestant(name=name, command=command, promise=promise, share=share)


def _peer(
    name: str, environment: str, script: str, way: str, promise: str, *, share: float = 1.0
) -> Contestant:
    return Contestant(
        name=name,
        command=[str(peers.python(environment)), str(CHILDREN / script), way],
        promise=promise,
        share=share,
        missing=lambda: peers.missing(environment),
    )


PLAIN, PIPELINED, BATCH = "packhorse plain", "packhorse pipelined", "packhorse batch"
LOOP, LOOP_INBOX, ONE_BY_ONE = "loop, batch", "loop, batch, inbox", "loop, message"

CONTESTANTS: tuple[Contestant, ...] = (
    packhorse(PLAIN, "plain", share=0.4),
    packhorse(PIPELINED, "pipelined"),
    packhorse(BATCH, "batch"),
    _by_hand(LOOP, "batch", AT_LEAST),
    _by_hand(LOOP_INBOX, "inbox", BY_HAND_INBOX),
    _by_hand(ONE_BY_ONE, "message", AT_LEAST, share=0.1),
    _peer("arroyo, message", "arroyo", "arroyo_loop.py", "message", AT_LEAST, share=0.1),
    _peer("arroyo, batch", "arroyo", "arroyo_loop.py", "batch", AT_LEAST),
    _peer("quixstreams sink", "quixstreams", "quixstreams_sink.py", "sink", AT_LEAST),
    _peer("faststream, late ack", "faststream", "faststream_app.py", "message", AT_LEAST, share=0.03),
    _peer("faststream, batch", "faststream", "faststream_app.py", "batch", AT_LEAST),
)  # fmt: skip
