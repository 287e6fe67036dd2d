"""`packhorse doctor`: check everything that Packhorse stands on."""

from pathlib import Path
from typing import Annotated

import typer

from packhorse.schemas import flags

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "failed": ("✗", "red"), "skipped": ("–", "dim")}


@app.command()
def doctor(
    avro_dir: Annotated[
        Path | None,
        typer.Option(
            "--avro-dir", metavar="FOLDER", help="Check that the schemas of this folder are registered."
        ),
    ] = None,
    application: Annotated[
        str | None,
        typer.Option(
            "--app", metavar="MODULE:APP", help="Check the topics of this processor against its plan."
        ),
    ] = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    kafka_bootstrap_servers: flags.Broker = None,
    registry_url: flags.Registry = None,
) -> None:
    """
    Check database, tables, relay, broker, topics, registry and settings; each failure with its cause and the next step.

    Nothing is changed. Every check is bounded in time (PACKHORSE_CONSOLE_TIMEOUT, 5 s for one question), and one that fails
    hides none of the others. What is not set is skipped. Exit code 1 when a check failed; warnings do not fail.

    [bold]Example[/]
      packhorse doctor
      packhorse doctor --avro-dir schemas/avro --app figures.app:app --json
    """
    from packhorse.console.doctor.compose import checks
    from packhorse.console.doctor.findings import all_well
    from packhorse.console.doctor.runner import run_checks
    from packhorse.console.output import said, sheet, tell_json, terminal
    from packhorse.console.settings import DoctorSettings

    settings = DoctorSettings.load(
        {
            "database_url": database_url,
            "database_schema": database_schema,
            "kafka_bootstrap_servers": kafka_bootstrap_servers,
            "registry_url": registry_url,
        }
    )
    made = run_checks(checks(settings, avro=avro_dir, app=application), seconds=4 * settings.timeout)
    found = [finding.without(settings.secrets()) for finding in made]
    well = all_well(found)
    if as_json:
        tell_json({"well": well, "checks": found})
    else:
        width = max(len(finding.check) for finding in found)
        for finding in found:
            mark, style = _MARKS[finding.verdict.value]
            lines = [(f"{mark} {finding.check:<{width}}", said(finding.found, style))]
            pairs = (("  why", finding.cause), ("  next", finding.next_step))
            lines += [(f"{label:<{width + 2}}", said(text)) for label, text in pairs if text is not None]
            terminal().print(sheet(lines))
    if not well:
        raise typer.Exit(1)
