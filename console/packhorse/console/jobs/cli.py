"""`packhorse job`: see how jobs stand, take them back, send them again, and say what became of an outside effect."""

from typing import Annotated
from uuid import UUID

import typer

from packhorse.console import options
from packhorse.console.jobs import looking
from packhorse.console.jobs.looking import JobId
from packhorse.console.quarantine.restoring.cli import each_alone
from packhorse.schemas import flags

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="See how jobs stand, take them back, send them again, and say what became of their outside effects.",
)

JobIds = Annotated[list[UUID], typer.Argument(metavar="ID...", help="The jobs' ids.")]

app.command("show")(looking.show)
app.command("list")(looking.list_jobs)


@app.command()
def cancel(
    job_id: JobId,
    why: options.Why,
    yes: options.Yes = False,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Take a job back, on the record: at once where nobody runs it, else its worker is asked to stop.

    A worker hears it with its next heartbeat, and the job stops where its code asks whether it should; what it has done by
    then stays done. One that rests until a person decides is refused (exit code 2): packhorse quarantine discard ID gives it up. One
    that has ended stays as it is (exit code 5).

    [bold]Example[/]
      packhorse job cancel 019b76da-a800-7000-8000-000000000000 --why "the customer does not need it any more"
    """
    from packhorse.console.jobs.shell import run_cancel

    settings = options.settings_of(database_url, database_schema)
    run_cancel(job_id, settings, why=why, yes=yes, claimed=actor, as_json=as_json)


@app.command()
def redrive(
    job_ids: JobIds,
    why: options.Why,
    yes: options.Yes = False,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    namespace: flags.Namespace = None,
) -> None:
    """
    Send jobs back that failed for good or are uncertain, on the record: preview, confirm, then exactly that, once.

    It is the redrive of the job's message: a running processor of its group sends that, and the job's next attempt goes on from
    its checkpoint; steps and effects that are done are not done again. One that is accepted and whose message neither outbox nor
    inbox know is written anew under its id; that takes the namespace. Each job stands for itself: what is refused for one keeps
    nothing from the others (exit code 1). Many of them: packhorse redrive preview --type NAME.

    [bold]Example[/]
      packhorse job redrive 019b76da-a800-7000-8000-000000000000 --why "fixed in 1.4.2"
    """
    from packhorse.console.jobs.shell import redrive_one
    from packhorse.console.quarantine.shell import service_for_act

    settings = options.settings_of(database_url, database_schema, namespace=namespace)
    with service_for_act(
        settings, why=why, yes=yes, claimed=actor, as_json=as_json, act="redrive"
    ) as service:
        each_alone(
            job_ids,
            lambda job_id: redrive_one(service, job_id, why=why, asks=not yes, told=not as_json),
            as_json=as_json,
        )


@app.command()
def resolve(
    job_id: JobId,
    why: options.Why,
    happened: Annotated[bool, typer.Option("--happened", help="You know that it has happened.")] = False,
    did_not_happen: Annotated[
        bool, typer.Option("--did-not-happen", help="You know that it has not, and will not any more.")
    ] = False,
    effect: Annotated[
        str | None,
        typer.Option("--effect", metavar="KEY", help="Which effect, where several are in doubt."),
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option(
            "--answer",
            metavar="JSON",
            help="What the outside system answered, as the job's code is to see it.",
        ),
    ] = None,
    yes: options.Yes = False,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Say whether an outside effect in doubt has happened, on the record; when none is in doubt any more, the job goes on by itself.

    Ask the outside system first, by the effect's idempotency key, which `packhorse job show` prints. With --happened the effect
    is not called again, and the job's code gets the answer that you give, or none; with --did-not-happen it is called again with
    the same idempotency key, and that can be said only once the call's own time-out is over.

    [bold]Example[/]
      packhorse job resolve 019b76da-a800-7000-8000-000000000000 --happened --answer '{"charge": "ch_17"}' --why "seen at the bank"
      packhorse job resolve 019b76da-a800-7000-8000-000000000000 --did-not-happen --effect mail-3 --why "not in the outbox there"
    """
    from packhorse.console.jobs.deciding import Verdict
    from packhorse.console.jobs.shell import Decision, answer_from, run_resolve
    from packhorse.core.errors import UsageError

    if happened == did_not_happen:
        raise UsageError("say what you know: --happened or --did-not-happen, and not both")
    if answer is not None and not happened:
        raise UsageError("--answer goes with --happened: what has not happened was not answered")
    decision = Decision(
        job_id=job_id,
        verdict=Verdict.HAPPENED if happened else Verdict.DID_NOT_HAPPEN,
        effect=effect,
        answer=answer_from(answer),
        why=why,
    )
    run_resolve(
        decision, options.settings_of(database_url, database_schema), yes=yes, claimed=actor, as_json=as_json
    )
