"""Pauses on real tables: on the record with their right, and never of what is not there."""

import threading
from typing import Any

import psycopg
import pytest
from tests.support.cli import Ran, packhorse
from tests.support.roles import Roles

WHY = ("--why", "bad import")


@pytest.fixture
def connection(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Provide the connection to a database in which the group has read two partitions."""
    connection.execute(
        'INSERT INTO packhorse.watermark (group_id, topic_id, partition, topic, "offset", incarnation)'
        " SELECT 'figures', gen_random_uuid(), n, 'airline.aircraft', 7, 'x' FROM generate_series(0, 1) AS n"
    )
    return connection


def processor(url: str, *arguments: object, **environ: str) -> Ran:
    return packhorse("processor", *arguments, **{"PACKHORSE_DATABASE_URL": url, **environ})


def acts(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT act, group_id, topic, detail, why FROM packhorse.audit WHERE act IN ('pause', 'resume') ORDER BY id"
    ).fetchall()


@pytest.mark.case("O-10")
def test_what_is_not_there_is_not_paused_unless_it_is_to_come(
    connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when a mistyped name is paused: somebody would believe that the work stands."""
    for where, said in [
        (("--group", "figurse"), "no group figurse is known"),
        (("--group", "figures", "--topic", "airline.aircrfat"), "no topic airline.aircrfat is known"),
        (("--group", "figures", "--topic", "airline.aircraft", "--partition", 7), "no partition 7"),
    ]:
        refused = processor(database, "pause", *where, *WHY)
        assert (refused.code, said in refused.err) == (6, True)
        assert acts(connection) == []
        assert connection.execute("SELECT count(*) FROM packhorse.pause").fetchone() == (0,)
    ahead = processor(database, "pause", "--group", "figurse", *WHY, "--anyway")
    assert (ahead.code, ahead.out) == (0, "paused: group figurse\n")
    for command in (
        ("processor", "paused", "--group", "nosuch"),
        ("quarantine", "list", "--group", "nosuch"),
    ):
        unknown = packhorse(*command, PACKHORSE_DATABASE_URL=database)
        assert (unknown.code, "no group nosuch is known here" in unknown.err) == (6, True)


@pytest.mark.case("O-14")
def test_a_pause_is_on_the_record_once_and_says_who_why_and_since_when(
    connection: psycopg.Connection[Any], database: str
) -> None:
    where = ("--group", "figures", "--topic", "airline.aircraft", "--partition", 1)
    assert processor(database, "pause", *where, *WHY, "--actor", "ann").code == 0
    again = processor(database, "pause", *where, "--why", "me too", "--json")
    assert again.json()["was_paused"] is True
    listed = processor(database, "paused", "--group", "figures", "--json").json()
    assert processor(database, "paused", "--json").json() == {"groups": [listed]}
    assert processor(database, "paused").out.startswith("figures: airline.aircraft[1] paused by ann")
    assert "figures: " in processor(database, "status").out
    assert [(row["topic"], row["partition"], row["why"]) for row in listed["pauses"]] == [
        ("airline.aircraft", 1, "bad import")
    ]
    assert listed["pauses"][0]["by"].startswith("ann (claimed by ")
    wider = processor(database, "resume", "--group", "figures", "--why", "mended")
    assert (wider.code, wider.out.splitlines()[0]) == (1, "was not paused, nothing was done: group figures")
    assert wider.out.splitlines()[1].startswith("still held: airline.aircraft[1] paused by ann")
    assert processor(database, "resume", *where, "--why", "mended").code == 0
    assert processor(database, "resume", *where, "--why", "mended").code == 1
    assert acts(connection) == [
        ("pause", "figures", "airline.aircraft", {"partition": 1}, "bad import"),
        ("resume", "figures", "airline.aircraft", {"partition": 1}, "mended"),
    ]


@pytest.mark.case("O-13")
@pytest.mark.parametrize("by", ["role", "token"])
def test_who_may_only_see_may_not_pause_or_resume(
    connection: psycopg.Connection[Any], database: str, roles: Roles, by: str
) -> None:
    """Fails when the right is checked in the command alone, or after the effect."""
    assert processor(database, "pause", "--group", "figures", *WHY).code == 0
    if by == "role":
        ann = roles.make("operator")
        connection.execute("UPDATE packhorse.operator SET role = 'viewer'")
        who = {"url": roles.url(ann)}
    else:
        made = packhorse("operators", "token", "eve", "--role", "viewer", PACKHORSE_DATABASE_URL=database)
        who = {"url": database, "PACKHORSE_CONSOLE_TOKEN": made.out.strip()}
    for act, topic in (("pause", "airline.aircraft"), ("resume", None)):
        where = ("--group", "figures", *(("--topic", topic) if topic else ()))
        refused = processor(who["url"], act, *where, *WHY, **{k: v for k, v in who.items() if k != "url"})
        assert (refused.code, f"may not {act}" in refused.err) == (8, True)
    assert connection.execute("SELECT topic FROM packhorse.pause").fetchall() == [("",)]
    assert [act for act, *_ in acts(connection)] == ["pause"]


@pytest.mark.case("P7")
def test_of_many_who_pause_at_once_one_is_on_the_record(
    connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when it is looked first and paused then: two would be told that they did it."""
    from packhorse.console.acting.person import this_process
    from packhorse.console.acting.postgres import opened
    from packhorse.console.pausing.postgres import PausingTables
    from packhorse.processor.pausing.pauses import Scope

    start, done = threading.Barrier(4), list[bool]()

    def pause(scope: Scope) -> None:
        with opened(database, schema="packhorse", timeout=30) as tables:
            start.wait()
            done.append(
                PausingTables(tables).pause(this_process(), "figures", scope, key_partition=0, why="test")
            )

    for scope in (Scope(topic="airline.aircraft"), Scope(topic="airline.aircraft", key=b"k")):
        threads = [threading.Thread(target=pause, args=(scope,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(done) == [False] * 6 + [True] * 2
    assert [act for act, *_ in acts(connection)] == ["pause", "pause"]
    key = processor(database, "paused", "--group", "figures", "--json").json()["keys"][0]
    assert (key["followers"], key["why"], key["by"].endswith("(role postgres)")) == (0, "test", True)
    released = processor(
        *(
            database,
            "resume",
            "--group",
            "figures",
            "--topic",
            "airline.aircraft",
            "--key-hash",
            key["key_hash"],
        ),
        *("--why", "mended"),
    )
    assert released.code == 0
    left = connection.execute("SELECT paused, paused_by, paused_at FROM packhorse.parked_key").fetchall()
    assert left == [(False, None, None)]
