"""
How long people wait for pages over a million quarantined messages, and what an open overview costs the database.

    python -m bench.pages postgresql://user@host:5432/database [--rows 1000000] [--rounds 40] [--open 4] [--seconds 60]

Fills a database schema of its own as `bench.operators` does, serves the console in this process as the command does, signs in by its link, and asks over
HTTP. The cost is the processor time of the console's connections while so many overviews are open and ask every three seconds, from /proc of the server's
processes: the database has to be on this machine.
"""

import argparse
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import uvicorn
from bench.operators import SCHEMA, fill

from packhorse.console.api.fastapi.app import application
from packhorse.console.api.hosts import Hosts
from packhorse.console.compose import services_of
from packhorse.console.quarantine.groups.model import GroupFilter
from packhorse.console.quarantine.pages import Filter
from packhorse.console.serving.daemon import Readiness, pages_of
from packhorse.console.serving.front import Front
from packhorse.console.serving.postgres import pooled
from packhorse.console.serving.uvicorn import listening
from packhorse.console.settings import ConsoleSettings
from packhorse.console.top.flowing import Flow
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.person import Person

EVERY = 3.0
"""Seconds after which an open overview asks again."""
INBOX = """
INSERT INTO inbox (group_id, topic, message_id, outcome, attempt, partition, "offset")
SELECT q.group_id, q.topic, q.message_id, 'quarantine', 1, q.partition, q."offset" FROM quarantined_message AS q
ORDER BY q.quarantined_at DESC LIMIT 1000
"""
"""What their groups know of the newest: acts look at it."""
_TICKS = 100.0  # of a second, as /proc counts


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--open", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    with psycopg.connect(given.url, autocommit=True) as connection:
        try:
            fill(given.url, connection, given.rows)
            connection.execute(f"SET search_path = {SCHEMA}".encode())
            connection.execute(INBOX)
            with served(given.url) as (client, paths):
                for name, path in paths.items():
                    timed(client, name, path, given.rounds)
                kept_open(client, connection, given.open, given.seconds)
        finally:
            connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())


@contextmanager
def served(url: str) -> Iterator[tuple[httpx.Client, dict[str, str]]]:
    """Serve the console for the block; yield somebody who is signed in, and the pages to ask for, by name."""
    settings = ConsoleSettings.load(
        {"database_url": url, "database_schema": SCHEMA, "port": 0, "links": True}
    )
    with (
        pooled(settings) as database,
        services_of(settings, database) as services,
        listening(settings) as sock,
    ):
        links: list[str] = []
        flow, hosts = Flow(SYSTEM_CLOCK), Hosts(settings.host, settings.hosts)
        made = pages_of(services, database, settings, hosts=hosts, flow=flow, tell_link=links.append)
        assert made is not None
        api = application(services, database.standing, hosts=hosts, looks=flow, ready=Readiness(database))
        server = uvicorn.Server(
            uvicorn.Config(
                Front(api, made.app), http="h11", ws="none", lifespan="off", log_config=None, access_log=False
            )
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        made.keeper.make_link()
        base = f"http://127.0.0.1:{sock.getsockname()[1]}"
        with httpx.Client(base_url=base, timeout=60, trust_env=False, follow_redirects=True) as client:
            signed = client.post(
                "/sign-in/link",
                data={"word": links[-1].rpartition("=")[2]},
                headers={"Sec-Fetch-Site": "same-origin"},
            )
            signed.raise_for_status()
            yield client, _paths(services(Person(user="bench")))
        server.should_exit = True
        thread.join(10)


def _paths(service: Any) -> dict[str, str]:
    message = service.quarantine.page(Filter(), after=None, limit=1).messages[0]
    groups = service.groups.page(GroupFilter(), limit=40).groups
    at = f"group={message.group}&topic={message.topic}"
    return {
        "overview": "/",
        "quarantine": "/quarantine",
        "quarantine of one group": f"/quarantine?group={message.group}",
        "the largest group of failures": f"/quarantine/failures/{groups[0].name}",
        "messages": "/quarantine/messages",
        "messages of a type": f"/quarantine/messages?type={message.type}",
        "one message": f"/messages/{message.id}?{at}",
        "preview of a redrive": f"/quarantine/{message.id}/redrive?{at}",
        "search by id": f"/search?q={message.id}",
        "search by key": f"/search?q={message.key.decode()}",
        "jobs": "/jobs",
        "groups": "/groups",
        "one group": f"/groups/{message.group}",
        "relay": "/relay",
        "redrives and replays": "/runs",
        "audit": "/audit",
    }


def timed(client: httpx.Client, name: str, path: str, rounds: int) -> None:
    """Print median and 95th percentile of a page, and how large it is."""
    answer = client.get(path)
    if answer.status_code != 200:
        print(f"{name:<34} answers {answer.status_code}")
        return
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        client.get(path)
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    print(
        f"{name:<34} p50 {statistics.median(took):7.1f} ms  p95 {took[int(len(took) * 0.95)]:7.1f} ms  {len(answer.content) / 1024:6.1f} KiB",
        flush=True,
    )


def kept_open(
    client: httpx.Client, connection: psycopg.Connection[tuple[object, ...]], pages: int, seconds: float
) -> None:
    """Print what part of a core the database spends on the console while one and while several overviews are open."""
    for count in (1, pages):
        before, began = _spent(connection), time.monotonic()
        asked = 0
        while (now := time.monotonic() - began) < seconds:
            for _ in range(count):
                client.get("/", headers={"X-Live": "1"})
                asked += 1
            threading.Event().wait(max(0.0, EVERY - (time.monotonic() - began - now)))
        spent = (_spent(connection) - before) / (time.monotonic() - began)
        print(
            f"{count} overviews open for {seconds:g} s: {asked} looks, {spent * 100:.2f} % of a core of the database, "
            f"{spent / count * 100:.2f} % each",
            flush=True,
        )


def _spent(connection: psycopg.Connection[tuple[object, ...]]) -> float:
    """Return the seconds of processor time that the console's server processes have taken."""
    rows = connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'packhorse console'"
    ).fetchall()
    total = 0.0
    for (pid,) in rows:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / _TICKS
    return total


if __name__ == "__main__":
    main()
