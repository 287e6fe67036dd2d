"""The table of contents of the command line: which command comes from which part, under which heading."""

from dataclasses import dataclass
from enum import Enum


class Panel(Enum):
    """Headings of `packhorse --help`, in their order."""

    DEVELOP = "Develop"
    WRITE = "Write"
    CARRY = "Carry"
    PROCESS = "Process"
    SEE = "See and act"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """
    One command at the top.

    Attributes:
        name: What the person types.
        target: module:attribute of the part's typer app; imported only when the command is used.
        joined: Apps of other parts whose commands stand beside those of the target.
        panel: Heading it stands under.
        line: What it is for, in one line.
    """

    name: str
    target: str
    panel: Panel
    line: str
    joined: tuple[str, ...] = ()


MOUNTS: tuple[Mount, ...] = (
    Mount(
        name="dev",
        target="packhorse.local.cli:app",
        panel=Panel.DEVELOP,
        line="Run a real Postgres, Kafka and schema registry on this machine, without Docker.",
    ),
    Mount(
        name="schemas",
        target="packhorse.schemas.cli:app",
        panel=Panel.DEVELOP,
        line="Check Avro schemas, register them, and generate message classes.",
    ),
    Mount(
        name="migrate",
        target="packhorse.producer.cli:app",
        panel=Panel.WRITE,
        line="Make and update the tables in your database.",
    ),
    Mount(
        name="relay",
        target="packhorse.relay.cli:app",
        panel=Panel.CARRY,
        line="Carry outbox rows to Kafka, and say how far that is.",
    ),
    Mount(
        name="retention",
        target="packhorse.relay.retention.cli:app",
        panel=Panel.CARRY,
        line="Make day partitions of the outbox ahead, and remove old ones once they are published.",
    ),
    Mount(
        name="processor",
        target="packhorse.processor.cli:app",
        joined=("packhorse.console.pausing.cli:app",),
        panel=Panel.PROCESS,
        line="Run an application's handlers, and say how far they are.",
    ),
    Mount(
        name="topics",
        target="packhorse.processor.topics.cli:app",
        panel=Panel.PROCESS,
        line="Plan, make and check topics; nothing is created by accident.",
    ),
    Mount(
        name="offsets",
        target="packhorse.console.offsets.cli:app",
        panel=Panel.PROCESS,
        line="Show a group's offsets and watermarks, and reset them on the record.",
    ),
    Mount(
        name="top",
        target="packhorse.console.top.cli:app",
        panel=Panel.SEE,
        line="Show what flows and what does not, live.",
    ),
    Mount(
        name="status",
        target="packhorse.console.truth.cli:app",
        panel=Panel.SEE,
        line="Say where one message stands, from outbox to result.",
    ),
    Mount(
        name="explain",
        target="packhorse.console.truth.explain_cli:app",
        panel=Panel.SEE,
        line="Say in words why a message or a key stands where it does, what comes next, and what you can do.",
    ),
    Mount(
        name="job",
        target="packhorse.console.jobs.cli:app",
        joined=("packhorse.processor.jobs.keeping.cli:app",),
        panel=Panel.SEE,
        line="See how jobs stand, take them back, send them again, resolve their outside effects.",
    ),
    Mount(
        name="quarantine",
        target="packhorse.console.quarantine.cli:app",
        panel=Panel.SEE,
        line="List, show and redrive messages that wait for a person.",
    ),
    Mount(
        name="redrive",
        target="packhorse.console.redriving.cli:app",
        panel=Panel.SEE,
        line="Send a frozen set of quarantined messages back, in stages.",
    ),
    Mount(
        name="console",
        target="packhorse.console.serving.cli:app",
        panel=Panel.SEE,
        line="Serve the operators' web page and API, closed until somebody has rights.",
    ),
    Mount(
        name="audit",
        target="packhorse.console.audit.cli:app",
        panel=Panel.SEE,
        line="Read what people did, to what, when and why.",
    ),
    Mount(
        name="purge",
        target="packhorse.console.purging.cli:app",
        panel=Panel.SEE,
        line="Erase what is kept of a person, and say what stays on topics.",
    ),
    Mount(
        name="reconcile",
        target="packhorse.console.reconciling.cli:app",
        panel=Panel.SEE,
        line="Find jobs that do not add up with their messages, results and effects, and repair what is safe.",
    ),
    Mount(
        name="operators",
        target="packhorse.console.operators.cli:app",
        panel=Panel.SEE,
        line="Say who may see, act and administer.",
    ),
    Mount(
        name="replay",
        target="packhorse.console.replaying.cli:app",
        panel=Panel.SEE,
        line="Hand a range of a topic to a group once more.",
    ),
    Mount(
        name="doctor",
        target="packhorse.console.doctor.cli:app",
        panel=Panel.SEE,
        line="Check database, tables, broker, topics, registry and settings.",
    ),
)
