"""Several processes of one command: they share the partitions, the dead come back, and none outlives the parent."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import httpx
import pytest
from tests.support.processing import GROUP, Ground, noting
from tests.support.processing_child import QUICK, running
from tests.support.proxy import free_port
from tests.support.wait import eventually

MODULE = "from tests.support.processing import noting\napp = noting({namespace!r})\n"


def parent(ground: Ground, folder: Path, port: int) -> AbstractContextManager["Popen[str]"]:
    """Run `packhorse processor run --processes 2` meanwhile."""
    name = f"several_{ground.namespace}"
    (folder / f"{name}.py").write_text(MODULE.format(namespace=ground.namespace))
    path = [*filter(None, [os.environ.get("PYTHONPATH")]), str(Path.cwd()), str(folder)]
    environ = ground.environ | QUICK | {"PACKHORSE_PROCESSOR_HEALTH_PORT": str(port)}
    environ |= {"PYTHONPATH": os.pathsep.join(path)}
    return running("packhorse.processor", "run", f"{name}:app", "--processes", "2", environ=environ)


def pids(ground: Ground) -> set[int]:
    """Return the processes that have written themselves down and live."""
    rows = ground.rows("SELECT pid FROM packhorse.processor_member WHERE group_id = %s", GROUP)
    return {pid for (pid,) in rows if alive(pid)}


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def shared(ground: Ground) -> bool:
    """Return whether two processes live, each has partitions, and together they have all, each once."""
    rows = ground.rows("SELECT pid, status FROM packhorse.processor_member WHERE group_id = %s", GROUP)
    owned = [
        {(one["topic"], one["partition"]) for one in status["partitions"]}
        for pid, status in rows
        if alive(pid)
    ]
    together = set().union(*owned)
    assert len(owned) == 2, rows
    assert all(owned), rows
    assert {(ground.topic, 0), (ground.topic, 1)} <= together, rows
    return sum(map(len, owned)) == len(together)


@pytest.mark.case("X-04")
@pytest.mark.case("X-09")
def test_processes_share_partitions_and_the_dead_come_back(wide_ground: Ground, tmp_path: Path) -> None:
    """Fails when a dead child stays dead, or when the parent leaves before its children have."""
    ground, port = wide_ground, free_port()
    ground.make_topics(noting(ground.namespace))
    with parent(ground, tmp_path, port) as process:
        eventually(lambda: shared(ground), what="each has a partition", timeout=40)
        assert all(httpx.get(f"http://127.0.0.1:{port + n}/health/ready").status_code == 200 for n in (0, 1))
        before = pids(ground)
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: len(pids(ground) - before) == 1, what="another is started", timeout=30)
        process.send_signal(signal.SIGTERM)
        told = process.communicate(timeout=40)[0]
    assert process.returncode == 0, told
    assert f"pid={victim}" in told
    assert pids(ground) == set()


STUBBORN = """
import signal, sys, threading
from packhorse.processor.processes import end_with_parent
import os
signal.signal(signal.SIGTERM, lambda *_: os._exit(3))
end_with_parent(os.environ)
print(os.getpid(), flush=True)
threading.Event().wait()
"""
SUPERVISE = """
import os, sys
from packhorse.processor.processes import Supervisor
from packhorse.processor.settings import ProcessorSettings
settings = ProcessorSettings.load({"processes": 2, "drain_timeout": 1}, environ=os.environ)
sys.exit(Supervisor([sys.executable, "-c", sys.argv[1]], settings, environ=os.environ).run())
"""
NOWHERE = {
    "PACKHORSE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
    "PACKHORSE_REGISTRY_URL": "http://127.0.0.1:1",
}


@contextmanager
def supervisor() -> Iterator[tuple["Popen[str]", set[int]]]:
    """Run a supervisor of two idle children meanwhile, and say who those are."""
    process = Popen(
        [sys.executable, "-c", SUPERVISE, STUBBORN], env=os.environ | NOWHERE, stdout=PIPE, text=True
    )
    assert process.stdout is not None
    children: set[int] = set()
    try:
        children |= {int(process.stdout.readline()) for _ in range(2)}
        yield process, children
    finally:
        process.kill()
        process.communicate()
        for pid in filter(alive, children):
            os.kill(pid, signal.SIGKILL)


def test_no_child_outlives_a_parent_that_was_killed() -> None:
    """Fails when children do not watch the pipe that their parent holds."""
    with supervisor() as (process, children):
        process.kill()
        eventually(lambda: not any(map(alive, children)), what="they end with their parent")


def test_a_child_that_does_not_leave_well_is_told_by_the_status() -> None:
    """Fails when signals are not handed on, or the status is taken from the parent alone."""
    with supervisor() as (process, children):
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 1
        assert not any(map(alive, children))
