"""Somebody who sits at the console's pages with a browser that runs no scripts: reads forms, and sends them as they stand."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Self

import httpx
from tests.support.console_api import Console

_TEXTS = {"hidden", "text", "number", "search", "password"}


@dataclass(slots=True, kw_only=True)
class Sheet:
    """
    One form of a page.

    Attributes:
        page: Where it stands.
        fields: All that a browser would send if nothing were filled in.
    """

    page: str
    action: str
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def once(self) -> str:
        """Return the form's number."""
        return self.fields["once"]


class Sitter:
    """Somebody who is signed in at *console* as the holder of *token*; use it as a context manager."""

    def __init__(self, console: Console, token: str) -> None:
        self._client = httpx.Client(
            base_url=console.url, trust_env=False, timeout=60, headers={"Sec-Fetch-Site": "same-origin"}
        )
        self.sign_in(token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def sign_in(self, token: str, onto: str = "/") -> str:
        """Sign in, and return where the browser is sent."""
        answer = _signing_in(self._client, token, onto)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def forget(self) -> None:
        """Lose the session, as when its time is over."""
        self._client.cookies.clear()

    def get(self, path: str) -> httpx.Response:
        """Open a page."""
        return self._client.get(path)

    def form(self, path: str) -> Sheet:
        """Open a page that is there, and return its first form that acts."""
        answer = self.get(path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return form_in(answer.text, path)

    def send(self, sheet: Sheet, **filled: str) -> httpx.Response:
        """Send the form with some fields filled in; where that leads to is not followed."""
        return self._client.post(
            sheet.action,
            data={**sheet.fields, **filled},
            headers={"Referer": str(self._client.base_url.join(sheet.page))},
        )


def at_the_door(console: Console, token: str) -> httpx.Response:
    """Return how somebody who brings *token* is answered."""
    with httpx.Client(
        base_url=console.url, trust_env=False, timeout=60, headers={"Sec-Fetch-Site": "same-origin"}
    ) as client:
        return _signing_in(client, token, "/")


def _signing_in(client: httpx.Client, token: str, onto: str) -> httpx.Response:
    return client.post("/sign-in", data={"token": token, "next": onto})


def form_in(html: str, page: str) -> Sheet:
    """Return the first form of the page that acts: one that has a number."""
    reader = _Forms(page)
    reader.feed(html)
    return next(each for each in reader.found if "once" in each.fields)


def text_of(answer: httpx.Response) -> str:
    """Return what a page says, without its elements, each blank as one."""
    reader = _Text()
    reader.feed(answer.text)
    return " ".join("".join(reader.found).split())


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)


class _Forms(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[Sheet] = []
        self._page = page
        self._area: str | None = None
        self._choice: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append(Sheet(page=self._page, action=given.get("action", self._page)))
        elif not self.found:
            return
        fields, name = (self.found[-1].fields, given.get("name", ""))
        if tag == "input" and name:
            kind = given.get("type", "text")
            if kind in _TEXTS or "checked" in given:
                fields[name] = given.get("value", "")
        elif tag == "textarea":
            self._area, fields[name] = name, ""
        elif tag == "select":
            self._choice = name
        elif tag == "option" and self._choice is not None:
            fields.setdefault(self._choice, given.get("value", ""))

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.found[-1].fields[self._area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = None
        elif tag == "select":
            self._choice = None
