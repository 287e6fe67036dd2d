"""Judge how long a group's partitions stand still when one of its members is gone. Pure: no I/O, no clock."""

from collections.abc import Iterator, Mapping

from packhorse.console.doctor.findings import Finding, ok, warning
from packhorse.processor.takeover import QUICK, GroupTimes

HOW_TO = "docs/how-to/run-the-processor.md"


def judge_takeover(groups: Mapping[str, GroupTimes]) -> Iterator[Finding]:
    """Yield what is to be said about each group: the expected times of a take-over, and what makes them shorter."""
    for group, times in sorted(groups.items()):
        check = f"take-over {group}"
        if times.after_kill[1] <= QUICK:
            yield ok(check, str(times))
        else:
            yield warning(check, str(times), cause=_cause(times), next_step=_next_step(group, times))


def _cause(times: GroupTimes) -> str:
    if times.protocol == "classic":
        return (
            "a classic member sets its session time-out itself, and nobody has set a shorter one for this one"
        )
    return "with KIP-848 the session time-out is the broker's, and 45 s unless it is set"


def _next_step(group: str, times: GroupTimes) -> str:
    if times.protocol == "classic":
        return f'kafka_properties {{"session.timeout.ms": 6000}} for the processors of {group}; see {HOW_TO}'
    return (
        "on the brokers: group.consumer.min.session.timeout.ms=6000, group.consumer.session.timeout.ms=6000, "
        "group.consumer.min.heartbeat.interval.ms=1000, group.consumer.heartbeat.interval.ms=1000; or for this group: "
        f"kafka-configs --alter --entity-type groups --entity-name {group} "
        f"--add-config consumer.session.timeout.ms=…; see {HOW_TO}"
    )
