"""Redrives of sets and replays, done on the pages alone: what the page offers, what it says meanwhile, and what the tables have."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from confluent_kafka import Producer
from tests.support.console_api import Console, console_on, token_for
from tests.support.console_rows import handled, new_id, one, rested
from tests.support.console_stages import GROUP, KEY, TOPIC, Stages
from tests.support.played_group import Group, shell_of
from tests.support.sitting import Sitter, text_of
from tests.support.topics import make_topic
from tests.support.wait import eventually

from packhorse.console.acting.postgres import Database, opened
from packhorse.local.settings import Endpoints
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.record import key_hash

WHY = "fixed in 1.4.2"


@pytest.fixture
def console(database: str) -> Iterator[Console]:
    with console_on(database) as found:
        yield found


@pytest.fixture
def olga(console: Console, connection: psycopg.Connection[Any]) -> Iterator[Sitter]:
    """Provide somebody who may act, at the pages."""
    with Sitter(console, token_for(connection, "operator", name="olga")) as sitter:
        yield sitter


@pytest.fixture
def tables(database: str) -> Iterator[Database]:
    with opened(database, schema="packhorse", timeout=10) as found:
        yield found


class RedrivePage:
    """The page of one redrive, which *olga* has frozen on the page for it."""

    def __init__(self, olga: Sitter, **how: str) -> None:
        self._olga = olga
        form = olga.form("/quarantine/redrive?group=figures")
        self.path = olga.send(form, **{"rate": "100000", **how}).headers["location"]
        self.number = int(self.path.rpartition("/")[2])

    def does(self, act: str) -> None:
        """Confirm what the page offers."""
        assert f'href="{self.path}/{act}"' in self._olga.get(self.path).text, f"{act} is not offered"
        done = self._olga.send(self._olga.form(f"{self.path}/{act}"), why=WHY)
        assert done.headers["location"] == self.path, text_of(done)

    def says(self, query: str = "") -> str:
        """Return what it says now."""
        return text_of(self._olga.get(self.path + query))


def driven(tables: Database, number: int, group: Group, *, steps: int = 1_000) -> None:
    """Let a runner work on the redrive to its end, or for some steps, while the group does what it is asked for."""
    shell, now = shell_of(tables, number), 0.0
    for _ in range(steps):
        if shell.step(now := now + 1).over:
            return
        group.run()


def redrives_of(connection: psycopg.Connection[Any]) -> list[UUID]:
    """Return the messages for which a redrive is on the record, in the order of the record."""
    rows = connection.execute(
        "SELECT message_id FROM packhorse.audit WHERE act = 'redrive' ORDER BY id"
    ).fetchall()
    return [row[0] for row in rows]


@pytest.mark.case("O-03")
def test_stages_and_rate_are_chosen_and_a_halt_is_said_with_its_reason_and_what_can_be_done(
    olga: Sitter, tables: Database, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the page hides that a run halted by itself, why, or how much is left; or offers no way on from there."""
    for n in range(40):
        rested(connection, key=b"%d" % n)
    page = RedrivePage(olga, stages="1, 5", rate="2000")
    assert "Set40 messages; what came later is not in it" in page.says()
    assert "Rateat most 2,000 a second" in page.says()
    offer = text_of(olga.get(f"{page.path}/run"))
    assert "in stages of 1, 5 and then five times as many each, at most 2000 a second" in offer
    assert "It halts by itself when the failures come back" in offer
    page.does("run")
    group = Group(connection)
    driven(tables, page.number, group, steps=2)
    group.broken = True
    connection.execute("UPDATE packhorse.redrive SET lease_until = NULL")
    driven(tables, page.number, group)
    said = page.says()
    assert "halted" in said
    assert "failed again" in said
    assert "waiting" in said
    assert f"redrive {page.number} is halted" in text_of(olga.get("/"))
    asked = len(redrives_of(connection))
    assert 1 < asked < 40
    group.broken = False
    page.does("resume")
    driven(tables, page.number, group)
    assert "ended: all members are dealt with" in page.says()
    assert len(redrives_of(connection)) == len(set(redrives_of(connection))) == 40


