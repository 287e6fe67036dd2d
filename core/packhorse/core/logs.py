"""
How the daemons log: one line a record, for people or as JSON; values go in as named fields, never as payloads or keys.

    log = logs.logger("relay")
    log.info("saved", rows=12, horizon="10:12:11")

A field's value is text, a number, a truth value or None. Every text passes redaction before it is written.
"""

import json
import logging
import os
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal, TextIO

from packhorse.core.redaction import without_secrets
from packhorse.core.text import inert

Value = str | int | float | bool | None
Form = Literal["people", "json"]
FORM_VARIABLE = "PACKHORSE_LOG_FORMAT"
_ROOT = "packhorse"
_FIELDS = "packhorse_fields"


class Log:
    """Write records with named fields under one name; costs next to nothing while the level is off."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, **fields: Value) -> None:
        """Write what only matters while looking for a fault."""
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Value) -> None:
        """Write what an operator wants to read the next day."""
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Value) -> None:
        """Write that something waits or was tried again."""
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Value) -> None:
        """Write that somebody should look."""
        self._write(logging.ERROR, event, fields)

    def _write(self, level: int, event: str, fields: Mapping[str, Value]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={_FIELDS: dict(fields)})


def logger(part: str) -> Log:
    """Return the log of *part*, e.g. "relay"."""
    return Log(logging.getLogger(f"{_ROOT}.{part}"))


def set_up(
    form: Form | None = None,
    *,
    level: str = "INFO",
    stream: TextIO | None = None,
    secrets: Iterable[str] = (),
) -> None:
    """
    Send all records of Packhorse to *stream* (standard error) in *form*; safe to call again.

    Without *form* the environment decides (PACKHORSE_LOG_FORMAT, which `packhorse --log-format` sets), else people.
    The values in *secrets* are blanked out wherever they stand, besides what redaction knows by its form.
    """
    chosen = form or ("json" if os.environ.get(FORM_VARIABLE) == "json" else "people")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter((JsonFormatter if chosen == "json" else PeopleFormatter)(frozenset(secrets)))
    root = logging.getLogger(_ROOT)
    root.handlers[:] = [handler]
    root.setLevel(level)
    root.propagate = False


class _Formatter(logging.Formatter):
    def __init__(self, secrets: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self._secrets = secrets

    def clean(self, value: Value) -> Value:
        return without_secrets(value, self._secrets) if isinstance(value, str) else value

    def fields(self, record: logging.LogRecord) -> dict[str, Value]:
        found: Mapping[str, Value] = getattr(record, _FIELDS, {})
        error = record.exc_info[1] if record.exc_info else None
        about = {} if error is None else {"error": type(error).__name__, "text": str(error)}
        return {name: self.clean(value) for name, value in {**found, **about}.items()}


class JsonFormatter(_Formatter):
    """Write one JSON object a line: time, level, part, event, the fields, and an error's class and text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        head = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "part": record.name.removeprefix(f"{_ROOT}."),
            "event": self.clean(record.getMessage()),
        }
        return json.dumps({**head, **self.fields(record), **head}, ensure_ascii=False)


class PeopleFormatter(_Formatter):
    """Write time, level, part, event and the fields as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = self.fields(record).items()
        told = "".join(f"  {name}={_shown(value)}" for name, value in fields if value is not None)
        part = record.name.removeprefix(f"{_ROOT}.")
        event = inert(str(self.clean(record.getMessage())))
        return f"{_time_of(record)} {record.levelname.lower():<7} {part}: {event}{told}"


def _time_of(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _shown(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = inert(str(value))
    return json.dumps(text, ensure_ascii=False) if not text or " " in text or '"' in text else text
