"""Which statements a handler may not send on a connection that it was lent; decided from their text alone."""

import re
from functools import lru_cache
from typing import NamedTuple

LONGEST_REMEMBERED = 4096
"""Longest statement whose verdict is remembered, in bytes; longer ones are mostly written once."""

_ENDS = re.compile(
    rb"(?:commit|end|abort|begin|start\s+transaction|prepare\s+transaction)\b"
    rb"|rollback\b(?!\s+(?:work\s+|transaction\s+)?to\b)"
)
_OUTLIVES = re.compile(
    rb"(?:discard|deallocate)\b|set\s+(?!local\b|constraints\b)|declare\b.*\bwith\s+hold\b", re.DOTALL
)
_UNDERMINES = re.compile(
    rb"set\s+local\s+(?:transaction\w*|synchronous_commit|idle_in_transaction_session_timeout|role\b|session\s+authorization)"
)
_SAVEPOINT = re.compile(
    rb"(?P<what>savepoint|release(?:\s+savepoint)?|rollback(?:\s+work|\s+transaction)?\s+to(?:\s+savepoint)?)"
    rb"\s+\"?(?P<name>[^\s\"]+)"
)
_OURS = b"packhorse_"

_MARK = re.compile(
    rb"(?<![\w\x80-\xff$])[eE]'|'|\"|(?<![\w\x80-\xff$])\$(?:[A-Za-z_\x80-\xff][\w\x80-\xff]*)?\$|--|/\*|;"
)
_STRING = re.compile(rb"(?:[^']|'')*'")
_ESCAPED = re.compile(rb"(?:[^'\\]|''|\\.)*'", re.DOTALL)
_NAME = re.compile(rb"(?:[^\"]|\"\")*\"")
_COMMENT = re.compile(rb"/\*|\*/")
_ATOMIC = re.compile(rb"\bbegin\s+atomic\b", re.IGNORECASE)

ENDING = (
    "is refused: the message's inbox row is in the same transaction, and Packhorse commits both together; "
    "use `with ctx.connection.transaction():` for a savepoint, raise an error to undo, Skip to end without effect"
)
OUTLIVING = (
    "is refused: it would outlive the handler on a connection that others use next; use SET LOCAL for a setting, which ends "
    "with the transaction"
)
UNDERMINING = "is refused: what Packhorse writes in the same transaction depends on it; set it for the role or the database instead"


class Verdict(NamedTuple):
    """
    What is to be said of a text.

    Attributes:
        refused: The statement that is refused and why; empty when none is.
        sets: Names of the savepoints that it sets.
        uses: Names of savepoints that it releases or goes back to before it has set them.
        copies: It begins with COPY.
    """

    refused: str = ""
    sets: frozenset[bytes] = frozenset()
    uses: frozenset[bytes] = frozenset()
    copies: bool = False


_FINE = Verdict()


def verdict_on(text: bytes) -> Verdict:
    """
    Return what is to be said of *text*, which may hold several statements.

    >>> verdict_on(b"UPDATE t SET a = 1").refused
    ''
    >>> verdict_on(b"SELECT ';'; /* done */ COMMIT").refused.split(" is ")[0]
    'COMMIT'
    """
    return _remembered(text) if len(text) <= LONGEST_REMEMBERED else _judge(text)


def statements_of(text: bytes) -> list[bytes]:
    r"""
    Return the statements in *text*, without comments and with nothing between the quotes.

    >>> statements_of(b"SELECT ';' -- ;\n; DO $a$ COMMIT; $a$")
    [b"SELECT ''", b"DO ''"]
    """
    found: list[bytes] = []
    parts: list[bytes] = []
    at = 0
    while mark := _MARK.search(text, at):
        parts.append(text[at : mark.start()])
        at, replaced = _after(text, mark)
        if replaced == b";":
            found.append(b"".join(parts).strip())
            parts = []
        else:
            parts.append(replaced)
    parts.append(text[at:])
    found.append(b"".join(parts).strip())
    return [statement for statement in found if statement]


def _after(text: bytes, mark: re.Match[bytes]) -> tuple[int, bytes]:
    """Return where what *mark* begins ends in *text*, and what stands for it."""
    begins, at = mark[0], mark.end()
    if begins == b";":
        return at, b";"
    if begins == b"--":
        end = text.find(b"\n", at)
        return (len(text) if end < 0 else end), b" "
    if begins == b"/*":
        return _after_comment(text, at), b" "
    if begins.startswith(b"$"):
        end = text.find(begins, at)
        return (len(text) if end < 0 else end + len(begins)), b"''"
    if begins == b'"':
        closed = _NAME.match(text, at)
        return (closed.end(), text[mark.start() : closed.end()]) if closed else (len(text), b'""')
    closed = (_STRING if begins == b"'" else _ESCAPED).match(text, at)
    return (closed.end() if closed else len(text)), b"''"


def _after_comment(text: bytes, at: int) -> int:
    depth = 1
    for mark in _COMMENT.finditer(text, at):
        depth += 1 if mark[0] == b"/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def _judge(text: bytes) -> Verdict:
    if _ATOMIC.search(text):
        return _FINE  # the body of a function: its statements end at the END that is its own
    sets: set[bytes] = set()
    uses: set[bytes] = set()
    statements = statements_of(text)
    for statement in statements:
        lower = statement.lower()
        if refused := _refusal(lower):
            return Verdict(refused=refused)
        if savepoint := _SAVEPOINT.match(lower):
            name = savepoint["name"]
            if savepoint["what"] == b"savepoint":
                sets.add(name)
            elif name not in sets:
                uses.add(name)
    copies = bool(statements) and statements[0][:4].lower() == b"copy"
    if not (sets or uses or copies):
        return _FINE
    return Verdict(sets=frozenset(sets), uses=frozenset(uses), copies=copies)


def _refusal(statement: bytes) -> str:
    for pattern, why in ((_ENDS, ENDING), (_OUTLIVES, OUTLIVING), (_UNDERMINES, UNDERMINING)):
        if found := pattern.match(statement):
            return f"{' '.join(found[0].decode(errors='replace').upper().split())} {why}"
    if (found := _SAVEPOINT.match(statement)) and found["name"].startswith(_OURS):
        return f"the savepoint {found['name'].decode(errors='replace')} is refused: names with {_OURS.decode()} are Packhorse's"
    return ""


_remembered = lru_cache(maxsize=1024)(_judge)
