"""`packhorse purge`: erase what is kept of a person."""

from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.console import options
from packhorse.schemas import flags
from packhorse.schemas.asking import check_answerable, confirmed

if TYPE_CHECKING:
    from packhorse.console.purging.model import Report, Wanted
    from packhorse.console.purging.service import Erasers
    from packhorse.processor.erasing import Subject

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")


@app.command()
def purge(
    *,
    why: Annotated[
        str | None,
        typer.Option("--why", metavar="TEXT", help="The reason, for the record. No personal data."),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject", metavar="KEY", help="Whose messages: their key; - reads it from standard input."
        ),
    ] = None,
    subject_hex: Annotated[
        str | None,
        typer.Option(
            "--subject-hex",
            metavar="HEX",
            help="Or a key that is no text in UTF-8: its bytes, in hexadecimal; - too.",
        ),
    ] = None,
    tagged: Annotated[
        str | None,
        typer.Option(
            "--field",
            metavar="NAME=VALUE",
            help="Or by the value of a field that its schema marks personal; - reads it from standard input.",
        ),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", metavar="NAME", help="Of this source topic alone; needs the namespace."),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="NAME", help="Of this group alone; leaves the outbox.")
    ] = None,
    applications: Annotated[
        list[str] | None,
        typer.Option(
            "--app", metavar="MODULE:APP", help="Also what this application's erasers erase; may be repeated."
        ),
    ] = None,
    unpublished: Annotated[
        bool,
        typer.Option(
            "--unpublished-too", help="Also rows that are not published yet: their messages are lost."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what there is, and change nothing.")
    ] = False,
    yes: options.Yes = False,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    kafka_bootstrap_servers: flags.Broker = None,
    namespace: flags.Namespace = None,
) -> None:
    """
    Erase what the tables keep of a person, and say what stays on topics and how to deal with it.

    By key or by a field: rows of the outbox that are published, followers, retries, quarantine, texts of errors. What waits is
    given up, and what stands behind it in its key goes on. It works in portions, each on the record without a name; broken off, run
    it again. Exit code 1 says that rows of the outbox are left (not published yet, or held), or that messages could not be looked into for a
    field, since this database does not know their schema; with --dry-run, that it would be so. It can't be undone.

    [bold]Example[/]
      packhorse purge --subject N14228 --dry-run
      printf %s "passenger.email=ann@example.org" | packhorse purge --field - --app figures.app:app --why "request 4711" --yes
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell_json
    from packhorse.console.purging.render import report_json

    reason = _checked(why, as_json=as_json, yes=yes, dry_run=dry_run)
    settings = options.settings_of(
        database_url, database_schema, broker=kafka_bootstrap_servers, namespace=namespace
    )
    wanted = _wanted(
        _subject(subject, subject_hex, tagged), topic, group, settings.namespace, unpublished=unpublished
    )
    erasers = _erasers(applications or [])
    with service_of(settings, claimed=actor) as service:
        if dry_run or not yes:
            report = service.purging.preview(wanted)
            _tell(report, dry=True, as_json=as_json)
        if not dry_run:
            if not yes:
                confirmed("Erase it? It can't be undone.", err=True)
            report = service.purging.purge(
                wanted, why=reason, erasers=erasers, heard=_ignored if as_json else _heard
            )
            _tell(report, dry=False, as_json=as_json)
    if as_json:
        tell_json(report_json(report))
    raise typer.Exit(0 if report.is_whole else 1)


def _checked(why: str | None, *, as_json: bool, yes: bool, dry_run: bool) -> str:
    from packhorse.core.acts import checked_why
    from packhorse.core.errors import UsageError

    check_answerable(as_json=as_json, yes=yes or dry_run, act="purge", otherwise=", or --dry-run")
    if why is not None:
        return checked_why(why)
    if not dry_run:
        raise UsageError("--why is missing: a purge is on the record with its reason; --dry-run needs none")
    return ""


def _tell(report: "Report", *, dry: bool, as_json: bool) -> None:
    from packhorse.console.output import tell
    from packhorse.console.purging.render import report_lines

    for line in () if as_json else report_lines(report, dry=dry):
        tell(line)


def _heard(line: str) -> None:
    typer.echo(line, err=True)


def _wanted(
    subject: "Subject",
    topic: str | None,
    group: str | None,
    namespace: str | None,
    *,
    unpublished: bool,
) -> "Wanted":
    from packhorse.console.purging.model import Wanted
    from packhorse.core.errors import SettingsError, UsageError

    if topic is not None and group is None and namespace is None:
        raise SettingsError(
            "--topic needs PACKHORSE_NAMESPACE, to know what the outbox calls the topic; or add --group"
        )
    if topic is not None and namespace is not None and not topic.startswith(f"{namespace}."):
        raise UsageError(f"topic {topic} is not of the namespace {namespace}")
    aggregatetype = None if topic is None or namespace is None else topic.removeprefix(f"{namespace}.")
    return Wanted(
        subject=subject, topic=topic, aggregatetype=aggregatetype, group=group, unpublished=unpublished
    )


def _subject(subject: str | None, subject_hex: str | None, tagged: str | None) -> "Subject":
    from packhorse.console.options import key_of
    from packhorse.core.errors import UsageError
    from packhorse.processor.erasing import Subject

    if sum(given is not None for given in (subject, subject_hex, tagged)) != 1:
        raise UsageError("give one of --subject and --field")
    if tagged is None:
        key = key_of(_given(subject), _given(subject_hex), flag="--subject")
        assert key is not None
        return Subject.of_key(key)
    path, equals, value = (_given(tagged) or "").partition("=")
    if not equals or not path:
        raise UsageError("--field is NAME=VALUE, such as passenger.email=somebody@example.org")
    return Subject(path=path, value=value)


def _given(text: str | None) -> str | None:
    if text != "-":
        return text
    import sys

    return sys.stdin.read().rstrip("\r\n")


def _erasers(targets: list[str]) -> "Erasers":
    from packhorse.core.errors import UsageError
    from packhorse.processor.loading import load

    found = []
    for target in targets:
        if not (erasers := load(target).erasers):
            raise UsageError(f"{target} declares no eraser; add one with @app.eraser")
        found += [(f"{target} {eraser.__name__}", eraser) for eraser in erasers]
    return found


def _ignored(line: str) -> None:
    del line
