"""What a look means, and how it is shown: calm while all is well, the worst first where it is not."""

import re
from datetime import timedelta
from typing import Any

import pytest
from tests.support.console_facts import NOON
from tests.unit.console.test_output import EVIL, printed

from packhorse.console.output import json_text
from packhorse.console.top.facts import (
    NO_BROKER,
    Ends,
    Failing,
    Look,
    Paused,
    Process,
    Rates,
    Run,
    Shard,
    Size,
    Waiting,
    rates,
)
from packhorse.console.top.render import as_json, screen
from packhorse.console.top.view import View, view_of
from packhorse.console.truth.around import Mark

G, T = "figures", "airline.aircraft"
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
OWNED = Shard(shard=0, owner="relay-1", published=100, oldest=None)
MARK = Mark(group=G, topic=T, partition=0, offset=90, moved_at=NOON)
ALIVE = Process(group=G, host="box", pid=42, seen_at=NOON, version="1.0", partitions=1)
ENDS = Ends(of={(T, 0): 100})


def look(**given: Any) -> Look:
    """Return a look at noon in which all is well."""
    values: dict[str, Any] = {
        "at": NOON,
        "drawn": 200,
        "shards": (OWNED,),
        "marks": (MARK,),
        "waiting": (Waiting(group=G),),
        "failing": (),
        "processes": (ALIVE,),
        "paused": (),
        "runs": (),
        "sizes": (Size(table="outbox", bytes=2048, rows=10),),
    }
    return Look(**{**values, **given})


def view(ends: Ends = ENDS, found: Rates | None = None, **given: Any) -> View:
    return view_of(look(**given), found or Rates(), ends)


def run(**given: Any) -> Run:
    values: dict[str, Any] = {
        "kind": "redrive",
        "id": 7,
        "state": "running",
        "group": None,
        "done": 50,
        "total": 200,
        "runner": "box:42",
        "live": True,
        "by": "ann (role ops)",
        "said": None,
    }
    return Run(**{**values, **given})


def test_rates_are_what_two_looks_differ_by() -> None:
    later = look(
        at=NOON + 2 * SECOND,
        drawn=300,
        shards=(Shard(shard=0, owner="relay-1", published=150, oldest=None),),
        marks=(
            Mark(group=G, topic=T, partition=0, offset=110, moved_at=NOON),
            Mark(group=G, topic=T, partition=1, offset=500, moved_at=NOON),
        ),
    )
    assert rates(look(), later) == Rates(written=50.0, published=25.0, done={G: 10.0})
    assert rates(None, later) == Rates()
    assert rates(later, look(at=NOON + 3 * SECOND)).written is None, "a counter that went back says nothing"


def test_lag_is_known_only_where_every_end_is() -> None:
    (group,) = view().groups
    assert (group.lag, group.lag_said) == (10, None)
    assert [(each.topic, each.partition, each.lag) for each in group.behind] == [(T, 0, 10)]
    two = (MARK, Mark(group=G, topic=T, partition=1, offset=5, moved_at=NOON))
    (group,) = view(marks=two).groups
    assert (group.lag, group.lag_said) == (None, "not known of all partitions")
    (group,) = view(ends=NO_BROKER).groups
    assert group.lag_said == "broker not set"


def test_all_is_well_is_said_calmly() -> None:
    made = view(found=Rates(written=3.0, published=3.0, done={G: 3.0}))
    assert made.wrong == ()
    text = printed(screen(made))
    assert "all is well" in text
    assert "!" not in text


