"""
What the settings models of all parts share: where values come from. The systems that they name stand in `systems.py`.

It lives here because this is the lowest room that may use libraries. Sources, the first that has a value wins: the
command's flags, the environment (`PACKHORSE_NAME`, and `PACKHORSE_NAME_FILE` for the path of a file that holds it),
`packhorse.toml` (or the file that `PACKHORSE_CONFIG` names), the default.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from packhorse.core.errors import SettingsError
from packhorse.core.redaction import holds_secret, secrets_of, without_secrets

PREFIX = "PACKHORSE_"
DEFAULT_FILE = "packhorse.toml"
SECTIONS = frozenset({"console", "migrate", "processor", "relay", "schemas", "topics"})
"""The parts' tables in packhorse.toml, so that each part knows a mistyped one."""
_USER_INFO = re.compile(r"//[^/\s]*@")  # a token may stand there alone, without a colon


class PartSettings(BaseSettings):
    """
    Be the base of one part's settings: frozen, unknown names refused.

    Fields named in `shared` stand at the top of packhorse.toml and are `PACKHORSE_<FIELD>`; the others stand in the table
    of the part and are `PACKHORSE_<SECTION>_<FIELD>`. With `partial` it is another part's table, of which only these fields are
    known here, and that part looks for names that nobody knows.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    section: ClassVar[str] = ""
    partial: ClassVar[bool] = False
    shared: ClassVar[frozenset[str]] = frozenset(
        {
            "database_url",
            "database_schema",
            "kafka_bootstrap_servers",
            "kafka_properties",
            "kafka_sasl_password",
            "registry_url",
            "registry_user",
            "registry_password",
            "registry_timeout",
            "namespace",
        }
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read flags alone here; `load` merges the other sources so that it can name where a value came from."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @classmethod
    def load(
        cls,
        flags: Mapping[str, Any] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        file: Path | None = None,
    ) -> Self:
        """
        Return the settings from *flags* (None means not given), the environment and packhorse.toml, in that order.

        Raises:
            SettingsError: A value is missing or not allowed; names the setting, where it came from and what is allowed.
        """
        env = os.environ if environ is None else environ
        values, origins = _merge(cls, flags or {}, env, _read_file(env, file))
        try:
            return cls(**values)
        except ValidationError as error:
            raise SettingsError(_explain(cls, error, values, origins)) from None

    @classmethod
    def variable(cls, field: str) -> str:
        """Return the environment variable of *field*."""
        middle = "" if field in cls.shared or not cls.section else f"{cls.section.upper()}_"
        return f"{PREFIX}{middle}{field.upper()}"

    def secrets(self) -> frozenset[str]:
        """Return the secret values in these settings, for logs and error texts to leave out."""
        found: set[str] = set()
        for field in type(self).model_fields:
            value = getattr(self, field)
            inner = value if isinstance(value, Mapping) else {field: value}
            for name, item in inner.items():
                if item is not None:
                    found |= secrets_of(
                        name, item.get_secret_value() if isinstance(item, SecretStr) else str(item)
                    )
        return frozenset(found)


def _read_file(env: Mapping[str, str], file: Path | None) -> Mapping[str, Any]:
    named = file or (Path(env[f"{PREFIX}CONFIG"]) if env.get(f"{PREFIX}CONFIG") else None)
    path = named or Path(DEFAULT_FILE)
    if named is None and not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"settings file {path}: {error.strerror}; name a readable file in {PREFIX}CONFIG"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file {path} is no TOML: {error}") from None


def _merge(
    cls: type[PartSettings], flags: Mapping[str, Any], env: Mapping[str, str], file: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    table = _table(cls, file)
    _check_environment(cls, env)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for field in cls.model_fields:
        variable = cls.variable(field)
        source = file if field in cls.shared or not cls.section else table
        if flags.get(field) is not None:
            _refuse_secret(field, variable, str(flags[field]))
            values[field], origins[field] = flags[field], f"flag --{field.replace('_', '-')}"
        elif variable in env:
            values[field], origins[field] = _given(variable, env), variable
        elif f"{variable}_FILE" in env:
            values[field], origins[field] = _secret_file(f"{variable}_FILE", env), f"{variable}_FILE"
        elif field in source:
            named = field if source is file else f"[{cls.section}] {field}"
            values[field], origins[field] = source[field], f"{named} in the settings file"
    return values, origins


def _table(cls: type[PartSettings], file: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part's own table of the settings file, after a look for names that nobody knows."""
    table = file.get(cls.section, {}) if cls.section else {}
    if not isinstance(table, Mapping):
        raise SettingsError(f"{cls.section} in the settings file is no table; write [{cls.section}]")
    own = set(cls.model_fields) - cls.shared
    if not cls.partial and (unknown := sorted(set(table) - own)):
        raise SettingsError(
            f"[{cls.section}] {unknown[0]} in the settings file is not known; known are {', '.join(sorted(own)) or 'none'}"
        )
    _check_top(file, known=cls.shared | (set() if cls.section else own), tables=SECTIONS | {cls.section})
    return table


