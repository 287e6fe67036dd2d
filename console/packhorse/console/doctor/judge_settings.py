"""Judge settings before anything is asked of the systems underneath. Pure but for the settings file's own reading."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packhorse.console.doctor.findings import Finding, failed, ok, warning
from packhorse.core.errors import SettingsError
from packhorse.schemas.settings import PREFIX, PartSettings

OURS = frozenset(
    PREFIX + name
    for name in ("CONFIG", "LOG_FORMAT", "TEST_STACK", "CACHE_DIR", "DEV_DIR", "DEV_POSTGRES_BIN", "APP")
)
"""Variables that belong to no part's model."""
_STAND_IN = {"database_url": "postgresql://localhost/x", "registry_url": "http://localhost:8081"}


Further = Mapping[type[PartSettings], Callable[[Any], object]]
"""What a part checks of its settings once they are read; raises SettingsError."""


def judge_settings(
    models: Iterable[type[PartSettings]],
    environ: Mapping[str, str],
    *,
    file: Path | None = None,
    further: Further | None = None,
) -> Iterator[Finding]:
    """Yield what is to be said about the environment and packhorse.toml, as every part's model reads them."""
    wanted = list(models)
    known = {model.variable(field) for model in wanted for field in model.model_fields}
    found = [
        *_twice(known, environ),
        *_unknown(
            known, environ, refused=tuple(f"{PREFIX}{m.section.upper()}_" for m in wanted if m.section)
        ),
        *_refused(wanted, environ, file, further or {}),
    ]
    yield from found or [ok("settings", "no setting is refused, unknown or given twice")]


def _twice(known: set[str], environ: Mapping[str, str]) -> Iterator[Finding]:
    for variable in sorted(known):
        if variable in environ and f"{variable}_FILE" in environ:
            yield failed(
                "settings",
                f"both {variable} and {variable}_FILE are set",
                cause=f"they contradict each other; {variable} is taken",
                next_step=f"unset {variable}, or {variable}_FILE",
            )


def _unknown(known: set[str], environ: Mapping[str, str], *, refused: tuple[str, ...]) -> Iterator[Finding]:
    """Yield what no part reads; what begins with *refused* a part refuses by itself, see `_refused`."""
    allowed = known | {f"{variable}_FILE" for variable in known} | OURS
    for variable in sorted(name for name in environ if name.startswith(PREFIX) and name not in allowed):
        if variable.startswith(refused):
            continue
        near = difflib.get_close_matches(variable, allowed, n=1)
        yield warning(
            "settings",
            f"{variable} is set and no part reads it",
            cause=f"mistyped for {near[0]}?" if near else "mistyped, or of another version",
            next_step="correct or unset it; docs/reference/settings.md lists all",
        )


def _refused(
    models: Iterable[type[PartSettings]], environ: Mapping[str, str], file: Path | None, further: Further
) -> Iterator[Finding]:
    told: set[str] = set()
    for model in models:
        text = _refusal(model, environ, file, further.get(model))
        if text is not None and text not in told:
            told.add(text)
            yield failed(
                "settings",
                text,
                cause=f"{model.__name__.removesuffix('Settings').lower()} does not start with it",
                next_step="set what is allowed; docs/reference/settings.md lists all",
            )


def _refusal(
    model: type[PartSettings],
    environ: Mapping[str, str],
    file: Path | None,
    check: Callable[[Any], object] | None,
) -> str | None:
    """Return why *model* refuses the settings; that something is not set is no contradiction."""
    stand_ins: dict[str, str] = {}
    while True:
        try:
            settings = model.load(stand_ins, environ=environ, file=file)
            if check is not None:
                check(settings)
        except SettingsError as error:
            text = str(error)
        else:
            return None
        missing = {name for name in model.model_fields if f"{model.variable(name)} is not set" in text} - set(
            stand_ins
        )
        if not missing:
            return text
        stand_ins |= {name: _STAND_IN.get(name, "x") for name in missing}