def test_what_rests_in_quarantine_is_not_called_well() -> None:
    """Fails when the first line says that all is well while messages wait for a person."""
    resting = Failing(group=G, type="a.B", reason="permanent", messages=3, last_at=NOON)
    text = printed(screen(view(found=Rates(written=3.0, published=3.0, done={G: 3.0}), failing=(resting,))))
    assert "all flows; 3 in quarantine wait for a person" in text
    assert "all is well" not in text


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"shards": (Shard(shard=0, owner=None, published=0, oldest=SECOND),)}, "nobody owns it"),
        (
            {"shards": (Shard(shard=0, owner="a", published=0, oldest=2 * MINUTE),)},
            "the oldest row waits for 2 min",
        ),
        ({"shards": (Shard(shard=0, owner="a", published=0, oldest=None, trouble="away"),)}, "relay: away"),
        (
            {"shards": (Shard(shard=0, owner="a", published=0, oldest=None, holds=1, people=1),)},
            "1 holds wait for a person",
        ),
        ({"processes": ()}, "no process is alive, and messages wait"),
        (
            {
                "processes": (
                    Process(group=G, host="b", pid=1, seen_at=NOON - MINUTE, version=None, partitions=0),
                )
            },
            "no process is alive",
        ),
        (
            {
                "processes": (
                    Process(
                        group=G,
                        host="b",
                        pid=1,
                        seen_at=NOON,
                        version="1",
                        partitions=1,
                        stalls=("a.b[1], trouble",),
                    ),
                )
            },
            "does not move: a.b[1], trouble",
        ),
        (
            {
                "processes": (
                    Process(
                        group=G,
                        host="b",
                        pid=1,
                        seen_at=NOON,
                        version="1",
                        partitions=1,
                        stopped=("moved: brake",),
                    ),
                )
            },
            "stopped: moved: brake",
        ),
        (
            {"waiting": (Waiting(group=G, retries=1, due_at=NOON - 2 * MINUTE),)},
            "a retry is overdue by 2 min",
        ),
        (
            {"marks": (Mark(group=G, topic=T, partition=0, offset=90, moved_at=NOON - 5 * MINUTE),)},
            "a partition with lag has not moved for 5 min",
        ),
        (
            {"runs": (run(live=False),)},
            "redrive 7 is running and nobody works on it: packhorse redrive resume 7",
        ),
        ({"runs": (run(state="halted", said="3 came back"),)}, "redrive 7 is halted: 3 came back"),
    ],
)
def test_what_is_wrong_is_named_first(given: dict[str, Any], wrong: str) -> None:
    """Fails when something that needs a person is shown as a number among others."""
    made = view(**given)
    assert len(made.wrong) == 1
    assert wrong in made.wrong[0]
    lines = printed(screen(made)).splitlines()
    assert "1 to look at" in lines[0]
    assert wrong in lines[1]


def test_what_people_wanted_and_what_only_waits_is_no_alarm() -> None:
    made = view(
        paused=(Paused(group=G, what="the group", by="ann", why="import", at=NOON - MINUTE),),
        waiting=(Waiting(group=G, retries=5, due_at=NOON + MINUTE, parked_keys=10_000, paused_keys=2),),
        failing=(Failing(group=G, type="T", reason="permanent", messages=7, last_at=NOON - MINUTE),),
        runs=(run(),),
    )
    assert made.wrong == ()
    text = printed(screen(made))
    for part in (
        "figures: the group, by ann for 60 s: import",
        "figures: 2 keys",
        "10,000+",
        "figures: 7 of T, permanent",
        "redrive 7, running: 50 of 200 (25%), box:42",
    ):
        assert part in text


def test_json_is_the_view_with_ages_in_seconds() -> None:
    found = as_json(view(shards=(Shard(shard=0, owner=None, published=0, oldest=2 * MINUTE),)))
    assert found["oldest"] == 120.0
    assert found["groups"][0]["waiting"]["retries"] == 0
    assert '"lag": 10' in json_text(found)


def test_what_comes_from_elsewhere_is_printed_and_never_obeyed() -> None:
    made = view(
        shards=(Shard(shard=0, owner=EVIL, published=1, oldest=None, trouble=EVIL, holds=1, people=1),) * 2,
        waiting=(Waiting(group=EVIL, retries=1),),
        failing=(Failing(group=EVIL, type=EVIL, reason=EVIL, messages=1, last_at=NOON),),
        processes=(
            Process(
                group=EVIL,
                host=EVIL,
                pid=1,
                seen_at=NOON,
                version=EVIL,
                partitions=1,
                stalls=(EVIL,),
                wrong=(EVIL,),
                stopped=(EVIL,),
            ),
        ),
        paused=(Paused(group=EVIL, what=EVIL, by=EVIL, why=EVIL, at=NOON),),
        runs=(run(by=EVIL, said=EVIL, state="halted"),),
        ends=Ends(of={}, said=EVIL),
    )
    for text in (printed(screen(made, every=2.0)), json_text(as_json(made))):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\x9b\u202e]", text)
