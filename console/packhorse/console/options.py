"""Options that several commands of the console share."""

from typing import Annotated

import typer

ShowKey = Annotated[bool, typer.Option("--show-key", help="Show the key, which may say who somebody is.")]
Csv = Annotated[
    bool, typer.Option("--csv", help="Print CSV; a spreadsheet takes no cell of it for a formula.")
]
After = Annotated[
    str | None, typer.Option("--after", metavar="POSITION", help="Behind this: a page says what the next is.")
]
ClaimedActor = Annotated[
    str | None, typer.Option("--actor", metavar="NAME", help="On whose behalf; recorded as claimed.")
]
