"""The console's pages as somebody asks for them who has no browser: forms are found in what they hold, and sent."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape

import httpx
from tests.support.console_api import Console


@contextmanager
def pages_of(console: Console, token: str) -> Iterator[httpx.Client]:
    """Sign the holder of *token* in for the block, and yield what asks for pages and follows no redirect."""
    headers = {"Sec-Fetch-Site": "same-origin"}
    with httpx.Client(base_url=console.url, headers=headers, timeout=20, trust_env=False) as client:
        assert client.post("/sign-in", data={"token": token}).status_code == 303
        yield client


def values_of(page: httpx.Response, name: str) -> list[str]:
    """Return what the fields of that *name* hold, in the order of the page."""
    return [unescape(found[1]) for found in re.finditer(rf'name="{name}" value="([^"]*)"', page.text)]
