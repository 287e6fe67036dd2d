"""Templates: every value is escaped, and made safe for eyes, unless a template says otherwise; a name that is not there is an error."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from packhorse.console.pages.assets import address_of
from packhorse.console.pages.editing import editable
from packhorse.console.pages.showing import FILTERS, shown


@cache
def environment() -> Environment:
    """Return what templates are made with, once for the process."""
    made = Environment(
        loader=PackageLoader("packhorse.console.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(FILTERS, editable=editable)
    made.globals["asset"] = address_of
    return made


def rendered(template: str, **values: Any) -> str:
    """Return the page that *template* makes of *values*."""
    return environment().get_template(template).render(**values)
