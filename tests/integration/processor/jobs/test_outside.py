"""The outside system that the tests of effects stand on does what it is told."""

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.outside import Client, Outside, Refused, outside_system
from tests.support.wait import eventually

from packhorse.processor import CANT_TELL, DID_NOT_HAPPEN, Happened


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    with outside_system(tmp_path / "ledger") as found:
        yield found


def test_it_does_and_tells(outside: Outside) -> None:
    client = Client(outside.url)
    assert client.was_done("k") is DID_NOT_HAPPEN
    assert client.do("k", "a") == {"number": 1}
    assert client.was_done("k") == Happened({"number": 1})
    assert client.do("k", "a") == {"number": 1}
    assert outside.done("a") == ["k", "k"]
    assert client.do("l", "b", "twice") == {"number": 3}
    assert outside.done("b") == ["l", "l"]


def test_it_honours_keys_and_is_mute_when_told(tmp_path: Path) -> None:
    with outside_system(tmp_path / "ledger", "honours", "mute") as outside:
        client = Client(outside.url)
        assert client.do("k", "a") == client.do("k", "a")
        assert (outside.done("a"), outside.seen("a")) == (["k"], ["k", "k"])
        assert client.was_done("k") is CANT_TELL


def test_it_refuses_and_loses(outside: Outside) -> None:
    client = Client(outside.url)
    with pytest.raises(Refused):
        client.do("k", "a", "refuse")
    assert outside.done("a") == []
    with pytest.raises(httpx.HTTPError):
        client.do("k", "a", "lose")
    assert outside.done("a") == ["k"]


@pytest.mark.parametrize(("how", "before"), [("hold", []), ("hold-answer", ["k"])])
def test_it_is_late(outside: Outside, how: str, before: list[str]) -> None:
    client = Client(outside.url, timeout=30)
    late = threading.Thread(target=client.do, args=("k", "a", how))
    late.start()
    eventually(lambda: outside.seen("a"), what="it has arrived")
    eventually(lambda: outside.done("a") == before, what="it is held")
    outside.release()
    late.join(10)
    assert outside.done("a") == ["k"]


def test_it_dies_and_its_ledger_stays(outside: Outside) -> None:
    client = Client(outside.url)
    with pytest.raises(httpx.HTTPError):
        client.do("k", "a", "die")
    outside.until_dead()
    with pytest.raises(httpx.ConnectError):
        client.was_done("k")
    outside.start()
    assert client.was_done("k") == Happened({"number": 1})