def _check_environment(cls: type[PartSettings], env: Mapping[str, str]) -> None:
    """Look for variables of the part's own that nobody knows; of others', `packhorse doctor` tells, for strangers may use the prefix too."""
    own = {cls.variable(field) for field in set(cls.model_fields) - cls.shared} if cls.section else set()
    allowed = own | {f"{variable}_FILE" for variable in own}
    mine = f"{PREFIX}{cls.section.upper()}_"
    for name in sorted(set(env) - allowed) if cls.section and not cls.partial else ():
        if name.startswith(mine):
            near = difflib.get_close_matches(name, sorted(own), n=1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise SettingsError(
                f"{name} is set and not known; {meant}known are {', '.join(sorted(own)) or 'none'}"
            )


def _check_top(file: Mapping[str, Any], *, known: frozenset[str] | set[str], tables: frozenset[str]) -> None:
    """Look for names that nobody knows at the top of the file; what is in another part's table, that part looks at."""
    for name, value in sorted(file.items()):
        if isinstance(value, dict) and name not in known | tables:
            raise SettingsError(
                f"table [{name}] in the settings file is not known; known are "
                f"{', '.join(f'[{one}]' for one in sorted(SECTIONS | {'kafka_properties'}))}"
            )
        if not isinstance(value, dict) and name not in known:
            raise SettingsError(
                f"{name} at the top of the settings file is not known; known there are {', '.join(sorted(known))}"
            )


def _given(variable: str, env: Mapping[str, str]) -> str:
    if not env[variable].strip():
        raise SettingsError(f"{variable} is set and empty; give it a value, or unset it")
    return env[variable]


def _refuse_secret(field: str, variable: str, value: str) -> None:
    if holds_secret(variable, value):
        raise SettingsError(
            f"flag --{field.replace('_', '-')} holds a password, and the process list shows flags to everybody; pass it as "
            f"{variable} or {variable}_FILE"
        )


def _secret_file(variable: str, env: Mapping[str, str]) -> str:
    try:
        return Path(_given(variable, env)).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise SettingsError(
            f"{variable}={env[variable]}: {reason}; name a readable file that holds the value"
        ) from None


def _explain(
    cls: type[PartSettings], error: ValidationError, values: Mapping[str, Any], origins: Mapping[str, str]
) -> str:
    told: dict[str, None] = {}
    for item in error.errors(include_input=False, include_url=False):
        field = str(item["loc"][0]) if item["loc"] else ""
        where = origins.get(field, cls.variable(field))
        if item["type"] == "missing":
            told[
                f"{cls.variable(field)} is not set; set it, {cls.variable(field)}_FILE or {field} in {DEFAULT_FILE}"
            ] = None
            continue
        if (
            cls.model_fields.get(field) is not None and len(item["loc"]) > 1
        ):  # one of a table's; it may be a secret
            told[f"{where}: {item['loc'][1]} is not allowed; text, a number, true or false is needed"] = None
            continue
        given = "" if _hidden(cls, field) or field not in values else f" = {_shown(values[field])!r}"
        told[f"{where}{given}: {item['msg'].removeprefix('Value error, ')}"] = None
    return "; ".join(told)


def _shown(value: object) -> str:
    return _USER_INFO.sub("//***@", without_secrets(str(value)))


def _hidden(cls: type[PartSettings], field: str) -> bool:
    """Say whether a value must not be shown: secrets, and properties, among which anything may be one."""
    return (
        field not in cls.model_fields
        or "Secret" in str(cls.model_fields[field].annotation)
        or not cls.model_fields[field].repr
    )