@pytest.mark.case("O-04")
def test_a_run_that_nobody_works_on_any_more_is_said_so_with_its_progress_and_goes_on_where_it_was(
    olga: Sitter, tables: Database, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a killed run looks as if it went on, its progress is lost, or a member is redriven twice or left out."""
    ids = {rested(connection, key=b"%d" % n) for n in range(40)}
    page, group = RedrivePage(olga, stages="3"), Group(connection)
    page.does("run")
    driven(tables, page.number, group, steps=2)
    connection.execute("UPDATE packhorse.redrive SET lease_until = clock_timestamp() - interval '1 minute'")
    assert "running, and nobody works on it" in page.says()
    done = one(connection, "SELECT count(*) FROM packhorse.inbox WHERE outcome = 'done'")
    assert 0 < done < 40
    assert f"{done} done by an outcome" in page.says()
    assert f"redrive {page.number} is running and nobody works on it" in text_of(olga.get("/"))
    driven(tables, page.number, group)
    assert "40 done by an outcome, 0 failed again" in page.says()
    assert sorted(redrives_of(connection)) == sorted(ids)


@pytest.mark.case("O-05")
def test_a_member_that_the_broker_does_not_take_is_named_with_the_reason_and_the_rest_is_done(
    olga: Sitter, tables: Database, connection: psycopg.Connection[Any]
) -> None:
    """Fails when one that can't be sent is not named, keeps the others from going, or has to be unlocked by hand."""
    stuck, *rest = (rested(connection, key=b"%d" % n) for n in range(4))
    page = RedrivePage(olga, stages="10", most_failures="3")
    page.does("run")
    shell, now = shell_of(tables, page.number), 0.0
    while len(redrives_of(connection)) < 4:
        shell.step(now := now + 1)
    connection.execute(
        "UPDATE packhorse.quarantined_message SET redrive_refused = 'MSG_SIZE_TOO_LARGE' WHERE message_id = %s",
        (stuck,),
    )
    assert "1 the broker does not take" in page.says()
    connection.execute("UPDATE packhorse.inbox SET outcome = 'done' WHERE message_id <> %s", (stuck,))
    while not shell.step(now := now + 5).over:
        assert now < 500, page.says()
    left = page.says("?state=left")
    assert str(stuck) in left
    assert "the broker refuses it: MSG_SIZE_TOO_LARGE; it stays ordered, and goes once that is mended" in left
    assert not any(str(each) in left for each in rest)
    assert "3 done by an outcome" in page.says()


@pytest.mark.case("O-06")
def test_members_of_a_key_stand_in_their_first_order_and_what_waits_behind_is_seen_to_follow(
    olga: Sitter, tables: Database, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the page shows another order than the one in which they take effect, or not what waits behind."""
    hashed = key_hash(KEY.encode())
    third, first, second = (rested(connection, key=KEY.encode(), offset=at) for at in (30, 10, 20))
    connection.execute("UPDATE packhorse.quarantined_message SET key_hash = %s", (hashed,))
    stages = Stages(connection)
    stages.parked(first)
    behind = [handled(connection, outcome="parked", offset=at) for at in (40, 50)]
    for at, each in zip((40, 50), behind, strict=True):
        stages.follows(each, offset=at)
    assert "Wait behind it2" in text_of(olga.get(f"/quarantine/{first}?group={GROUP}&topic={TOPIC}"))
    key_page = text_of(olga.get(f"/keys?group={GROUP}&topic={TOPIC}&key_hash={hashed}"))
    assert key_page.index(str(behind[0])) < key_page.index(str(behind[1]))
    page, group = RedrivePage(olga), Group(connection)
    said = page.says()
    assert said.index(str(first)) < said.index(str(second)) < said.index(str(third))
    page.does("run")
    driven(tables, page.number, group)
    assert "3 done by an outcome" in page.says()
    assert group.ran == [first, second, third, *behind]
    for each in (first, *behind):
        assert "done" in text_of(olga.get(f"/messages/{each}"))


@pytest.fixture
def with_broker(
    database: str, stack: Endpoints, topic_prefix: str, connection: psycopg.Connection[Any]
) -> Iterator[tuple[Sitter, str]]:
    """Provide somebody at the pages of a console with a broker, and a topic of three messages that the group has done."""
    topic = f"{topic_prefix}.flights"
    make_topic(stack.kafka_bootstrap, topic, partitions=1)
    producer = Producer({"bootstrap.servers": stack.kafka_bootstrap})
    for number in range(3):
        message_id = new_id()
        producer.produce(topic, key=b"k%d" % number, value=b"x", headers=[("id", str(message_id).encode())])
        handled(connection, message_id, topic=topic, partition=0, offset=number)
    assert producer.flush(30) == 0
    topic_id = BrokerQuestions({"bootstrap.servers": stack.kafka_bootstrap}).topic_id(topic)
    connection.execute(
        'INSERT INTO packhorse.watermark (group_id, topic_id, partition, topic, "offset", incarnation)'
        " VALUES (%s, %s, 0, %s, 3, '1/1')",
        (GROUP, topic_id, topic),
    )
    with (
        console_on(
            database, kafka_bootstrap_servers=stack.kafka_bootstrap, namespace=topic_prefix
        ) as console,
        Sitter(console, token_for(connection, "operator", name="olga")) as olga,
    ):
        eventually(
            lambda: olga.get(f"/groups/{GROUP}/offsets?topic={topic}").status_code == 200,
            what="the broker's coordinator is ready",
            timeout=30,
        )
        yield olga, topic


def planned(olga: Sitter, topic: str, **more: str) -> str:
    """Plan a replay of the whole topic by the form, and return the plan's page."""
    sheet = olga.form(f"/replays/new?group={GROUP}&topic={topic}&partition=0&from_offset=0")
    answer = olga.send(sheet, rate="50", **more)
    assert answer.status_code == 303, text_of(answer)
    path: str = answer.headers["location"]
    return path


@pytest.mark.case("O-11")
def test_a_range_is_replayed_as_a_run_of_its_own_and_the_live_group_stays_where_it_is(
    with_broker: tuple[Sitter, str], connection: psycopg.Connection[Any]
) -> None:
    """Fails when progress, rate, stop or resume of a replay is not on its page, or the live group's position is touched."""
    olga, topic = with_broker
    path = planned(olga, topic)
    assert "3 offsets read" in text_of(olga.get(path))
    assert "Rateat most 50.0 a second" in text_of(olga.get(path))
    assert "The offsets of the live group are not touched" in text_of(olga.get(f"{path}/run"))
    for act, state in (("run", "running"), ("pause", "paused"), ("resume", "running")):
        assert f'href="{path}/{act}"' in olga.get(path).text
        assert olga.send(olga.form(f"{path}/{act}"), why=WHY).headers["location"] == path
        assert f"Replay {path.rpartition('/')[2]} {state}" in text_of(olga.get(path))
    connection.execute("UPDATE packhorse.replay_partition SET position = first + 2")
    assert "2 of 3 offsets passed" in text_of(olga.get(path))
    olga.send(olga.form(f"{path}/stop"), why="enough")
    assert "stopped by olga (token): enough" in text_of(olga.get(path))
    assert one(connection, 'SELECT "offset" FROM packhorse.watermark') == 3
    assert "committed" in text_of(olga.get(f"/groups/{GROUP}/offsets?topic={topic}"))


@pytest.mark.case("O-12")
def test_what_is_done_is_left_out_unless_somebody_says_again_and_has_seen_what_that_means(
    with_broker: tuple[Sitter, str],
) -> None:
    """Fails when a page that means to do things once more looks like one that does not."""
    olga, topic = with_broker
    path = planned(olga, topic)
    assert "Done beforeleft out as duplicates" in text_of(olga.get(path))
    assert "Messages that are done already are left out as duplicates" in text_of(olga.get(f"{path}/run"))
    form = text_of(olga.get("/replays/new"))
    assert "Do again what is done: every effect happens once more" in form
    path = planned(olga, topic, again="true")
    for page in (path, f"{path}/run"):
        assert "every effect happens again" in text_of(olga.get(page)), page
    assert "Messages that are done are done once more" in text_of(olga.get(f"{path}/run"))
