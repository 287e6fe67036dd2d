"""The demo that goes on, as a newcomer meets it: the link, the console, traffic, and a Ctrl-C after which nothing is left."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from tests.support.topics import removed_topics
from tests.support.wait import eventually

from packhorse.local.processes import Identity, family_of, identity_of, is_alive
from packhorse.local.settings import Endpoints

CHECKOUT = Path(__file__).parents[2]
DONE = "SELECT group_id, count(*) FROM packhorse.inbox WHERE outcome = 'done' GROUP BY group_id"
LINK = re.compile(r"^ +(http://\S+)/sign-in/link\?word=(\w+)$", re.MULTILINE)
DATABASE = re.compile(r"^ +export PACKHORSE_DATABASE_URL=(\S+)$", re.MULTILINE)


@pytest.fixture
def _no_topics(stack: Endpoints) -> Iterator[None]:
    """Remove the demo's topics, before and after: it refuses a broker that has them."""
    with removed_topics(stack.kafka_bootstrap, "airline."):
        yield


@contextmanager
def demo_on(stack: Endpoints, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run the demo that goes on for the block, in a process of its own, and give what it prints to."""
    output = folder / "output"
    with output.open("wb") as printed:
        demo = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "examples.flights",
                "--serve",
                "--flights",
                "200",
                "--folder",
                str(folder),
            ],
            cwd=CHECKOUT,
            env={**os.environ, **stack.variables()},
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
        try:
            yield demo, output
        finally:
            demo.kill()  # its guards end what it has started
            demo.wait()


def found(demo: "subprocess.Popen[bytes]", output: Path, wanted: re.Pattern[str]) -> re.Match[str]:
    """Wait until the demo has printed *wanted*."""

    def printed() -> re.Match[str] | None:
        text = output.read_text(encoding="utf-8")
        assert demo.poll() is None, text
        return wanted.search(text)

    match = eventually(printed, what=f"the demo prints {wanted.pattern}", timeout=100)
    assert match is not None
    return match


@contextmanager
def signed_in(address: str, word: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, trust_env=False, headers={"Sec-Fetch-Site": "same-origin"}) as client:
        assert client.get("/").status_code == 303
        assert client.post("/sign-in/link", data={"word": word}).status_code == 303
        yield client


def done_by_group(connection: psycopg.Connection[Any]) -> dict[str, int]:
    rows: list[tuple[str, int]] = connection.execute(DONE).fetchall()
    return dict(rows)


def family(pid: int) -> list[Identity]:
    return [member for each in family_of(pid) if (member := identity_of(each)) is not None]


@pytest.mark.usefixtures("_no_topics")
@pytest.mark.timeout(180)
def test_the_demo_goes_on_until_it_is_interrupted(stack: Endpoints, tmp_path: Path) -> None:
    """
    200 flights and what comes after: the overview by the printed link, messages and jobs that get done, and a clean end.

    Fails when the link does not sign in, when traffic or jobs stand still, or when anything that was started outlives the demo.
    """
    with demo_on(stack, tmp_path) as (demo, output):
        link = found(demo, output, LINK)
        with signed_in(link[1], link[2]) as client:
            assert client.get("/").status_code == 200
        assert (tmp_path / "console.log").stat().st_mode & 0o077 == 0, "others can read the link"
        database = found(demo, output, DATABASE)[1]
        with psycopg.connect(database, autocommit=True) as connection:
            before = done_by_group(connection)["figures"]

            def goes_on() -> bool:
                done = done_by_group(connection)
                return done["figures"] > before + 50 and done.get("reports", 0) > 0

            eventually(goes_on, what="messages and jobs get done", timeout=60)
        members = family(demo.pid)
        assert len(members) > 5  # relay, two processors, console, a guard
        demo.send_signal(signal.SIGINT)
        assert demo.wait(timeout=40) == 0, output.read_text(encoding="utf-8")
    assert [member for member in members if is_alive(member)] == []
