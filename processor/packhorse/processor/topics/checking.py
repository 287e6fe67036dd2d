"""Check at the start that a group's topics fit together; decided purely."""

from collections.abc import Mapping, Sequence

from packhorse.core.errors import NotReady
from packhorse.processor.app import Processor
from packhorse.processor.tiers.ladder import ReadTopic
from packhorse.processor.topics.watching import RUNBOOK, Standing


def needed(app: Processor, read: Mapping[str, ReadTopic]) -> Sequence[str]:
    """Return the topics that a processor needs: those that it reads, and its quarantines."""
    return [*read, *(app.quarantine_topic(source) for source in app.topics)]


def partitions_of(
    app: Processor, read: Mapping[str, ReadTopic], found: Mapping[str, Standing]
) -> Mapping[str, int]:
    """
    Return how many partitions of each source are to be read.

    Raises:
        NotReady: A topic that is *needed* is not *found*, or has not as many partitions as its source: a copy keeps its partition.
    """
    sources = {name: read[name].source for name in read}
    sources |= {app.quarantine_topic(source): source for source in app.topics}
    for name, source in sources.items():
        if name not in found:
            raise NotReady(f"topic {name} does not exist; `packhorse topics plan` says what is missing")
        if found[name].partitions != found[source].partitions:
            raise NotReady(
                f"topic {name} has {found[name].partitions} partitions and {source} has {found[source].partitions}; a copy "
                f"keeps its partition, so they must be equal: `packhorse topics plan` names the way; see {RUNBOOK}"
            )
    return {source: found[source].partitions for source in app.topics}


def grown(source: str, partition: int, partitions: int) -> str:
    """Return why a partition that was added later is not read, and what to do."""
    return (
        f"{source}[{partition}] was added after the start, when there were {partitions} partitions; it is not read, since what "
        f"fails in it would have no tier to wait in, and keys that moved here would overtake themselves; see {RUNBOOK}"
    )
