"""Downloads: pinned, verified, whole or not there."""

import hashlib
import io
import tarfile
import threading
from pathlib import Path

import pytest

from packhorse.local import artifacts
from packhorse.local.artifacts import Artifact, ensure_jars, ensure_registry, is_genuine, kafka_jars
from packhorse.local.errors import StackFailed
from packhorse.local.progress import Progress, Silence


class Repository:
    """A repository in memory: it serves *contents* by file name and counts what it was asked."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.contents = contents
        self.asked: list[str] = []

    def __call__(self, artifact: Artifact, into: Path, progress: Progress) -> Path:
        self.asked.append(artifact.filename)
        if artifact.filename not in self.contents:
            raise StackFailed(f"{artifact.filename} did not arrive")
        path = into / artifact.filename
        path.write_bytes(self.contents[artifact.filename])
        return path


def artifact(name: str, content: bytes) -> Artifact:
    return Artifact(group="g", name=name, version="1", sha256=hashlib.sha256(content).hexdigest())


ONE, TWO = artifact("one", b"first"), artifact("two", b"second")
BOTH = {"one-1.jar": b"first", "two-1.jar": b"second"}


def test_what_is_missing_is_fetched_once(tmp_path: Path) -> None:
    repository = Repository(BOTH)
    paths = ensure_jars([ONE, TWO], tmp_path, repository, Silence())
    assert [path.read_bytes() for path in paths] == [b"first", b"second"]
    assert ensure_jars([ONE, TWO], tmp_path, repository, Silence()) == paths
    assert sorted(repository.asked) == ["one-1.jar", "two-1.jar"]


def test_a_damaged_file_is_fetched_again(tmp_path: Path) -> None:
    repository = Repository(BOTH)
    path, _ = ensure_jars([ONE, TWO], tmp_path, repository, Silence())
    path.write_bytes(b"fir")
    ensure_jars([ONE, TWO], tmp_path, repository, Silence())
    assert path.read_bytes() == b"first"
    assert repository.asked.count("one-1.jar") == 2


@pytest.mark.parametrize("served", [{"one-1.jar": b"fir"}, {}])
def test_a_file_that_arrives_cut_or_not_at_all_never_counts_as_there(
    tmp_path: Path, served: dict[str, bytes]
) -> None:
    """Fails when a download is written under its own name before its checksum is known."""
    repository = Repository(served)
    with pytest.raises(StackFailed, match=r"one-1\.jar (arrived with another checksum|did not arrive)"):
        ensure_jars([ONE], tmp_path, repository, Silence())
    assert repository.asked == ["one-1.jar"] * 3
    assert list((tmp_path / "jars").iterdir()) == []
    assert not list(tmp_path.glob("partial-*"))


def test_what_a_killed_run_left_is_swept_away_by_the_next_that_fetches(tmp_path: Path) -> None:
    (tmp_path / "partial-killed").mkdir()
    (tmp_path / "partial-killed" / "one-1.jar").write_bytes(b"fi")
    ensure_jars([ONE], tmp_path, Repository(BOTH), Silence())
    assert not list(tmp_path.glob("partial-*"))


def test_runs_at_the_same_time_fetch_once(tmp_path: Path) -> None:
    repository = Repository(BOTH)
    runs = [
        threading.Thread(target=ensure_jars, args=([ONE, TWO], tmp_path, repository, Silence()))
        for _ in range(4)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert sorted(repository.asked) == ["one-1.jar", "two-1.jar"]


def packed(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


APPLICATION = {
    "quarkus-run.jar": b"app!",
    "lib.jar": bytes(hashlib.sha256(b"%d" % n).digest()[0] for n in range(100_000)),
}


def serve_registry(content: bytes, monkeypatch: pytest.MonkeyPatch) -> Repository:
    pinned = Artifact(
        group="g", name="r", version="1", packaging="tar.gz", sha256=hashlib.sha256(content).hexdigest()
    )
    monkeypatch.setattr(artifacts, "REGISTRY", pinned)
    return Repository({pinned.filename: content})


def test_the_registry_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = serve_registry(packed(APPLICATION), monkeypatch)
    home = ensure_registry(tmp_path, repository, Silence())
    assert ensure_registry(tmp_path, repository, Silence()) == home
    assert (home / "quarkus-run.jar").read_bytes() == b"app!"
    assert len(repository.asked) == 1


def test_an_archive_that_can_not_be_unpacked_leaves_no_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the archive is unpacked in place: the second run would take a part for the whole."""
    repository = serve_registry(packed(APPLICATION)[:50_000], monkeypatch)
    with pytest.raises((EOFError, tarfile.TarError)):
        ensure_registry(tmp_path, repository, Silence())
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_the_brokers_class_path_is_pinned_to_the_byte() -> None:
    jars = kafka_jars()
    assert len(jars) == 45
    assert f"kafka-clients-{artifacts.KAFKA_VERSION}.jar" in [jar.filename for jar in jars]
    assert len({jar.name for jar in jars}) == 45, "two versions of one library"


def test_a_checksum_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="no sha256"):
        Artifact(group="g", name="n", version="1", sha256="ABC")


def test_a_file_that_is_not_there_is_not_genuine(tmp_path: Path) -> None:
    assert not is_genuine(tmp_path / "none", "0" * 64)
