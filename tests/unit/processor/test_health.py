"""Health is judged from signs of life, and told over HTTP without a message's data."""

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from packhorse.core.errors import SettingsError
from packhorse.processor.health.http import HealthServer
from packhorse.processor.health.judging import Facts, health_of
from packhorse.processor.health.vitals import Vitals


def facts(**given: object) -> Facts:
    fields: dict[str, object] = {
        "started": 0.0,
        "beats": {"loop": 99.0},
        "dead": {},
        "assigned": True,
        "answered": 99.0,
    }
    return Facts(**(fields | given))  # type: ignore[arg-type]


@pytest.mark.case("X-04")
@pytest.mark.parametrize(
    ("given", "live", "ready", "words"),
    [
        ({}, True, True, ""),
        ({"beats": {"loop": 60.0}}, False, False, "loop has not turned for 40 s"),
        ({"dead": {"packhorse-lane-1": ""}}, False, False, "packhorse-lane-1 has ended: nobody asked"),
        ({"stalled": ["a.b[3]: reading"]}, False, False, "does not move: a.b[3]"),
        ({"answered": 80.0}, True, False, "the database has not answered for 20 s"),
        ({"answered": None}, True, False, "the database has not answered yet"),
        ({"leaving": True}, True, False, "asked to stop"),
        ({"beats": {}}, True, False, "not begun to read"),
        ({"assigned": False}, True, True, ""),
        ({"assigned": False, "started": 80.0}, True, False, "not joined the group"),
    ],
)
def test_a_process_is_judged(given: dict[str, object], live: bool, ready: bool, words: str) -> None:
    """Fails when what is away makes a process not live, or when one that died counts as well."""
    found = health_of(facts(**given), now=100.0)
    assert (found.live, found.ready) == (live, ready)
    assert words in " ".join((*found.not_live, *found.not_ready))


@pytest.mark.case("P-29")
def test_a_loop_that_ends_by_itself_is_dead_and_one_that_was_asked_to_is_not() -> None:
    vitals = Vitals(lambda: 0.0)
    with pytest.raises(SystemExit), vitals.living("loop"):
        raise SystemExit(1)
    assert vitals.health().not_live == ("loop has ended: SystemExit",)
    vitals = Vitals(lambda: 0.0)
    with vitals.living("loop"):
        vitals.leave()
    assert vitals.health().live


def test_a_thread_that_ends_is_dead_until_the_process_leaves() -> None:
    vitals = Vitals(lambda: 0.0)
    thread = threading.Thread(target=lambda: None, name="packhorse-lane-1")
    thread.start()
    vitals.expect(thread)
    thread.join(10)
    assert vitals.dead() == {"packhorse-lane-1": ""}
    vitals.leave()
    assert vitals.dead() == {}


@pytest.fixture
def served() -> Iterator[tuple[Vitals, str]]:
    vitals = Vitals(lambda: 0.0)
    server = HealthServer(vitals.health, group="noters", host="127.0.0.1", port=0)
    server.start()
    yield vitals, f"http://127.0.0.1:{server.port}"
    server.stop()


def asked(url: str) -> tuple[int, Any]:
    answer = httpx.get(url, timeout=10)
    return answer.status_code, answer.json()


def test_health_is_told_over_http(served: tuple[Vitals, str]) -> None:
    vitals, url = served
    assert asked(f"{url}/health/ready")[0] == 503
    vitals.beat("loop")
    vitals.assigned()
    vitals.answered()
    assert asked(f"{url}/health/live") == (200, {"group": "noters", "ok": True, "wrong": []})
    assert asked(f"{url}/health/ready")[0] == 200
    vitals.stalled(["a.b[3]: reading"])
    assert asked(f"{url}/health/live") == (
        503,
        {"group": "noters", "ok": False, "wrong": ["does not move: a.b[3]: reading"]},
    )
    assert asked(f"{url}/other")[0] == 404
    assert httpx.head(f"{url}/health/live", timeout=10).status_code == 503


def test_a_port_that_is_taken_is_named_with_its_setting(served: tuple[Vitals, str]) -> None:
    port = int(served[1].rpartition(":")[2])
    with pytest.raises(SettingsError, match="PACKHORSE_PROCESSOR_HEALTH_PORT"):
        HealthServer(served[0].health, group="noters", host="127.0.0.1", port=port)
