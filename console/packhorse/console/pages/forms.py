"""What a form sends: names and values, each name once, in bounded number. Pure: no I/O."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from packhorse.core.errors import UsageError

MEDIA_TYPE = "application/x-www-form-urlencoded"
MOST_FIELDS = 200
MARK = "mark"
"""The field that says which session a form is of."""


def form_of(body: bytes, media_type: str) -> dict[str, str]:
    """
    Return the fields of a form; empty ones are left out, as one that nobody has filled in.

    >>> form_of(b"why=fixed+in+1.4&group=", "application/x-www-form-urlencoded; charset=utf-8")
    {'why': 'fixed in 1.4'}

    Raises:
        UsageError: It is no form of ours.
    """
    if media_type.partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise UsageError(f"the request is no form: its type is to be {MEDIA_TYPE}; nothing was done")
    try:
        pairs = parse_qsl(
            body.decode("ascii"), strict_parsing=bool(body), max_num_fields=MOST_FIELDS, errors="strict"
        )
    except ValueError:
        raise UsageError("the form can't be read; nothing was done") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise UsageError("the form has a field twice; nothing was done")
    return fields


def given(query: Mapping[str, str]) -> dict[str, str]:
    """Return what of a form that was sent as a query is filled in: browsers send empty fields along."""
    return {name: value for name, value in query.items() if value != ""}
