"""
Write docs/reference/cli.md, settings.md, errors.md and jobs.md from the command tree, the settings models, the defaults for errors and
the table of states.

    python docs/reference/generate.py           writes them
    python docs/reference/generate.py --check   says which are not current, and fails
"""

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from rich.text import Text

from packhorse.cli.exits import ExitCode
from packhorse.cli.lazy import load
from packhorse.cli.mounts import MOUNTS, Panel
from packhorse.console.doctor.compose import settings_models
from packhorse.core.jobs import ALLOWED, JobState
from packhorse.processor.running.defaults import CLASSES, SQLSTATES, STATUSES, Rule
from packhorse.schemas.settings import PartSettings
from packhorse.schemas.systems import DatabaseSettings, KafkaSettings, NamespaceSettings, RegistrySettings

HERE = Path(__file__).parent
NOTE = "<!-- Written by docs/reference/generate.py; change the code instead. -->\n"
SHARED_TABLE = "top of the file"
MIXINS = (DatabaseSettings, KafkaSettings, NamespaceSettings, RegistrySettings)
_CLI_PROSE = """\
Each command takes its settings from flags, the environment and packhorse.toml, in that order: see [settings](settings.md).
Secrets are never flags. Whatever a message carries is printed with control characters escaped.

`packhorse --config FILE …` reads another settings file; `packhorse --log-format json …` makes daemons log one JSON object a
line. `packhorse --help` imports no part and no driver: 0.15 to 0.2 s on a two-core machine.
"""
_ERRORS_PROSE = """\
What becomes of a message whose handler ends with an error depends on the error's class:

- **temporary**: tried again after the next delay of the handler's ladder, charged an attempt
- **permanent**: quarantine at once
- **contention**: the transaction runs again, not charged; alone, five times, then charged
- **infrastructure**: reading pauses, nothing is charged; while the database is well without the message, it is charged in the end

The first of these decides:

1. The lane's own connection is gone: infrastructure, whatever was raised.
2. What the handler raises on purpose: `Skip`, `Quarantine`, `Retry`, `Later`.
3. `down=` or `permanent=` name the very class of the error, or of the driver's error that it wraps.
4. Contention, by the tables below.
5. `down=` names a class that it is of, or that what it was raised from is of; unless `permanent=` names a nearer one.
6. Infrastructure, by the tables below.
7. `permanent=` names a class that it, or the driver's error that it wraps, is of.
8. The other defaults below.

Of an `ExceptionGroup` (a `TaskGroup`) the mildest member decides. Contention and infrastructure count wherever they stand in the
chain of causes; permanent does not: who raises an error of their own from another has thought about it.
An error is permanent by default only where the database or the server refuses the values themselves, whatever other messages do;
a mistake costs there a redrive, elsewhere some attempts.
"""
_SETTINGS_PROSE = """\
A setting comes from the command's flag, else from the environment, else from `packhorse.toml` in the working folder (or the
file that `--config` or `PACKHORSE_CONFIG` names), else it has its default. Instead of `PACKHORSE_X`, `PACKHORSE_X_FILE` may
name a file that holds the value: use that for secrets. A table of properties is a JSON object in the environment.
Durations are in seconds. A part refuses what it does not know in its own table or under its own prefix; `packhorse doctor` finds
all settings that are mistyped, refused or given twice.

`PACKHORSE_LOG_FORMAT` is `people` or `json`, as `--log-format` sets it.
"""


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each command below *command* that does something, with what a person types for it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name in inner:
        yield from commands(inner[name], f"{path} {name}")


def cli_page() -> str:
    """Return the reference of the command line."""
    parts = [
        "# The command line\n",
        NOTE,
        _CLI_PROSE,
        "## Exit codes\n",
        _table(("code", "meaning"), [(str(code.value), code.meaning) for code in ExitCode]),
    ]
    for panel in Panel:
        parts.append(f"## {panel.value}\n")
        for mount in MOUNTS:
            if mount.panel is panel:
                found = commands(load(mount), f"packhorse {mount.name}")
                parts += [_command(path, each) for path, each in found]
    return "\n".join(parts)


def errors_page() -> str:
    """Return the reference of what errors of handlers are taken for."""
    return "\n".join(
        [
            "# Errors of handlers\n",
            NOTE,
            _ERRORS_PROSE,
            "## By SQLSTATE\n",
            "The longest start decides. What is not named is temporary. psycopg, asyncpg, psycopg2, and what SQLAlchemy wraps.\n",
            _rules(SQLSTATES),
            "## By HTTP status\n",
            "Errors of httpx, requests, aiohttp and urllib that hold an answer.\n",
            _rules(STATUSES),
            "## By class\n",
            _rules(CLASSES, code=True),
        ]
    )


_JOBS_PROSE = """\
What may follow what. The database refuses every other change, whoever makes it, and writes each one into `job_transition` with its
time, actor and reason. "Accepted" is not "done". How to submit jobs: [submit jobs](../how-to/submit-jobs.md); how to run them:
[write a job](../how-to/write-a-job.md).
"""


def jobs_page() -> str:
    """Return the reference of the states of jobs, drawn from the table that the code decides by."""
    lines = ["stateDiagram-v2"]
    for before, found in ALLOWED.items():
        lines += [f"    {before or '[*]'} --> {after}" for after in JobState if after in found]
    lines += [f"    {state} --> [*]" for state in JobState if not ALLOWED[state]]
    rows = [(f"`{state}`", _meaning_of(state), _after(state)) for state in JobState]
    return "\n".join(
        [
            "# States of jobs\n",
            NOTE,
            _JOBS_PROSE,
            "```mermaid\n" + "\n".join(lines) + "\n```\n",
            _table(("state", "meaning", "may become"), rows),
        ]
    )


