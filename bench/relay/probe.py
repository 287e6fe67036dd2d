"""What is seen of a carrier from outside: its processes' time and memory, and how far its topic has come."""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.relay.ground import PARTITIONS
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # exported at run time

_TICKS = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """Return *pid* and its descendants that live."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            for task in Path(f"/proc/{parent}/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    found += [int(child) for child in task.read_text().split()]
    return found


def cpu_seconds(pid: int) -> float:
    """Return the processor time of *pid* and its descendants, the ended ones too."""
    total = 0
    for each in family(pid):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(value) for value in fields[11:15])
    return total / _TICKS


def memory(pid: int, field: str = "VmHWM") -> float:
    """Return the resident memory of *pid* and its descendants, the highest so far (or now, `VmRSS`), in MiB."""
    total = 0
    for each in family(pid):
        try:
            lines = Path(f"/proc/{each}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith(field))
    return total / 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """
    One look.

    Attributes:
        at: Seconds of the monotonic clock.
        records: In the topic; with transactions their markers too.
        cpu, database, broker: Processor seconds so far of the carrier, of Postgres, of Kafka.
        memory: Highest resident memory of the carrier so far, MiB; 0 when it has ended.
    """

    at: float
    records: int
    cpu: float
    database: float
    broker: float
    memory: float


class TopicEnd:
    """How many records a topic has taken, asked for in one request."""

    def __init__(self, servers: str, topic: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        self._asked = {
            TopicPartition(topic, n): OffsetSpec.latest()  # type: ignore[no-untyped-call]
            for n in range(PARTITIONS)
        }

    def records(self) -> int:
        """Return the sum of the partitions' end offsets."""
        asked = self._admin.list_offsets(self._asked, request_timeout=10)
        return sum(future.result(10).offset for future in asked.values())


def window(course: Sequence[Sample], warm: float) -> tuple[Sample, Sample]:
    """
    Return the samples between which the carrier was warm and at work.

    The first has at least the part *warm* of all records; the last is the first that has all.
    """
    final = course[-1].records
    last = next(sample for sample in course if sample.records == final)
    first = next(sample for sample in course if sample.records >= warm * final)
    if first.at >= last.at:  # all came between two looks
        first = next(sample for sample in reversed(course) if sample.at < last.at)
    return first, last
