"""Links between the pages lead somewhere: to a file of the checkout, and to a heading of it."""

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*?) *#*$", re.MULTILINE)


def pages() -> list[Path]:
    """Return the checkout's pages, without what is made or installed in it."""
    found = [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md"), *CHECKOUT.glob("examples/**/*.md")]
    return sorted(found)


def anchors(text: str) -> set[str]:
    """
    Return the anchors of a page's headings, as GitHub makes them.

    >>> sorted(anchors("# Who, for whom?\\n## `dev up`\\n## Who, for whom?\\n"))
    ['dev-up', 'who-for-whom', 'who-for-whom-1']
    """
    found: set[str] = set()
    for heading in HEADING.findall(FENCED.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        count = sum(1 for each in found if re.fullmatch(rf"{re.escape(name)}(-\d+)?", each))
        found.add(f"{name}-{count}" if count else name)
    return found


def broken(page: Path) -> list[str]:
    """Return the links of *page* that lead nowhere; addresses on the web are not tried."""
    text = page.read_text(encoding="utf-8")
    wrong = []
    for link in LINK.findall(INLINE_CODE.sub("`", FENCED.sub("", text))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            wrong.append(f"{link}: no such file")
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            wrong.append(f"{link}: no such heading")
    return wrong


def test_there_are_pages() -> None:
    names = {page.relative_to(CHECKOUT).as_posix() for page in pages()}
    assert {"README.md", "docs/glossary.md", "examples/flights/README.md"} <= names


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(CHECKOUT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Fails when a page is moved, or a heading renamed, and a link to it is not."""
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    assert anchors("# One thing\n```\n# no heading\n```\n") == {"one-thing"}
    here = tmp_path / "page.md"
    here.write_text(
        "# Top\n[a](#top) [b](#bottom) [c](absent.md) `[d](absent.md)` [e](https://example.org/x)\n"
    )
    assert broken(here) == ["#bottom: no such heading", "absent.md: no such file"]


def test_the_list_of_decisions_is_complete() -> None:
    """Fails when a decision is added and not listed."""
    folder = CHECKOUT / "docs" / "decisions"
    listed = LINK.findall((folder / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(page.name for page in folder.glob("0*.md"))


PARTS = ("core", "schemas", "producer", "relay", "processor", "console", "local", "cli")
NAMED = re.compile(r"docs/[\w/-]+\.md")


def test_pages_that_the_code_names_are_there() -> None:
    """Fails when an error or a finding sends people to a page that was moved, and when a runbook is not listed."""
    code = [path.read_text(encoding="utf-8") for part in PARTS for path in (CHECKOUT / part).rglob("*.py")]
    named = {page for text in code for page in NAMED.findall(text)}
    assert "docs/runbooks/relay-holds.md" in named
    assert [page for page in sorted(named) if not (CHECKOUT / page).exists()] == []
    folder = CHECKOUT / "docs" / "runbooks"
    listed = {
        link.partition("#")[0] for link in LINK.findall((folder / "README.md").read_text(encoding="utf-8"))
    }
    assert {page.name for page in folder.glob("*.md")} - listed == {"README.md"}
