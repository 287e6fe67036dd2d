"""Where on these pages a person finds what a command line does: an explanation's commands as buttons. Pure: no I/O."""

import shlex
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

from packhorse.core.rights import Right


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """
    The page that does, or shows, what a command does.

    Attributes:
        name: What the button says.
        right: What the act needs; None: it is no act.
        is_danger: It can't be undone, or only with effort.
    """

    href: str
    name: str
    right: Right | None = None
    is_danger: bool = False


_QUARANTINE = {
    "redrive": Lead(href="", name="Redrive", right=Right.ACT),
    "discard": Lead(href="", name="Discard", right=Right.ACT, is_danger=True),
    "restore": Lead(href="", name="Restore", right=Right.ACT),
    "edit": Lead(href="", name="Edit", right=Right.EDIT),
}


def lead_of(command: str | None) -> Lead | None:
    """
    Return where *command*, as an explanation proposes it, is found on these pages; None: nowhere.

    >>> lead_of("packhorse quarantine redrive 019b --group figures --topic a.b --why TEXT").href
    '/quarantine/019b/redrive?group=figures&topic=a.b'
    >>> lead_of("packhorse relay hold show 12").href, lead_of("packhorse relay run")
    ('/relay/holds/12', None)
    """
    try:
        words = [] if command is None else shlex.split(command)
    except ValueError:
        return None
    named, options = _parts(words[1:])
    if words[:1] != ["packhorse"] or "database-url" in options:
        return None  # what another database knows is on the pages of another console
    return _act(named, options) or _look(named, options)


def _act(named: list[str], options: dict[str, str]) -> Lead | None:
    match named:
        case ["quarantine", act, message_id] if act in _QUARANTINE:
            query = _query(options, "group", "topic")
            return replace(_QUARANTINE[act], href=f"/quarantine/{_path(message_id)}/{act}{query}")
        case ["processor", "resume"] if "key-hash" in options:
            query = _query(options | {"key_hash": options["key-hash"]}, "group", "topic", "key_hash")
            return Lead(href=f"/keys/resume{query}", name="Let the key go on", right=Right.ACT)
        case _:
            return None


def _look(named: list[str], options: dict[str, str]) -> Lead | None:
    match named:
        case ["quarantine", "show", message_id] | ["explain", message_id]:
            query = _query(options, "group", "topic")
            return Lead(href=f"/messages/{_path(message_id)}{query}", name="Look")
        case ["status", message_id]:
            search = "?search=true" if "search" in options else ""
            return Lead(href=f"/messages/{_path(message_id)}{search}", name="Look")
        case ["job" | "redrive" | "replay" as kind, _, number]:
            name = "The job" if kind == "job" else f"{kind.capitalize()} {number}"
            return Lead(href=f"/{kind}s/{_path(number)}", name=name)
        case ["relay", "hold", "show", number]:
            return Lead(href=f"/relay/holds/{_path(number)}", name=f"Hold {number}")
        case ["relay", "status"]:
            return Lead(href="/relay", name="The relay")
        case ["processor", _] if "group" in options:
            return Lead(href=f"/groups/{_path(options['group'])}", name="The group")
        case _:
            return None


def _parts(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words that are no options, and the options with their values; one without a value has an empty one."""
    named: list[str] = []
    options: dict[str, str] = {}
    waiting: str | None = None
    for word in words:
        if waiting is not None and not word.startswith("--"):
            options[waiting], waiting = word, None
        elif word.startswith("--"):
            waiting = word.removeprefix("--")
            options[waiting] = ""
        else:
            named.append(word)
    return named, options


def _query(options: dict[str, str], *names: str) -> str:
    given = {name: options[name] for name in names if name in options}
    return f"?{urlencode(given)}" if given else ""


def _path(word: str) -> str:
    return quote(word, safe="")
