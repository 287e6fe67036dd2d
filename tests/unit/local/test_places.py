"""Where the cache lies, the end of a log, and following one."""

import threading
from pathlib import Path

import pytest
from tests.support.wait import eventually

from packhorse.local.logs import print_logs
from packhorse.local.places import cache_folder, log_file, tail
from packhorse.local.starting import keep_short

HOME = Path("/home/ann")


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({}, "/home/ann/.cache/packhorse"),
        ({"XDG_CACHE_HOME": "/fast"}, "/fast/packhorse"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/ann/.cache/packhorse"),
        ({"XDG_CACHE_HOME": "/fast", "PACKHORSE_CACHE_DIR": "/own"}, "/own"),
        ({"PACKHORSE_CACHE_DIR": ""}, "/home/ann/.cache/packhorse"),
    ],
)
def test_the_cache_is_where_the_environment_says(environment: dict[str, str], folder: str) -> None:
    assert cache_folder(environment, HOME) == Path(folder)


def test_the_end_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert tail(log, 3) == []
    log.write_bytes(b"\n".join(b"%d \xff" % number for number in range(100_000)))
    assert tail(log, 2) == ["99998 \ufffd", "99999 \ufffd"]
    assert tail(log, 9, after=log.stat().st_size - 7) == ["99999 \ufffd"]


def test_a_log_over_the_limit_is_put_aside(tmp_path: Path) -> None:
    log = tmp_path / "kafka.log"
    keep_short(log)
    log.write_text("12345")
    keep_short(log, limit=5)
    assert log.exists()
    keep_short(log, limit=4)
    assert not log.exists()
    assert (tmp_path / "kafka.log.1").read_text() == "12345"


def test_several_logs_are_told_apart_and_a_single_one_is_printed_as_it_is(tmp_path: Path) -> None:
    printed: list[str] = []
    assert not print_logs(tmp_path, ["kafka", "postgres"], printed.append, lines=5)
    log_file(tmp_path, "kafka").parent.mkdir()
    log_file(tmp_path, "kafka").write_text("starting\nup\nunfinished")
    assert print_logs(tmp_path, ["kafka", "postgres"], printed.append, lines=2)
    assert print_logs(tmp_path, ["kafka"], printed.append, lines=1)
    assert print_logs(tmp_path, ["kafka"], printed.append, lines=0)
    assert printed == ["kafka    │ up", "kafka    │ unfinished", "unfinished"]


def test_following_prints_whole_lines_also_after_the_log_was_put_aside(tmp_path: Path) -> None:
    log = log_file(tmp_path, "kafka")
    log.parent.mkdir()
    log.write_text("older\nold\nhal")
    printed: list[str] = []
    stopped = threading.Event()
    follower = threading.Thread(
        target=print_logs,
        args=(tmp_path, ["kafka"], printed.append),
        kwargs={"lines": 1, "follow": True, "stopped": stopped},
    )
    follower.start()
    try:
        eventually(lambda: printed == ["old"], what="the end of the log is printed")
        with log.open("a") as file:
            file.write("f a line\nunfinished")
        eventually(lambda: printed == ["old", "half a line"], what="the whole line is printed")
        log.replace(tmp_path / "aside")
        log.write_text("next file\n")
        eventually(
            lambda: printed == ["old", "half a line", "next file"], what="the next file's line is printed"
        )
    finally:
        stopped.set()
        follower.join()
