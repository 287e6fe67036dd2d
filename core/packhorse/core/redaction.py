"""Take secrets out of texts before anybody sees them."""

import re

_URL_PASSWORD = re.compile(r"(?P<head>[a-z][a-z0-9+.-]*://[^:/?#\s@]*):[^@/\s]*@", re.IGNORECASE)
_KEYWORD = re.compile(
    r"(?P<name>[\w.-]*(?:password|passwd|secret|token|api[_.-]?key))(?P<sep>\s*[=:]\s*)(?:'[^']*'|\"[^\"]*\"|[^\s&,;]+)",
    re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """
    Return *text* with the passwords of URLs and of name=value pairs replaced.

    >>> without_secrets("postgresql://app:s3cret@db/app?sslmode=require")
    'postgresql://app:***@db/app?sslmode=require'
    >>> without_secrets("host=db password='a b' user=app")
    'host=db password=*** user=app'
    """
    return _KEYWORD.sub(r"\g<name>\g<sep>***", _URL_PASSWORD.sub(r"\g<head>:***@", text))
