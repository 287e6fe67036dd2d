"""The cached archive is the pinned one, or is refused."""

from pathlib import Path

import pytest

from examples.flights.dataset import SHA256, DatasetUnavailable, cached_archive, fetch


def test_another_file_in_the_cache_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKHORSE_CACHE_DIR", str(tmp_path))
    cached_archive().parent.mkdir()
    cached_archive().write_bytes(b"not the flights")
    with pytest.raises(DatasetUnavailable, match=f"{SHA256} is needed; remove the file"):
        fetch()
