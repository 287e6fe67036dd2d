"""What a page makes of values, charts and the past: nothing that was planted runs, nothing misleads."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.asgi import answer_of

from packhorse.console.api.fastapi.app import application
from packhorse.console.api.hosts import Hosts
from packhorse.console.pages.assets import address_of, asset_at, assets
from packhorse.console.pages.charts import bars_of, chart_of
from packhorse.console.pages.jinja import environment
from packhorse.console.pages.running import (
    redrive_acts,
    redrive_offer,
    redrive_stages,
    segments_of,
)
from packhorse.console.pages.showing import FILTERS, lasted, moment, shown
from packhorse.console.redriving.records import Check, Progress, RedriveRow, RunState
from packhorse.console.top.facts import Look
from packhorse.console.top.flowing import APART, FRESH, MOST_BEFORE, PAST, Flow, Watching
from packhorse.console.top.service import Top
from packhorse.core.rights import Role, Standing

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
OPERATOR = Standing(name="olga", role=Role.OPERATOR)


@given(st.text(max_size=300))
def test_text_on_a_page_is_escaped_and_holds_nothing_invisible(text: str) -> None:
    """Fails when a key or an error can become an element, or hide what it says."""
    made = environment().from_string("<b>{{ text }}</b>").render(text=text)
    inside = made.removeprefix("<b>").removesuffix("</b>")
    assert not re.search("[<>\"']", inside)
    assert all(character.isprintable() or character == "\n" for character in inside)


def test_markup_of_ours_stays_and_what_is_put_into_it_does_not_run() -> None:
    assert str(moment(NOON)).startswith("<time ")
    made = environment().from_string("{{ at | moment(form) }}").render(at=NOON, form='"><script>')
    assert "<script>" not in made


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(Exception, match="missing"):
        environment().from_string("{{ missing }}").render()


def test_every_template_compiles() -> None:
    names = environment().list_templates()
    assert "overview.html" in names
    for name in names:
        environment().get_template(name)


@given(st.timedeltas(min_value=timedelta(), max_value=timedelta(days=9_000)))
def test_spans_are_short(span: timedelta) -> None:
    assert len(lasted(span)) <= 8


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_filters_say_of_nothing_that_there_is_nothing(name: str) -> None:
    if name not in {"ago", "data", "key"}:
        assert str(FILTERS[name](None)) == "–"
    assert shown(None) == ""


points = st.lists(st.tuples(st.floats(0, 1), st.none() | st.floats(0, 1e12, allow_nan=False)), max_size=50)


@given(points)
def test_lines_stay_in_their_frame(found: list[tuple[float, float | None]]) -> None:
    chart = chart_of([("a", found)], width=600, height=96)
    numbers = [float(text) for text in re.findall(r"[\d.]+(?=,)", chart.lines[0].path)]
    heights = [float(text) for text in re.findall(r"(?<=,)-?[\d.]+", chart.lines[0].path)]
    assert all(0 <= x <= 600 for x in numbers)
    assert all(0 <= y <= 96 for y in heights)
    assert chart.is_empty == all(value is None for _, value in found)


@given(st.lists(st.integers(0, 10**9), max_size=40))
def test_bars_stay_in_their_frame_and_show_whatever_is_there(values: list[int]) -> None:
    for bar, value in zip(bars_of([(str(n), n) for n in values]), values, strict=True):
        assert 0 <= bar.y <= 96
        assert bar.y + bar.height <= 96.2
        assert (bar.height > 0) == (value > 0)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=8))
def test_segments_fill_the_bar(counts: list[int]) -> None:
    made = segments_of([(str(n), count, "") for n, count in enumerate(counts)])
    assert len(made) == sum(1 for count in counts if count)
    if made:
        assert made[0].x == 0
        assert abs(made[-1].x + made[-1].width - 100) < 0.5
        assert all(one.width > 0 for one in made)


def test_assets_are_asked_for_by_what_they_hold_and_nothing_else_is_there() -> None:
    """Fails when a path leads out of the folder, or an old style is kept for ever."""
    style = assets()["style.css"]
    assert asset_at(address_of("style.css")) == style
    for path in (
        "/assets/style.css",
        "/assets/0/style.css",
        "/assets/../style.css",
        "/assets/x/base.html",
        "",
    ):
        assert asset_at(path) is None
    assert not re.search(r"https?://|data:", style.body.decode())


def row(state: RunState = RunState.PREVIEWED) -> RedriveRow:
    return RedriveRow(
        id=7,
        state=state,
        wanted={"group": "figures"},
        checks=(Check(code="stale", count=2, said="are older than a week"),),
        members=4,
        rate=500,
        stages=(1, 5),
        stage=0,
        most_failures=None,
        previewed_by="ann",
        previewed_at=NOON,
        expires_at=NOON + timedelta(hours=1),
        expired=False,
        confirmed_by=None,
        confirmed_at=None,
        why=None,
        said=None,
        runner=None,
        worked_on=False,
        changed_at=NOON,
        ended_at=None,
    )


def done(progress: Progress, state: RunState = RunState.RUNNING) -> list[bool]:
    confirmed = replace(row(state), confirmed_by="olga", confirmed_at=NOON, why="x")
    return [stage.is_done for stage in redrive_stages(confirmed, progress)]


@pytest.mark.case("O-07")
@pytest.mark.parametrize(
    ("progress", "wanted"),
    [
        (Progress(waiting=4), [True, True, False, False, False]),
        (Progress(waiting=3, asked=1), [True, True, False, False, False]),
        (Progress(asked=4), [True, True, True, False, False]),
        (Progress(asked=4, sent=4), [True, True, True, True, False]),
        (Progress(asked=1, good=3, sent=4), [True, True, True, True, False]),
        (Progress(good=3, bad=1, sent=4), [True, True, True, True, True]),
    ],
)
def test_asked_sent_and_proved_are_three_things(progress: Progress, wanted: list[bool]) -> None:
    """Fails when a page calls done what is only asked for, or sent what waits."""
    assert done(progress) == wanted


def test_what_can_be_done_follows_from_the_state() -> None:
    assert [act.value for act in redrive_acts(row())] == ["run", "abort"]
    assert redrive_acts(replace(row(), expired=True)) == ()
    assert [act.value for act in redrive_acts(row(RunState.HALTED))] == ["resume", "abort"]
    assert redrive_acts(row(RunState.ENDED)) == ()


def test_an_offer_names_the_number_and_what_speaks_against_it() -> None:
    offer = redrive_offer(row(), redrive_acts(row())[0], OPERATOR)
    assert offer.button == "Redrive 4 messages"
    assert offer.warnings == ("2 are older than a week",)
    assert (offer.may, offer.action) == (True, "/redrives/7/run")
    assert not redrive_offer(row(), redrive_acts(row())[0], Standing(name="v", role=Role.VIEWER)).may


class Time:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


class Tables:
    """Looks that count how often they were made."""

    def __init__(self, time: Time) -> None:
        self.time, self.looks = time, 0

    def look(self, person: object) -> Look:
        del person
        self.looks += 1
        return Look(
            at=self.time.now(),
            drawn=int(self.time.seconds * 5),
            shards=(),
            marks=(),
            waiting=(),
            failing=(),
            processes=(),
            paused=(),
            runs=(),
            sizes=(),
        )


def test_open_pages_share_a_look_and_the_past_is_bounded() -> None:
    """Fails when ten open pages cost the database what ten looks do, or memory grows with time."""
    time = Time()
    tables, flow = Tables(time), Flow(time)
    top = Top(tables, None)  # type: ignore[arg-type]  # nobody is asked who it is
    for _ in range(10):
        flow.view(top)
    assert tables.looks == 1
    watching = Watching(flow, lambda: top, time)
    for _ in range(3 * int(PAST.total_seconds())):
        time.seconds += 1
        watching.look()
    assert tables.looks <= 3 * PAST.total_seconds() / APART + 2
    past = flow.past()
    assert len(past) <= PAST.total_seconds() / APART + 1
    assert past[-1].written == pytest.approx(5)
    time.seconds += FRESH
    flow.view(top)
    assert flow.past()[-1].at >= past[-1].at


def test_a_look_that_is_long_ago_makes_no_rates() -> None:
    """Fails when what was written since yesterday is told as the rate of now."""
    time = Time()
    top, flow = Top(Tables(time), None), Flow(time)  # type: ignore[arg-type]  # nobody is asked who it is
    flow.view(top)
    time.seconds += MOST_BEFORE.total_seconds() + 1
    assert flow.view(top).written is None
    time.seconds += MOST_BEFORE.total_seconds()
    assert flow.view(top).written == pytest.approx(5)


@pytest.mark.parametrize(("role", "status"), [(Role.VIEWER, 200), (None, 403)])
def test_the_api_tells_of_the_look_that_pages_show(role: Role | None, status: int) -> None:
    """Fails when the API has looks and rates of its own, or shows one to somebody who may not see it."""
    time = Time()
    tables, flow = Tables(time), Flow(time)
    top = Top(tables, None)  # type: ignore[arg-type]  # nobody is asked who it is
    flow.view(top)

    service: Any = SimpleNamespace(top=top)
    app = application(
        lambda _: service,
        lambda _: Standing(name="vera", role=role),
        hosts=Hosts("127.0.0.1", ""),
        looks=flow,
        ready=lambda: True,
        clock=time,
    )
    token = (b"authorization", b"Bearer phk_" + b"t" * 43)
    assert (answer_of(app, "GET", "/api/v1/top", token).status, tables.looks) == (status, 1)
