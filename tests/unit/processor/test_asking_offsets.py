"""Questions of the admin client that do harm must not come back."""

import importlib
import re
from pathlib import Path


def test_nobody_asks_the_admin_client_for_offsets() -> None:
    """
    Fails when `kafka/admin.py` asks by `list_consumer_group_offsets` or `list_offsets` again.

    Its client dies of a null pointer or an assertion when the coordinator moves meanwhile, which no test can catch; and it is
    refused for minutes once a broker was restarted.
    """
    folders = [
        Path(importlib.import_module(f"packhorse.{part}").__path__[0]) for part in ("processor", "console")
    ]
    asking = [
        path
        for folder in folders
        for path in folder.rglob("*.py")
        if re.search(r"list_consumer_group|list_offsets", path.read_text())
    ]
    assert asking == []
