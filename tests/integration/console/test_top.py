"""`packhorse top` on real tables, a real broker and a real terminal."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.cli import packhorse, packhorse_process
from tests.support.console_rows import handled, recorded, rested
from tests.support.console_stages import Stages
from tests.support.road import Road
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints
from packhorse.processor import Context


def test_a_look_finds_what_the_tables_hold(database: str, connection: psycopg.Connection[Any]) -> None:
    """Fails when a number of the look is another than in the tables, or a dead process counts as alive."""
    stages = Stages(connection)
    head, follower = rested(connection, reason="permanent"), handled(connection, outcome="parked")
    stages.parked(head, by="ann (role ops)")
    stages.follows(follower, offset=5)
    stages.waits(handled(connection, outcome="retry"), due_in=timedelta(minutes=-5), sent=False)
    stages.watermark(1200)
    stages.process({"version": "1.2.3", "stalls": [{"topic": "a.b", "partition": 1, "cause": "trouble"}]})
    stages.process(ago=timedelta(hours=1))
    stages.pause(why="import")
    run = stages.redrive(head)
    ended = stages.redrive(head, member="good")
    recorded(connection)
    ran = packhorse("top", "--json", PACKHORSE_DATABASE_URL=database)
    assert ran.code == 0, ran.err
    found = ran.json()
    (group,) = found["groups"]
    waiting = group["waiting"]
    assert (waiting["retries"], waiting["parked_keys"], waiting["paused_keys"], waiting["followers"]) == (
        1,
        1,
        1,
        1,
    )
    assert (group["quarantined"], group["failing"][0]["reason"]) == (1, "permanent")
    assert (group["alive"], group["dead"], group["versions"]) == (1, 1, ["1.2.3"])
    assert (group["lag"], group["lag_said"]) == (None, "broker not set")
    assert [each["what"] for each in found["paused"]] == ["the group"]
    assert [(each["id"], each["done"], each["total"], each["live"]) for each in found["runs"]] == [
        (run, 0, 1, True),
        (ended, 1, 1, True),
    ]
    assert {each["table"] for each in found["sizes"]} == {
        "inbox",
        "outbox",
        "parked_message",
        "quarantined_message",
        "retry_message",
    }
    assert any("does not move: a.b[1], trouble" in text for text in found["wrong"])
    assert any("a retry is overdue by 5 min" in text for text in found["wrong"])
    assert found["oldest"] is not None


def test_empty_tables_and_no_terminal_make_one_calm_snapshot(database: str) -> None:
    ran = packhorse_process("top", PACKHORSE_DATABASE_URL=database)
    assert (ran.code, ran.err) == (0, "")
    assert "all is well" in ran.out
    assert "\x1b" not in ran.out


def test_what_flows_is_measured_between_two_looks(
    tmp_path: Path, database: str, stack: Endpoints, topic_prefix: str
) -> None:
    """Fails when lag, rates, or the version that a process says, do not come from tables and topics."""
    road = Road(tmp_path, database=database, endpoints=stack, prefix=topic_prefix)
    road.make_topics()

    @road.app.handler(road.moved)
    def moved(message: Any, ctx: Context) -> None:
        pass

    def group() -> Any:
        found = [each for each in road.run("top", "--json").json()["groups"] if each["group"] == road.group]
        return found[0] if found else None

    with road.relay(), road.processor():
        sent = [road.emit(number) for number in range(3)]
        eventually(
            lambda: (now := group()) and now["lag"] == 0 and now["alive"] == 1, what="all is done", timeout=40
        )
        assert group()["versions"] != ["unknown"]
        assert road.run("top", "--json").json()["relays"] == 1, "a relay of one shard is no member, and lives"
        for message_id in sent:
            assert road.status(message_id)["groups"][0]["standing"] == "done"
    assert "broker not set" not in road.run("top", "--once").out
    gone = road.run("top", "--json", PACKHORSE_KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1").json()
    assert gone["ends_said"] is not None


class Terminal:
    """A process of its own behind a real terminal."""

    def __init__(self, *arguments: str, **environ: str) -> None:
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (40, 160))
        self.slave = slave
        self.before = termios.tcgetattr(slave)
        self.seen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "packhorse.cli.main", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={name: value for name, value in os.environ.items() if not name.startswith("PACKHORSE_")}
            | {"TERM": "xterm-256color"}
            | environ,
            start_new_session=True,
            # its controlling terminal, so that Ctrl-C and a resize reach it as a person's do
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )

    def shows(self, text: str) -> bool:
        """Read what is there and say whether *text* was shown since the last time it was asked and found."""
        self._read()
        if text.encode() not in self.seen:
            return False
        self.seen = self.seen.partition(text.encode())[2]
        return True

    def _read(self) -> None:
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536)

    def _over(self) -> bool:
        self._read()
        return self.process.poll() is not None

    def leave(self, how: str | signal.Signals) -> int:
        """Press a key, or send a signal; return the exit code."""
        if isinstance(how, str):
            os.write(self.master, how.encode())
        else:
            self.process.send_signal(how)
        eventually(self._over, what="it leaves", timeout=20)
        self._read()
        return int(self.process.returncode)


@contextmanager
def terminal(*arguments: str, **environ: str) -> Iterator[Terminal]:
    made = Terminal(*arguments, **environ)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        os.close(made.master)
        os.close(made.slave)


@pytest.mark.parametrize("how", ["q", "\x03", signal.SIGINT, signal.SIGTERM])
def test_it_leaves_cleanly_and_restores_the_terminal(database: str, how: str | signal.Signals) -> None:
    """Fails when a way out leaves the terminal without echo, in the other screen, or with an error."""
    with terminal("top", "--every", "0.5", PACKHORSE_DATABASE_URL=database) as top:
        eventually(lambda: top.shows("\x1b[?1049h"), what="it takes the other screen", timeout=30)
        eventually(lambda: top.shows("all is well"), what="a look is shown", timeout=30)
        eventually(lambda: top.shows("all is well"), what="the next look is shown", timeout=30)
        assert termios.tcgetattr(top.slave) != top.before, "keys come without Enter"
        code = top.leave(how)
        assert code == 0
        assert b"\x1b[?1049l" in top.seen, "the screen before is shown again"
        assert termios.tcgetattr(top.slave) == top.before


def test_it_is_drawn_anew_for_another_size_and_goes_on_after_the_database_was_away(database: str) -> None:
    """Fails when a resize waits for the next look, or a database that is away for a moment ends it."""
    with terminal("top", "--every", "60", PACKHORSE_DATABASE_URL=database) as top:
        eventually(lambda: top.shows("all is well"), what="a look is shown", timeout=30)
        termios.tcsetwinsize(top.slave, (30, 100))
        eventually(lambda: top.shows("all is well"), what="it is drawn anew", timeout=10)
    with terminal("top", "--every", "0.5", PACKHORSE_DATABASE_URL=database) as top:
        eventually(lambda: top.shows("all is well"), what="a look is shown", timeout=30)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'packhorse console'"
                " AND datname = current_database()"
            )
        eventually(
            lambda: top.shows("it is asked again"), what="it says that the database is away", timeout=20
        )
        eventually(lambda: top.shows("all is well"), what="it goes on", timeout=20)
        assert top.leave("q") == 0
