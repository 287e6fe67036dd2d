"""Blocks of commands of a page, so that a test runs what a reader types."""

import re
from pathlib import Path
from textwrap import dedent

DOCS = Path(__file__).resolve().parents[2] / "docs"


def command(page: str, name: str, **replaced: str) -> str:
    """
    Return the block of docs/*page* that begins with ```sh *name*, with each name of *replaced* put in place of its value.

    Raises:
        AssertionError: There is no such block, or it does not hold what is to be replaced.
    """
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"^ *```(?:sh {name}|{name})\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"{page} has no block {name}"
    block = dedent(found[1])
    for new, old in replaced.items():
        assert old in block, f"{page}, block {name}: {old!r} is not there"
        block = block.replace(old, new)
    return block
