"""`python -m packhorse.relay`: the part's own command line."""

from packhorse.relay.cli import app

app(prog_name="packhorse relay")