def _after(state: JobState) -> str:
    return ", ".join(f"`{one}`" for one in JobState if one in ALLOWED[state]) or "final"


def _meaning_of(state: JobState) -> str:
    """Return what the code says beside the state."""
    source = inspect.getsource(JobState)
    found = re.search(rf'^ +{state.name} = [^\n]*\n +"""(.*?)"""', source, re.MULTILINE | re.DOTALL)
    return _escaped(" ".join(found[1].split())) if found else ""


def _rules(rules: Sequence[Rule], *, code: bool = False) -> str:
    def shown(known_by: str) -> str:
        return (
            ", ".join(f"`{one}`" for one in known_by.split(", "))
            if code and known_by != "any other"
            else known_by
        )

    return _table(
        ("error", "class", "says, and why"),
        [(shown(r.known_by), r.means.value, _escaped(r.why)) for r in rules],
    )


def example_of(command: Any) -> str | None:
    """Return the lines of the example in a command's help; None without one."""
    _, example = _split(command)
    return example


def settings_page() -> str:
    """Return the reference of the settings."""
    shared = {name: row for model in MIXINS for name, row in _rows(model).items()}
    sections: dict[str, dict[str, tuple[str, ...]]] = {}
    for model in settings_models():
        rows = {name: row for name, row in _rows(model).items() if name not in model.shared}
        sections.setdefault(model.section, {}).update(rows)
    columns = ("variable", "in packhorse.toml", "default", "meaning")
    parts = [
        "# Settings\n",
        NOTE,
        _SETTINGS_PROSE,
        f"## Shared by all parts ({SHARED_TABLE})\n",
        _table(columns, [shared[name] for name in sorted(shared)]),
    ]
    for section in sorted(name for name, rows in sections.items() if rows):
        found = [sections[section][name] for name in sorted(sections[section])]
        parts += [f"## Table `[{section}]`\n", _table(columns, found)]
    return "\n".join(parts)


def _rows(model: type[BaseModel]) -> dict[str, tuple[str, ...]]:
    meanings = _meanings(model)
    variable = model.variable if issubclass(model, PartSettings) else PartSettings.variable
    rows: dict[str, tuple[str, ...]] = {}
    for name, field in model.model_fields.items():
        value = None if field.is_required() else field.get_default(call_default_factory=True)
        default = "required where it is used" if field.is_required() else _default(value)
        rows[name] = (f"`{variable(name)}`", f"`{name}`", default, meanings.get(name, ""))
    return rows


def _command(path: str, command: Any) -> str:
    prose, example = _split(command)
    rows = [
        _parameter(param)
        for param in command.params
        if param.name != "help" and not getattr(param, "hidden", False)
    ]
    parts = [f"### `{path}`\n", prose + "\n"]
    if rows:
        parts.append(_table(("argument or flag", "default", "meaning"), rows))
    if example:
        parts.append(f"```\n{example}\n```\n")
    return "\n".join(parts)


def _split(command: Any) -> tuple[str, str | None]:
    text = Text.from_markup(inspect.cleandoc(command.help or "")).plain
    prose, found, example = text.partition("Example")
    if not found:
        return text.strip(), None
    return prose.strip(), inspect.cleandoc(example.lstrip(":").strip("\n ")) or None


def _parameter(param: Any) -> tuple[str, str, str]:
    names = " / ".join(f"`{name}`" for name in [*param.opts, *param.secondary_opts])
    if param.param_type_name == "argument":
        names = f"`{param.metavar or param.name.upper()}`"
    elif param.metavar:
        names += f" {param.metavar}"
    default = "required" if param.required else _default(param.default)
    return names, default, _escaped(Text.from_markup(param.help or "").plain)


def _default(value: object) -> str:
    if value is None or value is False or value in ({}, [], ()) or callable(value):
        return ""
    shown = getattr(value, "value", value)
    return f"`{shown}`"


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """Return what the docstrings of *model* and what it is made of say about each field."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        doc = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
        _, _, attributes = doc.partition("Attributes:\n")
        for names, text in re.findall(r"^ {4}(\w[\w, ]*): (.*(?:\n {5,}.*)*)", attributes, re.MULTILINE):
            for name in names.split(", "):
                found[name] = _escaped(" ".join(text.split()))
    return found


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _escaped(text: str) -> str:
    """Escape what would end a cell or begin a tag; inside of code a "<" stands for itself."""
    pieces = text.replace("|", "\\|").split("`")
    return "`".join(piece if n % 2 else piece.replace("<", "&lt;") for n, piece in enumerate(pieces))


PAGES = {"cli.md": cli_page, "settings.md": settings_page, "errors.md": errors_page, "jobs.md": jobs_page}


def stale() -> list[str]:
    """Return the names of the pages that are not what the code says."""
    return [
        name
        for name, page in PAGES.items()
        if not (HERE / name).is_file() or (HERE / name).read_text(encoding="utf-8") != page()
    ]


def main() -> int:
    """Write the pages, or check them."""
    if "--check" in sys.argv[1:]:
        for name in (names := stale()):
            sys.stderr.write(f"docs/reference/{name} is not current; run python docs/reference/generate.py\n")
        return 1 if names else 0
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
