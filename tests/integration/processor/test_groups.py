"""Groups, topics and handlers that share a process: what order holds between them, and what does not."""

import os
import signal
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from typing import Any

import pytest
from tests.support.cli import ended
from tests.support.processing import GROUP, Ground, note, noting
from tests.support.wait import eventually

from packhorse.processor import Context, Processor, Quarantine

MODULE = """
from tests.support.processing import noting
one, two = noting({namespace!r}), noting({namespace!r}, "others")
"""


def test_two_groups_in_one_process_each_do_every_message(ground: Ground, tmp_path: Path) -> None:
    """Fails when they share a member of the group, or one of them is not stopped by the signal."""
    name = f"pair_{ground.namespace}"
    (tmp_path / f"{name}.py").write_text(MODULE.format(namespace=ground.namespace))
    path = [*filter(None, [os.environ.get("PYTHONPATH")]), str(Path.cwd()), str(tmp_path)]
    ground.make_topics(noting(ground.namespace), noting(ground.namespace, "others"))
    sent = [ground.send(n) for n in range(3)]
    process = Popen(
        [sys.executable, "-m", "packhorse.processor", "run", f"{name}:one", f"{name}:two"],
        env=os.environ | ground.environ | {"PYTHONPATH": os.pathsep.join(path)},
        stdout=PIPE,
        stderr=STDOUT,
        text=True,
    )
    with ended(process):
        for one in sent:
            ground.until_outcome(one, "done", timeout=40)
            ground.until_outcome(one, "done", group="others", timeout=40)
        process.send_signal(signal.SIGTERM)
        told, _ = process.communicate(timeout=30)
    assert process.returncode == 0, told
    assert sorted(ground.results()) == [0, 0, 1, 1, 2, 2]


@pytest.mark.case("P-24")
@pytest.mark.case("P-23")
def test_a_handler_without_order_passes_what_waits_and_the_others_of_the_key_do_not(ground: Ground) -> None:
    """Of one key, messages of a handler with ordering="none" wait for nobody. Fails when they go behind a parked head."""
    app = Processor(GROUP)

    @app.handler(ground.message)
    def handle(message: Any, ctx: Context) -> None:
        if message.n == 0:
            raise Quarantine("not-now")
        note(message, ctx)

    @app.tombstone_handler(ground.message, ordering="none")
    def gone(ctx: Context) -> None:
        ctx.connection.execute("INSERT INTO result (id, n) VALUES (%s, 99)", (ctx.id,))

    ground.make_topics(app)
    ground.send(0)
    behind = ground.send(1)
    free = ground.send(payload=None)
    with ground.processing(app):
        ground.until_outcome(free, "done")
        ground.until_outcome(behind, "parked")
        eventually(lambda: ground.results() == [99], what="only the free one took effect")
