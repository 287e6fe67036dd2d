"""What a form sends: names and values, each name but that of ticked boxes once, in bounded number. Pure: no I/O."""

from collections.abc import Mapping
from urllib.parse import parse_qsl
from uuid import UUID

from packhorse.core.errors import UsageError
from packhorse.core.ids import id_of, time_of

MEDIA_TYPE = "application/x-www-form-urlencoded"
MOST_FIELDS = 1_200
"""A list of a thousand messages, each ticked, and what else a form holds."""
PICKED = "picked"
"""The field that a form has once for each box that is ticked; all others it has once."""
MARK = "mark"
"""The field that says which session a form is of."""
ONCE = "once"
"""The field with the number of the form: of one number there is one act, however often it is sent."""


def form_of(body: bytes, media_type: str) -> dict[str, str]:
    """
    Return the fields of a form; empty ones are left out, as one that nobody has filled in. Boxes that are ticked are joined by blanks.

    >>> form_of(b"why=fixed+in+1.4&group=&picked=a&picked=b", "application/x-www-form-urlencoded; charset=utf-8")
    {'why': 'fixed in 1.4', 'picked': 'a b'}

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
    fields = {name: value for name, value in pairs if name != PICKED}
    picked = [value for name, value in pairs if name == PICKED]
    if len(fields) + len(picked) != len(pairs):
        raise UsageError("the form has a field twice; nothing was done")
    return fields | ({PICKED: " ".join(picked)} if picked else {})


def number_in(fields: dict[str, str]) -> UUID | None:
    """
    Take the number of the form out of *fields* and return it; None: it has none, as one that only leads on.

    >>> number_in({"once": "019b76da-a800-7000-8000-000000000000", "why": "x"}), number_in({"why": "x"})
    (UUID('019b76da-a800-7000-8000-000000000000'), None)

    Raises:
        UsageError: It is no number of a form.
    """
    text = fields.pop(ONCE, None)
    if text is None:
        return None
    found = id_of(text.encode())
    if found is None or time_of(found) is None:
        raise UsageError("the form has no number of ours; nothing was done, load the page again")
    return found


def given(query: Mapping[str, str]) -> dict[str, str]:
    """Return what of a form that was sent as a query is filled in: browsers send empty fields along."""
    return {name: value for name, value in query.items() if value != ""}
