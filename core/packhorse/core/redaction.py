"""Take secrets out of texts before anybody sees them."""

import re
from collections.abc import Iterable
from urllib.parse import unquote

# Each begins where a word begins, not at each of its letters: else a long word takes its length squared.
_URL_PASSWORD = re.compile(
    r"(?P<head>(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^:/?#\s@]*):[^@/\s]*@", re.IGNORECASE
)
_KEYWORD = re.compile(
    r"(?P<name>(?<![\w.-])[\w.-]*(?:password|passwd|secret|token|api[_.-]?key))(?P<sep>['\"]?\s*[=:]\s*)(?:'[^']*'|\"[^\"]*\"|[^\s&,;]+)",
    re.IGNORECASE,
)
_SHORTEST = 3
"""A secret shorter than this is not looked for as a value: it would blank out half of any text."""


def without_secrets(text: str, known: Iterable[str] = ()) -> str:
    """
    Return *text* with the passwords of URLs and of name=value pairs, and each of the *known* values, replaced.

    >>> without_secrets("postgresql://app:s3cret@db/app?sslmode=require")
    'postgresql://app:***@db/app?sslmode=require'
    >>> without_secrets("host=db password='a b' user=app")
    'host=db password=*** user=app'
    >>> without_secrets("could not translate host name ret@db", ["sec@ret", "ret"])
    'could not translate host name ***@db'
    """
    for value in sorted(known, key=len, reverse=True):
        text = text.replace(value, "***")
    return _KEYWORD.sub(r"\g<name>\g<sep>***", _URL_PASSWORD.sub(r"\g<head>:***@", text))


def secrets_of(name: str, value: str) -> set[str]:
    """
    Return the secret values inside the setting *name* = *value*, and the pieces that a parser may tear them into.

    A password that is not percent-encoded in a URL is read wrongly: the driver takes a piece of it for the host and quotes
    it in its error.

    >>> sorted(secrets_of("PACKHORSE_DATABASE_URL", "postgresql://app:p%40ss@db/app"))
    ['p%40ss', 'p@ss']
    >>> secrets_of("PACKHORSE_REGISTRY_URL", "http://registry:8081")
    set()
    """
    whole = {value} if _SECRET_NAME.search(name) else set()
    inside = {match["secret"].strip("'\"") for match in _SECRET_PAIR.finditer(value)}
    if (match := _URL_SECRET.match(value)) is not None:
        inside.add(match["secret"])
    pieces = {piece for secret in inside for piece in re.split(r"[@/:?#\s]", secret)}
    found = whole | inside | pieces
    return {form for secret in found for form in (secret, unquote(secret)) if len(form) >= _SHORTEST}


def holds_secret(name: str, value: str) -> bool:
    """
    Say whether the setting *name* = *value* is a secret or has one inside, however short.

    >>> holds_secret("PACKHORSE_DATABASE_URL", "postgresql://app:p@db/app")
    True
    >>> holds_secret("PACKHORSE_DATABASE_URL", "postgresql://app@db/app")
    False
    """
    inside = _SECRET_PAIR.search(value) or _URL_SECRET.match(value)
    return bool(_SECRET_NAME.search(name) or inside)


_SECRET_NAME = re.compile(r"password|passwd|secret|token|api_?key", re.IGNORECASE)
_SECRET_PAIR = re.compile(_KEYWORD.pattern.replace("(?:'[^']*'", "(?P<secret>'[^']*'"), re.IGNORECASE)
_URL_SECRET = re.compile(r"[a-z][a-z0-9+.-]*://[^:/?#\s]*:(?P<secret>.*)@", re.IGNORECASE)
