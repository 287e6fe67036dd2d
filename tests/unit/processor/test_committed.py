"""A question of the admin client that ends the process must not come back."""

import importlib
from pathlib import Path


def test_nobody_asks_the_admin_client_for_committed_offsets() -> None:
    """
    Fails when `kafka/admin.py` asks by `list_consumer_group_offsets` again.

    Its client dies of a null pointer or an assertion when the coordinator moves meanwhile, and no test can catch that.
    """
    folders = [
        Path(importlib.import_module(f"packhorse.{part}").__path__[0]) for part in ("processor", "console")
    ]
    asking = [
        path
        for folder in folders
        for path in folder.rglob("*.py")
        if "list_consumer_group" in path.read_text()
    ]
    assert asking == []
