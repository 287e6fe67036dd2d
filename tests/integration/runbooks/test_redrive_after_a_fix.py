"""The runbook's commands, as they are written: a set is frozen, halts at the first failure, and goes on when the cause is mended."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.pages import command
from tests.support.processing import GROUP, Ground, note
from tests.support.wait import eventually

from packhorse.processor import Context, Processor, Quarantine

PAGE = "runbooks/redrive-after-a-fix.md"


@pytest.fixture
def environ(ground: Ground, tmp_path: Path) -> dict[str, str]:
    """Provide a folder with the command `packhorse`, and its settings."""
    (tmp_path / "packhorse").write_text(f'#!/bin/sh\nexec {sys.executable} -m packhorse.cli.main "$@"\n')
    (tmp_path / "packhorse").chmod(0o755)
    return os.environ | ground.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}


def shell(block: str, environ: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    text = block.replace("--group figures", f"--group {GROUP}")
    return subprocess.run(
        ["bash", "-uc", text], env=environ, cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_page_brings_back_what_a_fix_has_mended(
    ground: Ground, environ: dict[str, str], tmp_path: Path
) -> None:
    """Fails when a command, a flag or an exit code on the page is not so any more."""
    broken = [True]
    app = Processor(GROUP)

    @app.handler(ground.message)
    def handle(message: Any, ctx: Context) -> None:
        if broken[0]:
            raise Quarantine("not-now")
        note(message, ctx)

    ground.make_topics(app)
    ground.send_many(range(8))
    with ground.processing(app):
        stopped = "SELECT FROM packhorse.quarantined_message WHERE state = 'quarantined'"
        eventually(lambda: len(ground.rows(stopped)) == 8, what="all stopped")
        previewed = shell(command(PAGE, "sh preview"), environ, tmp_path)
        assert previewed.returncode == 0, previewed.stderr
        environ["ID"] = subprocess.check_output(
            ["jq", ".id", "preview.json"], cwd=tmp_path, text=True
        ).strip()
        ran = shell(command(PAGE, "sh run"), environ, tmp_path)
        assert ran.returncode == 1, ran.stderr
        assert "halted" in ran.stdout
        broken[0] = False
        shell(command(PAGE, "sh resume"), environ, tmp_path)
        eventually(lambda: len(ground.results()) == 7, what="seven took effect", timeout=60)
    proved = shell(command(PAGE, "sh prove"), environ, tmp_path)
    assert proved.returncode == 0, proved.stderr
    assert "7 good, 1 failed again" in proved.stdout
    assert "no member is moved" in proved.stdout
