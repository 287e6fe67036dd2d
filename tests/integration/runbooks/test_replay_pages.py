"""The pages about replays and rebuilding: their commands as they are written, on a real broker and database."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from confluent_kafka import Producer
from tests.support.cli import packhorse
from tests.support.pages import command
from tests.support.processing import GROUP, Ground, noting
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.schemas.codec import encode_message

CHECKOUT = Path(__file__).parents[3]
BACKFILL, DEPLOY = "runbooks/safe-backfill.md", "runbooks/replay-after-a-bad-deploy.md"
REBUILD = "how-to/rebuild-a-projection.md"


class Shell:
    """A shell that runs blocks of pages; what one sets the next one knows."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        for name, module in (("packhorse", "-m packhorse.cli.main"), ("python", "")):
            (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
            (folder / name).chmod(0o755)
        path = [*filter(None, [os.environ.get("PYTHONPATH")]), str(CHECKOUT)]
        self._environ = (
            os.environ
            | environ
            | {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(path)}
        )
        self._folder = folder
        self._set = ""

    def run(self, block: str) -> None:
        """Run *block*, which must end well."""
        done = self.tried(block)
        assert done.returncode == 0, (block, done.stdout)

    def tried(self, block: str) -> "subprocess.CompletedProcess[str]":
        """Run *block* and return how that went."""
        script = f"{self._set}\n{block}"
        if "REPLAY=" in block:
            self._set = next(line for line in block.splitlines() if line.startswith("REPLAY="))
        return subprocess.run(
            ["bash", "-uc", script],
            env=self._environ,
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    @contextmanager
    def daemon(self, block: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run the daemon that *block* starts meanwhile."""
        process = subprocess.Popen(
            ["bash", "-uc", "exec " + block.strip()], env=self._environ, cwd=self._folder
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def of(ground: Ground, page: str, name: str) -> str:
    """Return a block of *page* that is about the test's group, topic and hour."""
    block = command(page, name)
    for there, here in (
        ("--group figures", f"--group {GROUP}"),
        ("--topic airline.aircraft", f"--topic {ground.topic}"),
        ("2026-11-30T10:00Z", "2020-01-01T00:00Z"),
    ):
        block = block.replace(there, here)
    return block


def done_then_more(ground: Ground, done: range, more: range) -> None:
    """Let the group do some messages, and send more."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    for n in done:
        ground.send(n, key=b"%d" % (n % 2))
    with ground.processing(app):
        eventually(lambda: ground.watermark() == len(done), what="the first are done")
    for n in more:
        ground.send(n, key=b"%d" % (n % 2))


@pytest.mark.case("O-11")
def test_the_page_brings_what_a_reset_skipped(ground: Ground, tmp_path: Path) -> None:
    """Fails when a command of the page is not so any more, or what the reset skipped stays undone."""
    done_then_more(ground, range(4), range(4, 10))
    told = ("--to", "latest", "--why", "test", "--yes")
    skipped = packhorse(
        "offsets", "reset", "--group", GROUP, "--topic", ground.topic, *told, **ground.environ
    )
    assert "6 offsets that are not done are passed over" in skipped.out
    shell = Shell(tmp_path / "bin", ground.environ)
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        shell.run(of(ground, BACKFILL, "plan"))
        shell.run(of(ground, BACKFILL, "run"))
        assert sorted(ground.results()) == list(range(10))
        assert shell.tried(of(ground, BACKFILL, "stop")).returncode == 5
        shell.run(of(ground, BACKFILL, "prove"))
    assert ground.results()[:4] == [0, 1, 2, 3]


@pytest.mark.case("O-12")
def test_the_page_does_again_what_a_bad_version_did(ground: Ground, tmp_path: Path) -> None:
    """Fails when a command of the page is not so any more, or the wrong results stay."""
    done_then_more(ground, range(6), range(0))
    with psycopg.connect(ground.database, autocommit=True) as connection:
        connection.execute("DELETE FROM result")  # what the bad version wrote is taken out first
    shell = Shell(tmp_path / "bin", ground.environ)
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        shell.run(of(ground, DEPLOY, "plan"))
        shell.run(of(ground, DEPLOY, "run"))
        shell.run(of(ground, DEPLOY, "prove"))
    assert sorted(ground.results()) == list(range(6))


def test_a_projection_is_rebuilt_beside_the_old_one_and_swapped(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Fails when a command of the page is not so any more, when readers see a turnover that is neither the old nor the new one, or
    when the new one lacks an order that came meanwhile.
    """
    environ = ground.environ | {"PACKHORSE_NAMESPACE": ground.namespace}
    shell = Shell(tmp_path / "bin", environ)
    monkeypatch.setenv("PACKHORSE_NAMESPACE", ground.namespace)
    topic = f"{ground.namespace}.customer"
    orders = Orders(ground, topic)
    with psycopg.connect(ground.database, autocommit=True) as connection:
        shell.run("python -c 'from examples.projection.tables import OLD; print(OLD)' > old.sql")
        connection.execute((tmp_path / "bin/old.sql").read_bytes())
        sizes = "--partitions 1 --replication 1"
        shell.run(f"packhorse topics apply examples.projection.turnover:old {sizes}")
        orders.send(200)
        old = "packhorse processor run examples.projection.turnover:old"
        with shell.daemon(old), orders.coming():
            eventually(lambda: turnover(connection) == {"whole"}, what="readers see whole euros", timeout=60)
            make = command(REBUILD, "make").replace("turnover:new", f"turnover:new {sizes}")
            shell.run(make)
            with shell.daemon(command(REBUILD, "run")):
                lag = command(REBUILD, "lag").replace("shop.customer", topic)
                orders.pause()
                eventually(lambda: shell.tried(lag).returncode == 0, what="it has caught up", timeout=60)
                assert turnover(connection) == {"whole"}
                eventually(
                    lambda: shell.tried(command(REBUILD, "swap")).returncode == 0,
                    what="it is swapped",
                    timeout=60,
                )
                assert turnover(connection) == {"cents"}
                orders.send(10)
                wanted = orders.cents
                eventually(lambda: summed(connection) == wanted, what="every order is in it", timeout=30)
        shell.run(command(REBUILD, "retire"))
        assert summed(connection) == orders.cents
        connection.execute("DROP VIEW turnover; DROP TABLE turnover_v2")


def turnover(connection: "psycopg.Connection[tuple[object, ...]]") -> set[str]:
    """Return what readers see: whole euros, cents, or both, which is never so."""
    rows = connection.execute("SELECT DISTINCT scale(euros) > 0 FROM turnover").fetchall()
    return {"cents" if row[0] else "whole" for row in rows}


def summed(connection: "psycopg.Connection[tuple[object, ...]]") -> int:
    row = connection.execute("SELECT round(sum(euros) * 100)::bigint FROM turnover").fetchone()
    return int(str(row[0])) if row is not None and row[0] is not None else 0


class Orders:
    """Orders of customers on the topic; `cents` is what they sum up to."""

    def __init__(self, ground: Ground, topic: str) -> None:
        from examples.projection.messages import SCHEMA, Ordered

        self._made, self._topic = Ordered, topic
        url = ground.environ["PACKHORSE_REGISTRY_URL"]
        answer = httpx.post(
            f"{url}/subjects/{topic}-shop.Ordered/versions", json={"schema": SCHEMA}, timeout=20
        )
        self._schema_id = int(answer.json()["id"])
        self._producer = Producer({"bootstrap.servers": ground.kafka, "linger.ms": 0})
        self._over, self._held = threading.Event(), threading.Event()
        self.cents = 0

    def send(self, count: int) -> None:
        """Send *count* orders of 1.99 each, and wait until they stand."""
        for n in range(count):
            customer = f"c{n % 7}"
            payload = encode_message(self._made(customer=customer, cents=199), self._schema_id)
            message_id = SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())
            headers: list[tuple[str, str | bytes | None]] = [
                ("id", str(message_id).encode()),
                ("type", b"shop.Ordered"),
            ]
            self._producer.produce(self._topic, payload, customer.encode(), headers=headers)
            self.cents += 199
        self._producer.flush(20)

    def pause(self) -> None:
        """Let no more come for now."""
        self._held.set()

    @contextmanager
    def coming(self) -> Iterator[None]:
        """Let orders come while the block runs, until they are paused."""

        def come() -> None:
            while not self._over.wait(0.02):
                if not self._held.is_set():
                    self.send(1)

        thread = threading.Thread(target=come)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join(20)
