"""Exit codes, and how an error is told: one line that names value, limit and next step; never a secret."""

import errno
import os
import traceback
from collections.abc import Iterable, Mapping
from enum import IntEnum
from pathlib import Path

from packhorse.core.errors import (
    Forbidden,
    InfrastructureError,
    NotReady,
    OwnershipLost,
    PackhorseError,
    UnknownId,
    UsageError,
)
from packhorse.core.redaction import secrets_of, without_secrets
from packhorse.core.text import inert


class ExitCode(IntEnum):
    """What the shell gets; `meaning` is the line in the help."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> "ExitCode":
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    OK = (0, "done, or the answer is yes")
    FAILED = (1, "not done, a check failed, or an unexpected error")
    USAGE = (2, "a flag, argument or setting is wrong")
    NOT_READY = (3, "a table, topic, right or migration is missing")
    AWAY = (4, "database, broker or registry does not answer")
    LOST = (5, "somebody else owns it or has acted by now")
    UNKNOWN = (6, "the id is not known here")
    UNPROVED = (7, "--wait ended before the outcome was there")
    FORBIDDEN = (8, "the right for it is missing")
    INTERRUPTED = (130, "Ctrl-C")


def code_of(error: PackhorseError) -> ExitCode:
    """Return the exit code of *error*."""
    match error:
        case NotReady():
            return ExitCode.NOT_READY
        case UnknownId():
            return ExitCode.UNKNOWN
        case UsageError():
            return ExitCode.USAGE
        case Forbidden():
            return ExitCode.FORBIDDEN
        case InfrastructureError():
            return ExitCode.AWAY
        case OwnershipLost():
            return ExitCode.LOST
        case _:
            return ExitCode.FAILED


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def told(error: BaseException, secrets: Iterable[str]) -> str:
    """Return what to print about *error*: its own lines when it is ours, a traceback when nobody expected it."""
    if isinstance(error, PackhorseError):
        text = str(error) or type(error).__name__
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    elif isinstance(error, OSError) and error.errno in _FULL:
        text = f"{error.strerror}; what was printed or written is not complete"
    else:
        text = "unexpected error, please report it:\n" + "".join(traceback.format_exception(error))
    lines = without_secrets(text, secrets).splitlines() or [""]
    first, *rest = [inert(line) for line in lines]
    return "\n".join([f"packhorse: {first}", *(f"  {line}" for line in rest)])


def secrets_around(environ: Mapping[str, str] | None = None) -> frozenset[str]:
    """Return the secrets that the environment, the files it names and the settings file hold, so that no error text can repeat them."""
    env = os.environ if environ is None else environ
    found: set[str] = set()
    for name, value in env.items():
        if not name.startswith("PACKHORSE_"):
            continue
        found |= secrets_of(name, value)
        if name.endswith("_FILE"):
            found |= secrets_of(name.removesuffix("_FILE"), _text_of(value))
    for line in _text_of(env.get("PACKHORSE_CONFIG") or "packhorse.toml").splitlines():
        name, _, value = line.partition("=")
        found |= secrets_of(name.strip(), value.strip().strip("'\""))
    return frozenset(found)


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        return ""
