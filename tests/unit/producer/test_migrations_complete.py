"""What a migration defines it also does."""

import ast
from pathlib import Path

import pytest

from packhorse.producer import migrations

VERSIONS = sorted((Path(next(iter(migrations.__path__))) / "versions").glob("v*.py"))


@pytest.mark.parametrize("path", VERSIONS, ids=[path.stem for path in VERSIONS])
def test_every_statement_of_a_migration_is_run(path: Path) -> None:
    """Fails when a part stands in the file and not in `upgrade`, as after a merge of two changes of one line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    }
    used = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    assert defined
    assert defined <= used
