"""The README's first handler is what a newcomer types: its blocks are taken from the page and run."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import psycopg

from packhorse.local.settings import Endpoints

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str, holding: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(next(text for text in blocks if holding in text))


def test_the_first_handler_works_as_it_is_written(
    tmp_path: Path, stack: Endpoints, database: str, topic_prefix: str
) -> None:
    """Fails when a command, a flag or a name on the page is not so any more, or when the handler has no effect."""
    schema_folder = next(
        Path(name).parent for name in re.findall(r"`(schemas/avro/\S+\.avsc)`", PAGE) if "OrderPlaced" in name
    )
    (tmp_path / schema_folder).mkdir(parents=True)
    (tmp_path / schema_folder / "v1.avsc").write_text(block("json", "OrderPlaced"))
    group = f"billing-{topic_prefix}"
    (tmp_path / "shop.py").write_text(block("python", "Outbox(").replace('"billing"', f'"{group}"'))

    code, out = run(tmp_path, environment(stack, database))

    assert code == 0, out
    told = re.search(r"^message +([0-9a-f-]{36})", out, re.MULTILINE)
    assert told is not None, out
    message = UUID(told[1])
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT DISTINCT id, cents FROM invoices").fetchall()
        outcome = connection.execute(
            "SELECT outcome FROM packhorse.inbox WHERE message_id = %s AND group_id = %s", (message, group)
        ).fetchone()
    assert found == [("A-1", 4200)]
    assert outcome == ("done",)


def run(folder: Path, environ: dict[str, str]) -> tuple[int, str]:
    """Run the page's commands and return status and output; no daemon outlives it, in time or not."""
    process = subprocess.Popen(
        ["bash", "-euc", script()],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=90)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, out


def script() -> str:
    """Return the page's commands on the tests' own stack, waiting for the invoice and stopping the two daemons."""
    lines = [line for line in block("sh", "relay run").splitlines() if "packhorse dev" not in line]
    daemons = next(line for line in lines if "relay run" in line)
    at = lines.index(daemons)
    each = daemons.rstrip(" &").split(" & ")
    lines[at : at + 1] = [
        "trap 'kill $(jobs -p); wait' EXIT",
        *(f"{command} 2>>daemons.log &" for command in each),
    ]
    place = next(n for n, line in enumerate(lines) if "shop.place" in line)
    lines.insert(place + 1, f"{sys.executable} -c '{WAIT}'")
    return "\n".join(lines)


WAIT = """
import os, psycopg
DONE = "SELECT count(*) FROM packhorse.outbox o JOIN packhorse.inbox i ON i.message_id = o.id AND i.outcome = $$done$$"
from tests.support.wait import eventually
def billed():
    with psycopg.connect(os.environ["PACKHORSE_DATABASE_URL"]) as connection:
        return connection.execute(DONE).fetchone() == (1,)
eventually(billed, timeout=60, what="the invoice")
"""


def environment(stack: Endpoints, database: str) -> dict[str, str]:
    return (
        os.environ
        | stack.variables()
        | {
            "PACKHORSE_DATABASE_URL": database,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }
    )
