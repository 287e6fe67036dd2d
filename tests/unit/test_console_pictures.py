"""The pictures of the console are of its pages: none is missing, left over, or shown nowhere."""

import doctest
import re
from pathlib import Path

import pytest
from docs.console import camera, pictures
from docs.console.pictures import (
    HERE,
    MOST_BYTES,
    MOST_BYTES_TOGETHER,
    PICTURES,
    README,
    TOUR,
    not_shown,
)
from fastapi.routing import APIRoute

from packhorse.console.pages.fastapi.app import ROOMS

IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
AGAIN = "run `make screenshots`"


def routes() -> set[str]:
    """Return the addresses of all pages: what is asked for by GET."""
    every = (route for room in ROOMS for route in room.router.routes if isinstance(route, APIRoute))
    return {route.path for route in every if "GET" in (route.methods or ())}


def shown_in(page: Path) -> list[tuple[str, Path]]:
    """Return what *page* says of each of its images, and where that is."""
    found = IMAGE.findall(page.read_text(encoding="utf-8"))
    return [(text, (page.parent / path).resolve()) for text, path in found]


def test_each_page_has_a_picture() -> None:
    """Fails when a page is added and no picture shows it or stands for it."""
    assert {"/", "/quarantine/redrive"} <= routes()
    assert not_shown(routes()) == [], "list it in docs/console/pictures.py, show it in docs/console/walk.py"


def test_each_picture_is_of_a_page() -> None:
    """Fails when a page is gone, or has another address, and its picture stays."""
    named = {route for picture in PICTURES for route in (picture.route, *picture.also)}
    assert named - routes() == set()
    assert len({picture.name for picture in PICTURES}) == len(PICTURES)


def test_the_files_are_the_pictures_and_are_small() -> None:
    """Fails when a picture was listed and not taken, or taken and is no longer listed, or would be slow to load."""
    files = {file.name: file.stat().st_size for file in HERE.glob("*.webp")}
    assert set(files) == {picture.file for picture in PICTURES}, AGAIN
    assert {name: size for name, size in files.items() if size > MOST_BYTES} == {}
    assert sum(files.values()) <= MOST_BYTES_TOGETHER


def test_the_tour_shows_each_picture_once_and_says_what_it_is() -> None:
    """Fails when a picture is shown nowhere, or shown without words for whoever does not see it."""
    shown = shown_in(TOUR)
    assert sorted(path for _, path in shown) == sorted(HERE / picture.file for picture in PICTURES)
    assert [path.name for text, path in shown if not text] == []


@pytest.mark.parametrize("page", [README, *README.parent.glob("docs/**/*.md")], ids=lambda page: page.name)
def test_no_page_shows_a_picture_that_is_not_there(page: Path) -> None:
    """Fails when a picture is renamed and a page goes on to show it."""
    assert [path for _, path in shown_in(page) if not path.exists()] == []


def test_nothing_in_a_picture_names_the_machine() -> None:
    """Fails when the machine's name stays where pages name processes, or another word is taken for it."""
    assert [doctest.testmod(module).failed for module in (camera, pictures)] == [0, 0]
