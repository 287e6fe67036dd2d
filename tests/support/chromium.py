"""
A real browser for the tests of pages: Playwright's own Chromium, or one that the machine has.

`python -m tests.support.chromium` (`make browser`) gets one: from Playwright, or where that can't be reached and this is a Debian
machine's root, from the distribution.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Error, Playwright, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOW = "no Chromium is here that Playwright can drive: run `make browser`, or put one on the path under one of these names: "
"""What to do about it."""


class NoBrowser(Exception):
    """Say that there is no browser, and how to get one."""


@contextmanager
def browser() -> Iterator[Browser]:
    """
    Start a browser for the block, without a window.

    Raises:
        NoBrowser: None can be started.
    """
    with sync_playwright() as playwright:
        found = _launched(playwright)
        try:
            yield found
        finally:
            found.close()


def _launched(playwright: Playwright) -> Browser:
    flags = [*_QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    on_path = next((path for name in NAMES if (path := shutil.which(name))), None)
    said: list[str] = []
    for path in (None, on_path):
        try:
            return playwright.chromium.launch(executable_path=path, args=flags)
        except Error as error:
            said.append(error.message.partition("\n")[0])
    raise NoBrowser(f"{HOW}{', '.join(NAMES)}; it said: {'; '.join(said)}")


def get() -> str:
    """
    Get a browser unless there is one; return what was done.

    Raises:
        NoBrowser: None could be had.
    """
    if _is_there():
        return "a Chromium is there"
    subprocess.run(
        [sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"], check=False, timeout=900
    )
    if _is_there():
        return "Playwright has brought its own Chromium"
    if os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (
            ["update"],
            ["install", "--yes", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
        ):
            subprocess.run(["apt-get", "--quiet=2", *command], check=False, timeout=900, env=quiet)
    if _is_there():
        return "the distribution has brought its Chromium"
    raise NoBrowser(f"{HOW}{', '.join(NAMES)}")


def _is_there() -> bool:
    try:
        with browser():
            return True
    except NoBrowser:
        return False


if __name__ == "__main__":
    try:
        print(f"browser: {get()}")
    except NoBrowser as error:
        sys.exit(f"browser: {error}")
