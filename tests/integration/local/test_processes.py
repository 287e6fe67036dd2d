"""Processes are told apart, reached and ended; what a guard starts does not outlive its parent."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.wait import eventually

from packhorse.local.errors import StackFailed
from packhorse.local.launcher import Command, Launcher
from packhorse.local.processes import Identity, end, family_of, identity_of, is_alive, kill, signal_family

FOREVER = ("sleep", "1000")
WAITING = "import signal; signal.pause()"
STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); signal.pause()"
)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(FOREVER) as process:
        yield process
        process.kill()


def identified(pid: int) -> Identity:
    found = identity_of(pid)
    assert found is not None
    return found


def command(folder: Path, *argv: str) -> Command:
    return Command(argv=argv, env={"PATH": os.environ["PATH"]}, cwd=folder, log=folder / "log")


def test_a_later_process_with_the_same_pid_is_another(sleeper: subprocess.Popen[bytes]) -> None:
    process = identified(sleeper.pid)
    assert is_alive(process)
    assert not is_alive(Identity(pid=process.pid, born="another time"))


def test_a_zombie_is_dead(sleeper: subprocess.Popen[bytes]) -> None:
    process = identified(sleeper.pid)
    sleeper.send_signal(signal.SIGKILL)
    eventually(lambda: not is_alive(process), what="the unreaped process counts as dead")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are looked at in /proc")
def test_a_process_whose_first_thread_is_gone_lives_while_another_does() -> None:
    """Fails when a broker counts as gone while its last threads still hold its ports: it would come back on other ones."""
    code = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(1000,)).start(); print('on', flush=True);"
    code += "ctypes.CDLL(None).pthread_exit(None)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as headless:
        assert headless.stdout is not None
        headless.stdout.readline()
        process = identified(headless.pid)
        stat = Path(f"/proc/{headless.pid}/stat")
        eventually(
            lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", what="its first thread is gone"
        )
        lives = is_alive(process)
        headless.kill()
        eventually(lambda: not is_alive(process), what="it is gone")
        assert lives


def test_signals_to_a_stranger_are_not_sent(sleeper: subprocess.Popen[bytes]) -> None:
    """Fails when a pid from an old state file is enough to kill whoever has it now."""
    stranger = Identity(pid=sleeper.pid, born="another time")
    assert end(stranger, signal.SIGTERM, within=0.1)
    kill(stranger)
    assert signal_family(stranger, signal.SIGKILL) == []
    assert is_alive(identified(sleeper.pid))


def test_a_process_that_does_not_stop_is_killed_with_its_children() -> None:
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '{WAITING}']); {STUBBORN}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"on\n"
        family = [identified(pid) for pid in family_of(process.pid)]
        assert len(family) == 2
        assert not end(family[0], signal.SIGTERM, within=0.1)
        assert not any(is_alive(member) for member in family)


def test_a_guard_starts_reports_and_ends(tmp_path: Path) -> None:
    launcher = Launcher(tmp_path / "guard.log")
    process = identified(launcher.start(command(tmp_path, *FOREVER)))
    assert launcher.run(command(tmp_path, "sh", "-c", "echo said; exit 3"), within=10) == 3
    assert (tmp_path / "log").read_text() == "said\n"
    with pytest.raises(StackFailed, match="could not start /no/such: FileNotFoundError"):
        launcher.start(command(tmp_path, "/no/such"))
    with pytest.raises(StackFailed, match=r"sleep did not end within 0\.1 s"):
        launcher.run(command(tmp_path, *FOREVER), within=0.1)
    launcher.end()
    assert not is_alive(process)


def test_what_was_released_lives_on(tmp_path: Path) -> None:
    launcher = Launcher(tmp_path / "guard.log")
    process = identified(launcher.start(command(tmp_path, *FOREVER)))
    launcher.release()
    try:
        assert is_alive(process)
    finally:
        kill(process)


def test_nothing_outlives_a_parent_that_was_killed(tmp_path: Path) -> None:
    """Fails when services are children of the command itself: nobody would be left to end them."""
    code = f"""
import os, signal, sys
from pathlib import Path
from packhorse.local.launcher import Command, Launcher
launcher = Launcher(Path("guard.log"))
print(launcher.start(Command(argv={FOREVER!r}, env=dict(os.environ), cwd=Path("."), log=Path("log"))), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    parent = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert parent.returncode == -signal.SIGKILL
    orphan = int(parent.stdout)
    eventually(lambda: identity_of(orphan) is None, what="the guard ends what the killed parent had started")
