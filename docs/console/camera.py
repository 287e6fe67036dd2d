"""Take pictures of pages as they stand, with nothing in them of the machine that they are taken on."""

import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from docs.console.pictures import PICTURES, WIDE, Picture
from playwright.sync_api import Browser, Page, Route

HOST, USER = "host-1", "dora"
"""What machines, and who works at them, are called in the pictures."""
QUALITY = 75
_LOWEST = 420  # pixels
_BY_NAME = {picture.name: picture for picture in PICTURES}


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the pictures are taken, and by whom: names that are on none of them."""

    host: str
    user: str

    def left_out_of(self, text: str) -> str:
        """
        Return *text* with other names in place of its own, where pages name processes and people.

        >>> Machine("vm", "me").left_out_of("4711 on vm, vm:4711, me on vm, process 4711; vmstat by me (role postgres)")
        '4711 on host-1, host-1:4711, dora on host-1, process 4711; vmstat by dora (role postgres)'
        """
        host, user = re.escape(self.host), re.escape(self.user)
        text = re.sub(rf"(?<![\w.-]){user}(?= on {host}, process \d| \(role )", USER, text)
        return re.sub(rf"(?<=\bon ){host}(?![\w.-])|(?<![\w.-]){host}(?=:\d)", HOST, text)


class Camera:
    """
    Takes the pictures, each once.

    Args:
        page: Of a browser that shows nothing else.
        console: Where the console is, without a path.
        folder: Where the pictures go.
        machine: Its names are on no picture.
        secrets: What is on no picture either.
    """

    def __init__(
        self, page: Page, console: str, folder: Path, *, machine: Machine, secrets: Sequence[str]
    ) -> None:
        self._page = page
        self._console = console
        self._folder = folder
        self._machine = machine
        self._secrets = (*secrets, machine.host)
        self._devtools = page.context.new_cdp_session(page)
        self.left = list(_BY_NAME)
        page.route("**/*", self._renamed)

    def go(self, path: str, *, status: int = 200) -> None:
        """Go to *path* of the console, which answers with *status*."""
        answer = self._page.goto(self._console + path)
        assert answer is not None
        assert answer.status == status, f"{path}: answered with {answer.status}, not {status}"

    def take(self, name: str, path: str | None = None, *, status: int = 200) -> None:
        """Take the picture *name*, of *path* or of the page as it stands, from its upper edge as far down as it goes or the picture does."""
        picture = _BY_NAME[name]
        self.left.remove(name)
        self._page.emulate_media(color_scheme="dark" if picture.is_dark else "light")
        self._page.set_viewport_size({"width": picture.width, "height": _LOWEST})
        if path is None:
            self._page.wait_for_load_state()
        else:
            self.go(path, status=status)
        self._fit(picture)
        self._check(name)
        # Playwright itself writes PNG and JPEG alone; as WebP text stays sharp at half the bytes.
        shot = self._devtools.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
        (self._folder / picture.file).write_bytes(b64decode(shot["data"]))
        self._page.set_viewport_size({"width": WIDE, "height": 900})

    def _fit(self, picture: Picture) -> None:
        self._page.evaluate(
            "async () => { await document.fonts.ready; document.activeElement?.blur(); scrollTo(0, 0); }"
        )
        tall = self._page.evaluate("document.documentElement.scrollHeight")
        self._page.set_viewport_size({"width": picture.width, "height": min(tall, picture.tallest)})

    def _check(self, name: str) -> None:
        text = self._page.locator("body").inner_text()
        for secret in self._secrets:
            found = re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", text)
            assert found is None, f"{name}: the page shows {secret}, which belongs to this machine alone"

    def _renamed(self, route: Route) -> None:
        """Let a page come as if the machine had another name; all else comes as it is."""
        if route.request.method != "GET" or route.request.resource_type not in {"document", "fetch"}:
            route.continue_()
            return
        answer = route.fetch(max_redirects=0)
        route.fulfill(response=answer, body=self._machine.left_out_of(answer.text()))


@contextmanager
def blank_page(browser: Browser) -> Iterator[Page]:
    """Open a page for the block, in a browser of nobody and nowhere in particular."""
    with browser.new_context(
        viewport={"width": WIDE, "height": 900}, locale="en-GB", timezone_id="UTC", color_scheme="light"
    ) as context:
        page = context.new_page()
        page.set_default_timeout(30_000)
        yield page
