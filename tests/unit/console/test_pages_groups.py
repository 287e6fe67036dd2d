"""What pages of groups and of the relay say, decided without a database and a browser."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.console.pages.grouping import (
    MOST_PLACES,
    places_shown,
    stages_of_pause,
    stages_of_resume,
    topics_of,
)
from packhorse.console.pages.holding import (
    next_said,
    orders_from,
    orders_text,
    scope_said,
    stages_of,
    standing_of,
)
from packhorse.console.processing.follows import Following, Follows, PauseAct
from packhorse.console.relaying.model import Held, HoldAct, HoldOrder, changed, order_of
from packhorse.console.top.places import PlaceView
from packhorse.core.errors import UsageError
from packhorse.processor.pausing.pauses import Pause
from packhorse.relay.holds import Fault, Hold, Kind, Scope
from packhorse.relay.model import Position
from packhorse.relay.orders.model import HoldView

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)
PAUSE = Pause("airline.aircraft", 1, "ann", "import", NOON)


def place(partition: int, lag: int | None, *, topic: str = "a", still: int = 5) -> PlaceView:
    end = None if lag is None else 100 + lag
    return PlaceView(
        topic=topic, partition=partition, watermark=100, end=end, lag=lag, still=timedelta(seconds=still)
    )


def view(**given_: Any) -> HoldView:
    """Return a hold of a key that waits for a person."""
    scope = given_.pop("scope", Scope(kind=Kind.KEY, aggregatetype="aircraft", aggregateid="secret"))
    fault = Fault(
        scope=scope,
        code=given_.pop("code", "too_large"),
        reason="too large",
        heals=given_.pop("heals", False),
        topic="airline.aircraft",
        id=given_.pop("row", "r"),
    )
    names = ("asked", "releasing", "tries", "sent")
    hold = Hold(
        fault=fault, position=Position(horizon="1:1:"), **{n: given_.pop(n) for n in names if n in given_}
    )
    values: dict[str, Any] = {
        "id": 12,
        "shard": 0,
        "hold": hold,
        "state": "held",
        "asked_at": None,
        "made_at": NOON,
        "changed_at": NOON,
        "ended_at": None,
        "owned": True,
    }
    return HoldView(**{**values, **given_})


def held(view_: HoldView, *acts: str) -> Held:
    made = tuple(HoldAct(act=act, actor="ann", at=NOON, why="mended") for act in acts)
    return Held(at=NOON, view=view_, waiting=None, acts=made)


def test_partitions_with_most_lag_stand_first_and_the_list_has_an_end() -> None:
    places = [place(n, n % 7) for n in range(100)] + [place(0, 3, topic="b")]
    shown = places_shown(places)
    assert (len(shown), shown[0].lag) == (MOST_PLACES, 6)
    assert [each.lag for each in shown] == sorted((each.lag or 0 for each in shown), reverse=True)
    assert [each.topic for each in places_shown(places, "b")] == ["b"]


def test_a_topic_is_late_only_with_lag_and_its_lag_is_known_only_of_all_its_partitions() -> None:
    quiet, late, half = topics_of(
        [
            place(0, 0, topic="a", still=900),
            place(0, 2, topic="b", still=900),
            place(0, 1, topic="c"),
            place(1, None, topic="c"),
        ]
    )
    assert (quiet.is_late, late.is_late, half.lag, half.partitions) == (False, True, None, 2)


@pytest.mark.case("O-07")
@pytest.mark.parametrize(
    ("given_", "acts", "done", "wrong"),
    [
        ({}, (), [], []),
        ({"asked": True}, ("release",), ["Asked"], []),
        ({"asked": True, "owned": False}, ("discard",), ["Asked"], []),
        ({"state": "releasing", "releasing": True, "sent": 3}, ("release",), ["Asked", "Releasing"], []),
        ({"state": "releasing", "heals": True}, (), ["Asked", "Releasing"], []),
        ({"state": "ended", "ended_at": NOON}, ("release",), ["Asked", "Releasing", "Released"], []),
        ({"tries": 1}, ("release",), ["Asked"], ["Releasing"]),
    ],
)
def test_asked_releasing_and_released_are_three_things(
    given_: dict[str, Any], acts: tuple[str, ...], done: list[str], wrong: list[str]
) -> None:
    """Fails when an order counts as a release, or a release that failed as one that goes on."""
    stages = stages_of(held(view(**given_), *acts))
    assert [each.name for each in stages if each.is_done] == done
    assert [each.name for each in stages if each.went_wrong] == wrong


@pytest.mark.parametrize(
    ("given_", "standing", "next_"),
    [
        ({}, "waits for a person", "give up the row"),
        ({"row": None}, "waits for a person", "then release it."),
        ({"heals": True}, "heals by itself", "looks by itself"),
        ({"asked": True}, "asked", "begins the release"),
        ({"asked": True, "owned": False}, "asked", "No relay owns"),
        ({"state": "releasing"}, "releasing", "leave in order"),
        ({"state": "ended"}, "released", "new rows flow"),
    ],
)
def test_how_a_hold_stands_and_what_comes_next_is_said(
    given_: dict[str, Any], standing: str, next_: str
) -> None:
    assert standing_of(view(**given_)) == standing
    assert next_ in next_said(view(**given_))


@pytest.mark.case("R-10")
@pytest.mark.parametrize(
    ("scope", "said"),
    [
        (Scope(kind=Kind.KEY, aggregatetype="x", aggregateid="secret"), "one key of x"),
        (Scope(kind=Kind.ROW, aggregatetype="x", message_id="m"), "one row of x"),
        (Scope(kind=Kind.PARTITION, aggregatetype="x", partition=2, partitions=4), "partition 2 of x"),
        (Scope(kind=Kind.TOPIC, aggregatetype="x"), "all of x"),
    ],
)
def test_what_is_held_is_said_without_the_key(scope: Scope, said: str) -> None:
    assert scope_said(view(scope=scope)) == said


@given(
    st.lists(
        st.builds(
            HoldOrder,
            id=st.integers(0, 2**63),
            code=st.sampled_from(["too_large", "header"]),
            row=st.none() | st.uuids().map(str),
            tries=st.integers(0, 9),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_an_order_goes_through_a_form_and_back(orders: list[HoldOrder]) -> None:
    assert orders_from(orders_text(orders)) == orders


@pytest.mark.parametrize(
    "text", ["", "x", "1 2 3", "a too_large 0 -", "1 too_large x -", "1 a 0 - ;", "²  a 1 -"]
)
def test_an_order_that_is_none_of_ours_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        orders_from(text)


@pytest.mark.case("O-01")
def test_an_order_is_of_what_was_shown() -> None:
    """Fails when another reason, another row or a failed release meanwhile goes unseen; one that heals tries by itself."""
    shown = order_of(view())
    assert changed(shown, view()) is None
    for now in (view(code="header"), view(row="other"), view(tries=1)):
        assert changed(shown, now) is not None
    assert changed(order_of(view(heals=True)), view(heals=True, tries=3)) is None


def process(*, seen: int, paused: int, partitions: int = 2, in_hand: int = 0) -> Follows:
    at = NOON + timedelta(seconds=seen)
    return Follows(host="box", pid=1, seen_at=at, partitions=partitions, paused=paused, in_hand=in_hand)


def following(*processes: Follows, pause: Pause | None = PAUSE, others: tuple[Pause, ...] = ()) -> Following:
    last = PauseAct(act="pause" if pause else "resume", actor="ann", at=NOON, why="x")
    return Following(at=NOON, pause=pause, others=others, last=last, processes=processes)


@pytest.mark.case("O-10")
@pytest.mark.parametrize(
    ("processes", "done"),
    [
        ((), ["Recorded"]),
        ((process(seen=3, paused=0, partitions=0),), ["Recorded"]),
        ((process(seen=-1, paused=2),), ["Recorded"]),
        ((process(seen=3, paused=1),), ["Recorded"]),
        ((process(seen=3, paused=2), process(seen=3, paused=0)), ["Recorded"]),
        ((process(seen=3, paused=2, in_hand=1),), ["Recorded", "Followed"]),
        (
            (process(seen=3, paused=2), process(seen=-9, paused=0, partitions=0)),
            ["Recorded", "Followed", "At rest"],
        ),
    ],
)
def test_a_pause_is_followed_by_what_processes_say_after_it(
    processes: tuple[Follows, ...], done: list[str]
) -> None:
    """Fails when an order counts as followed, or as at rest while something runs."""
    assert [each.name for each in stages_of_pause(following(*processes)) if each.is_done] == done


@pytest.mark.parametrize(
    ("processes", "others", "done"),
    [
        ((process(seen=3, paused=0),), (), True),
        ((process(seen=3, paused=1),), (), False),
        ((process(seen=3, paused=1),), (PAUSE,), True),
        ((process(seen=-3, paused=0),), (), False),
    ],
)
def test_a_resume_is_followed_unless_another_pause_holds(
    processes: tuple[Follows, ...], others: tuple[Pause, ...], done: bool
) -> None:
    stages = stages_of_resume(following(*processes, pause=None, others=others))
    assert stages[-1].is_done is done
