"""`packhorse topics`: plan, make and check topics; nothing is created by accident, and nowhere else."""

from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.schemas.flags import Broker, Json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from packhorse.processor.kafka.admin import BrokerQuestions
    from packhorse.processor.topics.plan import Step, Topic, Wanted

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Plan, make and check topics; nothing is created by accident.",
)

Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="[MODULE:APP]...", help="Processors; their sources and their own topics."),
]
Sources = Annotated[
    list[str] | None,
    typer.Option("--source", help="A source topic that is written here and read elsewhere; repeatable."),
]
Partitions = Annotated[
    int | None,
    typer.Option(
        "--partitions", help="Partitions of a source that is made; 6. [dim]PACKHORSE_TOPICS_PARTITIONS[/]"
    ),
]
Replication = Annotated[
    int | None,
    typer.Option(
        "--replication",
        help="Replicas of a source that is made; the broker's default. [dim]PACKHORSE_TOPICS_REPLICATION[/]",
    ),
]


@app.command()
def plan(
    targets: Targets = None,
    source: Sources = None,
    partitions: Partitions = None,
    replication: Replication = None,
    kafka_bootstrap_servers: Broker = None,
    as_json: Json = False,
) -> None:
    """
    Say what `apply` would do; exit 1 when something is to be done or refused.

    A tier that is in no ladder any more is told too, with how many records wait in it; nothing is ever deleted here.

    [bold]Example[/]: packhorse topics plan figures.app:app --partitions 12
    """
    broker, wanted = _set_up(targets, source, partitions, replication, kafka_bootstrap_servers)
    there = broker.standing(wanted)
    steps = _plan(broker, wanted, there)
    left = [
        each.told(broker.waiting(each.group, each.topic, there[each.topic].partitions))
        for each in wanted.leftovers(there)
    ]
    _show(steps, wanted, as_json=as_json, done=False, left=left)
    if steps:
        raise typer.Exit(1)


@app.command()
def apply(
    targets: Targets = None,
    source: Sources = None,
    partitions: Partitions = None,
    replication: Replication = None,
    kafka_bootstrap_servers: Broker = None,
    as_json: Json = False,
) -> None:
    """
    Make what is missing and set what differs; safe to repeat. A refusal changes nothing at all and exits 1.

    A source gets message.timestamp.type=LogAppendTime. For each group, `<source>.<group>.retry.<tier>` (one for each delay
    of its handlers, and 0s) and `<source>.<group>.quarantine` get the source's partitions, no limit of time or size, and
    64 KiB more a message.

    [bold]Example[/]: packhorse topics apply figures.app:app --replication 3
    """
    from packhorse.processor.topics.plan import Refusal

    broker, wanted = _set_up(targets, source, partitions, replication, kafka_bootstrap_servers)
    steps = _plan(broker, wanted, broker.standing(wanted))
    refused = any(isinstance(step, Refusal) for step in steps)
    if not refused:
        broker.apply(steps)
    _show(steps, wanted, as_json=as_json, done=not refused)
    if refused:
        raise typer.Exit(1)


def _set_up(
    targets: list[str] | None,
    sources: list[str] | None,
    partitions: int | None,
    replication: int | None,
    servers: str | None,
) -> "tuple[BrokerQuestions, Wanted]":
    from packhorse.core.errors import UsageError
    from packhorse.processor.clients import admin_properties
    from packhorse.processor.kafka.admin import BrokerQuestions
    from packhorse.processor.loading import load
    from packhorse.processor.settings import TopicsSettings
    from packhorse.processor.topics.plan import wanted_by

    settings = TopicsSettings.load(
        {"kafka_bootstrap_servers": servers, "partitions": partitions, "replication": replication}
    )
    apps = [load(target) for target in targets or ()]
    if not apps and not sources:
        raise UsageError("nothing is named; name processors as module:app, or topics with --source")
    wanted = wanted_by(apps, sources or (), partitions=settings.partitions, replication=settings.replication)
    return BrokerQuestions(admin_properties(settings)), wanted


def _plan(broker: "BrokerQuestions", wanted: "Wanted", there: "Mapping[str, Topic]") -> "list[Step]":
    from packhorse.processor.topics.plan import plan as plan_steps

    return plan_steps(wanted, there, default_max_bytes=broker.default_max_message_bytes())


def _show(
    steps: "list[Step]", wanted: "Wanted", *, as_json: bool, done: bool, left: "Sequence[str]" = ()
) -> None:
    if as_json:
        import json

        told = [
            {"act": str(step).partition(" ")[0], "topic": step.topic, "text": str(step)} for step in steps
        ]
        typer.echo(
            json.dumps({"topics": list(wanted.names), "steps": told, "leftovers": list(left), "done": done})
        )
        return
    for line in (*map(str, steps), *left):
        typer.echo(line)
    if not steps:
        typer.echo(f"{len(wanted.names)} topics are as they must be")
