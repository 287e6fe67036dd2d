"""The demo that goes on (examples/flights), as the pictures need it: its console, and trouble made to be looked at."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from tests.support.wait import eventually

from examples.common.children import CHECKOUT
from examples.flights import sql
from examples.flights.serving.asking import Desk
from examples.flights.serving.schedule import Happening, Kind
from examples.flights.trouble import (
    OUT_OF_RANGE,
    begin_outage,
    emit_one_poison,
    end_outage,
    no_avro,
    no_distance,
)
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK

FLIGHTS = 2_000
"""Of the reckoning that comes first: enough that the charts have a past, and done within two minutes."""
WITHIN = 300.0
"""Seconds in which anything that is waited for has come, on a busy machine too."""
REFUSED = 12
"""Aircraft whose figures are refused: a set that is worth a redrive, and less than what the demo sees to by itself."""
_TOO_LARGE = 1_300_000  # bytes; a topic takes 1 MiB unless it is set
_SETTING = re.compile(r"^ +export (PACKHORSE_\w+)=(\S+)$", re.MULTILINE)
_LINK = re.compile(r"^ +(http://\S+)/sign-in/link\?word=\w+$", re.MULTILINE)

_SOON = """
SELECT tail_number FROM airline.flight
WHERE state = 'planned' AND tail_number IS NOT NULL
GROUP BY tail_number ORDER BY min(scheduled_departure), tail_number LIMIT %(count)s
"""
_RESTING = """
SELECT count(*) >= %(count)s FROM packhorse.quarantined_message
WHERE group_id = 'figures' AND state = 'quarantined' AND convert_from(key, 'UTF8') = ANY (%(keys)s)
"""
_MENDED = "SELECT count(*) = 0 FROM figures.outage WHERE code = %(code)s"
_FOLLOWED = """
SELECT convert_from(q.key, 'UTF8') FROM packhorse.quarantined_message AS q
JOIN packhorse.parked_key AS k ON k.head_id = q.message_id
JOIN packhorse.parked_message AS f ON (f.group_id, f.topic, f.key_hash) = (k.group_id, k.topic, k.key_hash)
WHERE q.reason = 'refused' GROUP BY q.key ORDER BY count(*) DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Airline:
    """
    A demo that goes on.

    Attributes:
        console: Where its console is, without a path.
        variables: What its commands are told through the environment.
        connection: To its database, in autocommit.
        folder: Where its services lie.
    """

    console: str
    variables: Mapping[str, str]
    connection: psycopg.Connection[Any]
    folder: Path

    def command(self, *arguments: str) -> str:
        """
        Run `packhorse` with *arguments* to its end and return what it printed.

        Raises:
            CalledProcessError: It ended with another status than 0.
        """
        argv = [sys.executable, "-m", "packhorse.cli.main", *arguments]
        environment = {**os.environ, **self.variables}
        done = subprocess.run(
            argv, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout.strip()

    def asked(self, query: str, **values: object) -> Any:
        """Return the first value of *query*; None where it finds no row."""
        row = self.connection.execute(query.encode(), values).fetchone()
        return None if row is None else row[0]

    def wait_for(self, what: str, query: str, **values: object) -> Any:
        """
        Return the first value of *query* once that is there and true.

        Raises:
            AssertionError: It was not within five minutes.
        """
        return eventually(lambda: self.asked(query, **values), what=what, timeout=WITHIN)

    def refuse(self) -> str:
        """Have messages of some aircraft come to quarantine, all for one cause that is mended then; return one with others behind."""
        soon = [row[0] for row in self.connection.execute(_SOON, {"count": 2 * REFUSED}).fetchall()]
        begin_outage(self.connection, soon, code=OUT_OF_RANGE)  # not all of them fly: some are cancelled
        self.wait_for("messages of refused aircraft rest", _RESTING, keys=soon, count=REFUSED)
        end_outage(self.connection, soon)
        # The demo refuses some of its own: redriven before that is mended, it would fail again and halt the set.
        self.wait_for("nothing is refused any more", _MENDED, code=OUT_OF_RANGE)
        return str(self.wait_for("others wait behind one of them", _FOLLOWED))

    def poison(self) -> UUID:
        """Write messages that no handler can finish; return one whose payload can be read."""
        emit_one_poison(self.connection, no_avro, key="FERRY-1")
        made = [emit_one_poison(self.connection, no_distance, key=f"FERRY-{number}") for number in (2, 3)]
        self.wait_for("the poison rests", _RESTING, keys=_keys("FERRY", 3), count=3)
        return made[0].id

    def write_too_large(self) -> int:
        """Write two rows that their topic does not take; return the number of a hold."""
        for key in _keys("CHARTER", 2):
            row = {
                "id": SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now()),
                "aggregatetype": "aircraft",
                "key": key,
                "type": "airline.FlightScheduled",
                "schema_version": "1",
                "payload": bytes(_TOO_LARGE),
            }
            self.connection.execute(sql.RAW_OUTBOX_ROW, row)
        query = "SELECT min(id) FROM packhorse.relay_hold HAVING count(*) = 2"
        return int(self.wait_for("the relay holds what is too large", query))

    def wait_for_a_past(self) -> None:
        """Return when the charts of the console, which began with the first report, have something to show."""
        long_ago = "SELECT min(accepted_at) < clock_timestamp() - interval '210 seconds' FROM packhorse.job"
        self.wait_for("the console has a past", long_ago)

    def wait_for_rest(self) -> None:
        """Return when no report is being made: one that takes long counts as a partition that stands still."""
        self.wait_for("no job runs", "SELECT count(*) = 0 FROM packhorse.job WHERE state = 'running'")

    def ask_for(self, *kinds: Kind) -> None:
        """Ask for reports; figures that are not closed yet are not before an hour is over."""
        desk = Desk(self.connection, seed=len(kinds))
        for number, kind in enumerate(kinds, start=1):
            desk.ask(Happening(kind=kind, number=number, lasts=3600))


def _keys(name: str, count: int) -> list[str]:
    return [f"{name}-{number}" for number in range(1, count + 1)]


@contextmanager
def airline(folder: Path) -> Iterator[Airline]:
    """
    Run the demo that goes on for the block, its services and what it says in *folder*.

    Raises:
        RuntimeError: It has ended; the text ends with what it said.
        AssertionError: It did not print a link to its console within five minutes.
    """
    output = folder / "output"
    argv = [sys.executable, "-m", "examples.flights", "--serve", "--flights", str(FLIGHTS), "--folder"]
    with output.open("wb") as printed:
        demo = subprocess.Popen([*argv, str(folder)], cwd=CHECKOUT, stdout=printed, stderr=subprocess.STDOUT)
    try:
        link = eventually(lambda: _printed(demo, output), what="a link to the console", timeout=WITHIN)
        assert link is not None
        variables = {
            name: shlex.split(value)[0] for name, value in _SETTING.findall(output.read_text("utf-8"))
        }
        with psycopg.connect(variables["PACKHORSE_DATABASE_URL"], autocommit=True) as connection:
            yield Airline(console=link, variables=variables, connection=connection, folder=folder)
    finally:
        demo.send_signal(signal.SIGTERM)
        try:
            demo.wait(timeout=60)
        except subprocess.TimeoutExpired:
            demo.kill()  # its guards end what it has started


def _printed(demo: "subprocess.Popen[bytes]", output: Path) -> str | None:
    text = output.read_text(encoding="utf-8")
    if demo.poll() is not None:
        raise RuntimeError(f"the demo ended with status {demo.returncode}:\n{text[-2_000:]}")
    found = _LINK.search(text)
    return None if found is None else found[1]
