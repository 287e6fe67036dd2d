"""Options that several commands of the console share."""

from typing import Annotated

import typer

ShowKey = Annotated[bool, typer.Option("--show-key", help="Show the key, which may say who somebody is.")]
