"""The pinned Maven packages: what they are, whether they are there, and how they get there whole or not at all."""

import hashlib
import shutil
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from packhorse.local.errors import StackFailed
from packhorse.local.progress import Progress
from packhorse.local.state import locked

KAFKA_VERSION = "4.4.0"
REGISTRY_VERSION = "3.3.3"
_TRIES = 3
_AT_ONCE = 6
_LOCK_WITHIN = 900.0  # another run may be fetching 200 MB over a slow line


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """
    One file in a Maven repository.

    Attributes:
        sha256: Its checksum, lower-case hex; nothing else counts as this file.
    """

    group: str
    name: str
    version: str
    sha256: str
    classifier: str = ""
    packaging: str = "jar"

    def __post_init__(self) -> None:
        if len(self.sha256) != 64 or not set(self.sha256) <= set("0123456789abcdef"):
            raise ValueError(f"{self.group}:{self.name}: {self.sha256!r} is no sha256 in lower-case hex")

    @property
    def filename(self) -> str:
        """The file's name, as Maven forms it."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.packaging}"


class Fetcher(Protocol):
    """Bring files from a Maven repository."""

    def __call__(self, artifact: Artifact, into: Path, progress: Progress) -> Path:
        """
        Bring the file to somewhere below the empty folder *into* and return its path, unverified.

        Raises:
            StackFailed: It did not arrive.
        """


REGISTRY = Artifact(
    group="io.apicurio",
    name="apicurio-registry-app",
    version=REGISTRY_VERSION,
    classifier="all",
    packaging="tar.gz",
    sha256="8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63",
)


def kafka_jars() -> list[Artifact]:
    """Return all that the broker's class path needs."""
    return parse_list(files("packhorse.local").joinpath(f"data/kafka-{KAFKA_VERSION}.jars.txt").read_text())


def parse_list(text: str) -> list[Artifact]:
    """
    Read lines of `group:name:version sha256`.

    >>> [a.filename for a in parse_list("org.slf4j:slf4j-api:1.7.36 " + "0" * 64)]
    ['slf4j-api-1.7.36.jar']
    """
    artifacts = []
    for line in text.splitlines():
        coordinate, sha256 = line.split()
        group, name, version = coordinate.split(":")
        artifacts.append(Artifact(group=group, name=name, version=version, sha256=sha256))
    return artifacts


def is_genuine(path: Path, sha256: str) -> bool:
    """Tell whether the file is there with exactly these bytes."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except FileNotFoundError:
        return False


def ensure_jars(
    artifacts: Sequence[Artifact],
    cache: Path,
    fetch: Fetcher,
    progress: Progress,
    *,
    what: str = f"Apache Kafka {KAFKA_VERSION}",
) -> list[Path]:
    """
    Return the files of the *artifacts* in the cache, fetching what is missing or damaged; *what* they are is told.

    Several runs may do so at once: one fetches, the others wait for it.

    Raises:
        StackFailed: A file did not arrive, or arrived with another checksum.
    """
    folder = cache / "jars"
    wanted = [folder / artifact.filename for artifact in artifacts]
    if not _missing(artifacts, folder):
        return wanted
    with _locked(cache, progress):
        if missing := _missing(artifacts, folder):
            progress.say(f"fetching {len(missing)} packages of {what} into {cache}")
            _fetch_all(missing, folder, fetch, progress)
    return wanted


def ensure_registry(cache: Path, fetch: Fetcher, progress: Progress) -> Path:
    """
    Return the folder of the unpacked registry, fetching and unpacking it when it is not there.

    The folder gets its name only after all of it is unpacked, so a cut run leaves nothing that counts.

    Raises:
        StackFailed: The archive did not arrive, or arrived with another checksum.
    """
    home = cache / f"apicurio-registry-{REGISTRY_VERSION}"
    if home.is_dir():
        return home
    with _locked(cache, progress):
        if home.is_dir():
            return home
        progress.say(f"fetching Apicurio Registry {REGISTRY_VERSION} into {cache}")
        with tempfile.TemporaryDirectory(prefix="partial-", dir=cache) as partial:
            archive = _fetch_genuine(REGISTRY, Path(partial), fetch, progress)
            progress.say(f"unpacking Apicurio Registry {REGISTRY_VERSION}")
            unpack(archive, Path(partial, "home"))
            Path(partial, "home").rename(home)
    return home


def ensure_all(cache: Path, fetch: Fetcher, progress: Progress) -> None:
    """Fetch all that a stack needs and the cache has not, without starting anything."""
    cache.mkdir(parents=True, exist_ok=True)
    ensure_jars(kafka_jars(), cache, fetch, progress)
    ensure_registry(cache, fetch, progress)


def unpack(archive: Path, into: Path) -> None:
    """Unpack a tar archive, with the safe filter where this Python has one (3.11.4); its checksum is ours anyway."""
    with tarfile.open(archive) as packed:
        if safe := getattr(tarfile, "data_filter", None):
            packed.extraction_filter = safe
        packed.extractall(into)  # noqa: S202 - filtered above, and pinned by checksum


@contextmanager
def _locked(cache: Path, progress: Progress) -> Iterator[None]:
    """Hold the cache, without what a run that was killed has left in it."""
    waiting = f"waiting for another run that fetches into {cache}"
    with locked(
        cache / "lock",
        what="the cache of downloads",
        within=_LOCK_WITHIN,
        when_waiting=lambda: progress.say(waiting),
    ):
        for left in cache.glob("partial-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def _missing(artifacts: Iterable[Artifact], folder: Path) -> list[Artifact]:
    return [artifact for artifact in artifacts if not is_genuine(folder / artifact.filename, artifact.sha256)]


def _fetch_all(artifacts: Sequence[Artifact], folder: Path, fetch: Fetcher, progress: Progress) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stoppable = _Stoppable(progress)
    with (
        tempfile.TemporaryDirectory(prefix="partial-", dir=folder.parent) as partial,
        ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="packhorse-fetch") as pool,
    ):
        arriving = [pool.submit(_fetch_genuine, one, Path(partial), fetch, stoppable) for one in artifacts]
        try:
            for artifact, arrived in zip(artifacts, arriving, strict=True):
                arrived.result().replace(folder / artifact.filename)
        except BaseException:
            stoppable.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Stoppable:
    """Passes progress on until it is stopped; then the next piece of every download fails."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.stopped = threading.Event()

    def say(self, text: str) -> None:
        self.progress.say(text)

    @contextmanager
    def download(self, name: str, size: int) -> Iterator[Callable[[int], None]]:
        with self.progress.download(name, size) as arrived:

            def passed_on(count: int) -> None:
                if self.stopped.is_set():
                    raise StackFailed(
                        f"{name} was not fetched to its end: another file failed, or you stopped it"
                    )
                arrived(count)

            yield passed_on


def _fetch_genuine(artifact: Artifact, partial: Path, fetch: Fetcher, progress: Progress) -> Path:
    trouble: StackFailed | None = None
    for _ in range(_TRIES):
        into = Path(tempfile.mkdtemp(dir=partial))
        try:
            path = fetch(artifact, into, progress)
        except StackFailed as error:
            trouble = error
            continue
        if is_genuine(path, artifact.sha256):
            return path
        trouble = StackFailed(
            f"{artifact.filename} arrived with another checksum than {artifact.sha256};"
            " try again, and if it stays so, look at what stands between you and the Maven repository"
        )
    assert trouble is not None
    raise trouble
