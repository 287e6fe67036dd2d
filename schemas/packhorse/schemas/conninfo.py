"""
Check a connection string before libpq sees it, so that no error can quote a piece of a password. Pure.

libpq takes an unencoded `@`, `/` or `%` in a password for the end of it, and names the rest in its error as a host, a
database or a token.
"""

import re
from urllib.parse import urlsplit

_LOOKS = "it looks like postgresql://user@host:5432/database, or host=… dbname=… user=…"
_ENCODE = "in a password, encode @ as %40, / as %2F, : as %3A, % as %25"
_SCHEME = re.compile(r"[^\s=@/]*://")
_BROKEN_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PAIR = re.compile(r"\s*\w+\s*=\s*(?:'(?:\\.|[^'\\])*'|[^'\s]\S*|(?=\s|$))\s*")


def checked_conninfo(text: str) -> str:
    """
    Return *text* when libpq would read it the way it is meant.

    >>> checked_conninfo("postgresql://app:s%40cret@db:5432/app")
    'postgresql://app:s%40cret@db:5432/app'

    Raises:
        ValueError: It is no connection string, or its password is torn; quotes nothing of it.
    """
    if _SCHEME.match(text) or "://" in text.partition("=")[0]:
        return _checked_url(text)
    place = 0
    while place < len(text):
        if (pair := _PAIR.match(text, place)) is None:
            raise ValueError(f"no connection string; {_LOOKS}")
        place = pair.end()
    if not text.strip():
        raise ValueError(f"empty; {_LOOKS}")
    return text


def _checked_url(text: str) -> str:
    scheme, _, rest = text.partition("://")
    if scheme not in {"postgresql", "postgres"}:
        raise ValueError(f"the scheme is not postgresql; {_LOOKS}")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    behind = rest[len(authority) :]
    torn = "@" in behind and ":" in authority and "@" not in authority
    if authority.count("@") > 1 or torn or _BROKEN_PERCENT.search(rest.partition("?")[0]):
        raise ValueError(f"a special character stands unencoded before the host; {_ENCODE}")
    try:
        urlsplit(text)
    except ValueError:
        raise ValueError(f"no URL; {_LOOKS}") from None
    return text
