"""`python -m packhorse.processor`: the part's own command line."""

from packhorse.processor.cli import app

app(prog_name="packhorse processor")
