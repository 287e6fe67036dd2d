"""`packhorse schemas`: check, register, generate, list."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from packhorse.schemas.flags import Json, Registry, Schema, Url

if TYPE_CHECKING:
    from packhorse.schemas.compatibility import Finding
    from packhorse.schemas.folder import Folder, Version
    from packhorse.schemas.options import SchemasSettings
    from packhorse.schemas.register import Outcome

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Check Avro schemas, register them, and generate message classes.",
)

AvroDir = Annotated[
    Path | None,
    typer.Option(
        "--avro-dir", help="Folder of <subject>/v<N>.avsc; schemas/avro. [dim]PACKHORSE_SCHEMAS_AVRO_DIR[/]"
    ),
]
Compatibility = Annotated[
    str | None,
    typer.Option(
        "--compatibility", help="backward, forward or full; backward. [dim]PACKHORSE_SCHEMAS_COMPATIBILITY[/]"
    ),
]


@app.command()
def check(avro_dir: AvroDir = None, compatibility: Compatibility = None, as_json: Json = False) -> None:
    """
    Check each version against all earlier ones of its subject, offline; exit 1 when one can't be read.

    [bold]Example[/]: packhorse schemas check --avro-dir schemas/avro
    """
    from packhorse.core.errors import SchemaError
    from packhorse.schemas.options import SchemasSettings

    settings = SchemasSettings.load({"avro_dir": avro_dir, "compatibility": compatibility})
    try:
        folder, findings = _checked(settings)
    except SchemaError as error:
        typer.echo(f"packhorse: {error}", err=True)
        raise typer.Exit(1) from None
    if as_json:
        found = [_as_json(finding) for finding in findings]
        typer.echo(json.dumps({"versions": len(folder.versions), "compatible": not found, "findings": found}))
    elif findings:
        _complain(findings)
    else:
        subjects = len(folder.subjects())
        typer.echo(
            f"{len(folder.versions)} versions of {subjects} subjects: all {settings.compatibility.value} compatible"
        )
    raise typer.Exit(1 if findings else 0)


@app.command()
def register(
    avro_dir: AvroDir = None,
    registry_url: Registry = None,
    database_url: Url = None,
    database_schema: Schema = None,
    compatibility: Compatibility = None,
    notices: Annotated[
        str | None,
        typer.Option(
            "--notices",
            metavar="NAMESPACE",
            help="Also the schema of Packhorse's own notices, for this namespace.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """
    Register all versions in the registry, and write their ids into the database's table. Safe to repeat.

    Nothing is registered while `packhorse schemas check` fails. The registry comes first: when it stops half-way, run it
    again. The schema of the reference that is every job's message is Packhorse's own, and registered along.

    With --notices, processors write a message when a group of failures needs a person; see docs/how-to/tell-contacts.md.

    [bold]Example[/]: packhorse schemas register --registry-url http://registry:8081
    """
    from packhorse.schemas.options import RegisterSettings
    from packhorse.schemas.postgres import SchemaTable
    from packhorse.schemas.register import register as registering
    from packhorse.schemas.registry import Registry
    from packhorse.schemas.shipped import jobs
    from packhorse.schemas.shipped import notices as shipped

    settings = RegisterSettings.load(
        {
            "avro_dir": avro_dir,
            "registry_url": registry_url,
            "database_url": database_url,
            "database_schema": database_schema,
            "compatibility": compatibility,
        }
    )
    folder, findings = _checked(settings)
    if findings:
        _complain(findings)
        raise typer.Exit(1)
    folders = [folder, jobs()] if notices is None else [folder, jobs(), shipped(notices)]
    done: list[dict[str, Any]] = []
    try:
        with SchemaTable(settings) as table, Registry(settings) as registry:
            for outcome in (one for each in folders for one in registering(each, registry, table)):
                done.append(_as_done(outcome))
                if not as_json:
                    _print_done(outcome)
    finally:  # what was done before an error is done
        if as_json:
            typer.echo(json.dumps({"schemas": done}))


@app.command()
def generate(
    avro_dir: AvroDir = None,
    messages_file: Annotated[
        Path | None,
        typer.Option("--messages-file", help="Python file to write. [dim]PACKHORSE_SCHEMAS_MESSAGES_FILE[/]"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="SUBJECT", help="Only this message type. Repeatable."),
    ] = None,
    only_check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 when the file is stale.")
    ] = False,
) -> None:
    """
    Write the newest version of each message type as a typed, frozen dataclass into one Python file.

    [bold]Example[/]: packhorse schemas generate --messages-file shop/messages.py
    """
    from packhorse.core.errors import SettingsError
    from packhorse.schemas.folder import load_folder
    from packhorse.schemas.generate import generate as generated
    from packhorse.schemas.generate import newest
    from packhorse.schemas.options import SchemasSettings

    settings = SchemasSettings.load({"avro_dir": avro_dir, "messages_file": messages_file})
    if settings.messages_file is None:
        raise SettingsError(
            "no file to write is named; pass --messages-file, or set PACKHORSE_SCHEMAS_MESSAGES_FILE or "
            "messages_file in [schemas] of packhorse.toml"
        )
    versions = newest(load_folder(settings.avro_dir), only or ())
    text = generated(versions)
    target = settings.messages_file
    fresh = target.is_file() and target.read_bytes() == text.encode()
    if only_check and not fresh:
        typer.echo(f"packhorse: {target} is stale; run `packhorse schemas generate`", err=True)
        raise typer.Exit(1)
    if not fresh:
        _replace(target, text)
    typer.echo(f"{target}: {len(versions)} message types, {'unchanged' if fresh else 'written'}")


@app.command(name="list")
def list_(
    avro_dir: AvroDir = None,
    ids: Annotated[
        bool, typer.Option("--ids", help="Show the ids that the database's table has, too.")
    ] = False,
    database_url: Url = None,
    as_json: Json = False,
) -> None:
    """
    List the folder's subjects and versions.

    [bold]Example[/]: packhorse schemas list --ids
    """
    from packhorse.schemas.folder import load_folder
    from packhorse.schemas.options import ListSettings, SchemasSettings
    from packhorse.schemas.postgres import SchemaTable

    settings = SchemasSettings.load({"avro_dir": avro_dir})
    folder = load_folder(settings.avro_dir)
    rows: dict[tuple[str, int], int] = {}
    if ids:
        with SchemaTable(ListSettings.load({"avro_dir": avro_dir, "database_url": database_url})) as table:
            rows = {key: row.schema_id for key, row in table.rows().items()}
    lines = [_line(version, rows) for version in folder.versions]
    if as_json:
        typer.echo(json.dumps({"schemas": lines}))
    else:
        _print_table(lines, ids=ids)


def _line(version: "Version", ids: dict[tuple[str, int], int]) -> dict[str, Any]:
    from packhorse.schemas.redaction import personal_paths

    return {
        "subject": version.subject,
        "version": version.version,
        "id": ids.get((version.subject, version.version)),
        "references": [f"{one.subject} v{one.version}" for one in version.references],
        "personal": list(personal_paths(version.schema)),
        "fingerprint": version.fingerprint,
        "file": str(version.path),
    }


def _print_table(lines: list[dict[str, Any]], *, ids: bool) -> None:
    rows = [("subject", "version", "id", "personal fields", "refers to")]
    for line in lines:
        schema_id = "not registered" if line["id"] is None else str(line["id"])
        personal, references = ", ".join(line["personal"]), ", ".join(line["references"])
        rows.append((line["subject"], str(line["version"]), schema_id if ids else "", personal, references))
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _checked(settings: "SchemasSettings") -> "tuple[Folder, list[Finding]]":
    from packhorse.schemas.compatibility import check as checking
    from packhorse.schemas.folder import load_folder

    folder = load_folder(settings.avro_dir)
    return folder, checking(folder, settings.compatibility)


def _complain(findings: "list[Finding]") -> None:
    from packhorse.schemas.compatibility import MARK_LOST

    for finding in findings:
        typer.echo(f"packhorse: {finding}", err=True)
    if all(finding.rule == MARK_LOST for finding in findings):
        return
    typer.echo(
        "packhorse: a breaking change needs a new message type or topic; docs/how-to/breaking-change.md says how",
        err=True,
    )


def _as_json(finding: "Finding") -> dict[str, Any]:
    return {
        "subject": finding.subject,
        "reader": finding.reader,
        "writer": finding.writer,
        "path": finding.path,
        "rule": finding.rule,
        "text": finding.text,
    }


def _as_done(outcome: "Outcome") -> dict[str, Any]:
    return {
        "subject": outcome.version.subject,
        "version": outcome.version.version,
        "id": outcome.schema_id,
        "done": outcome.done.value,
        "note": outcome.note,
    }


def _print_done(outcome: "Outcome") -> None:
    note = f" ({outcome.note})" if outcome.note else ""
    one = outcome.version
    typer.echo(f"{outcome.done.value:10} {one.subject} v{one.version} → id {outcome.schema_id}{note}")


def _replace(target: Path, text: str) -> None:
    """Write *text* beside *target*, then put it in its place: whoever reads it sees the old file or the new."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
