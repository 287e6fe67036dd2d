"""How the console is opened: the commands for later, and a console of the demo's own with its links."""

import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from examples.common.children import Children
from examples.common.surroundings import NAMESPACE_VARIABLE, Surroundings
from packhorse.local.ports import is_free
from packhorse.local.settings import DATABASE_VARIABLE

PORT = 8400
LINKS_VARIABLE = "PACKHORSE_CONSOLE_LINKS"
_LINK = re.compile(r"^Open the console, .*: (http://\S+)$", re.MULTILINE)


def commands(around: Surroundings, folder: Path, *, runs: bool) -> list[str]:
    """Return what a person types to open the console on what was made; *runs*: the stack in *folder* goes on running."""
    lines = [_path()]
    if around.own:
        lines.append(f"export PACKHORSE_DEV_DIR={shlex.quote(str(folder))}")
        lines += [] if runs else ["packhorse dev up"]
        lines.append('eval "$(packhorse dev env)"')
        lines += _settings(around, DATABASE_VARIABLE, NAMESPACE_VARIABLE)
    else:
        lines += _settings(around, *around.variables)
    lines.append("packhorse console")
    lines += ["packhorse dev down"] if around.own else []
    return _indented(lines)


def shell(around: Surroundings) -> list[str]:
    """Return what a person types so that Packhorse's commands work on what runs."""
    return _indented([_path(), *_settings(around, *around.variables)])


def _path() -> str:
    return f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH"


def _settings(around: Surroundings, *names: str) -> list[str]:
    return [f"export {name}={shlex.quote(around.variables[name])}" for name in names]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


class Console:
    """A console that runs beside the demo, and the links that it makes."""

    def __init__(self, children: Children) -> None:
        """Start it, on another port where its own is taken."""
        port = PORT if is_free(PORT) else 0
        # The links of such a log sign in whoever reads them, as the terminal's do.
        self._log = children.start("console", "console", "--port", str(port), private=True)
        self._read = 0

    def links(self) -> list[str]:
        """Return the links that were made since the last call, each of which signs in once."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            *lines, _ = log.read().split(b"\n")
        self._read += sum(len(line) + 1 for line in lines)
        return _LINK.findall(b"\n".join(lines).decode(errors="replace"))
