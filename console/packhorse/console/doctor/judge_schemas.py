"""Judge whether the schemas of a folder are registered. Pure: no I/O."""

from collections.abc import Callable, Iterator, Mapping

from packhorse.console.doctor.findings import Finding, failed, ok, skipped
from packhorse.schemas.folder import Folder, Version

Registered = Mapping[tuple[str, int], tuple[str, int]]
"""Fingerprint and id of each subject and version."""


def judge_schemas(
    folder: Folder, registered: Registered, known: Callable[[int], bool] | None
) -> Iterator[Finding]:
    """
    Yield what is to be said about each version in *folder*.

    Args:
        folder: What the application has.
        registered: What the database's table has.
        known: Asks the registry about an id; None when there is no registry to ask.
    """
    found = [finding for one in folder.versions for finding in _version(one, registered, known)]
    yield from found or [ok("schema ids", f"{len(folder.versions)} versions of {folder.path} are registered")]
    if known is None:
        yield skipped(
            "schema ids", "the registry was not asked about the ids: PACKHORSE_REGISTRY_URL is not set"
        )


def _version(one: Version, registered: Registered, known: Callable[[int], bool] | None) -> Iterator[Finding]:
    subject, version = one.subject, one.version
    row = registered.get((subject, version))
    if row is None:
        yield failed(
            "schema ids",
            f"{subject} v{version} is not registered in this database",
            cause="messages of that version can't be written",
            next_step="packhorse schemas register",
        )
    elif row[0] != one.fingerprint:
        yield failed(
            "schema ids",
            f"{subject} v{version} differs from what was registered",
            cause="the file was changed after its registration; readers resolve by the registered one",
            next_step=f"undo the change and add v{version + 1}.avsc",
        )
    elif known is not None and not known(row[1]):
        yield failed(
            "schema ids",
            f"the registry does not know id {row[1]} of {subject} v{version}",
            cause="another registry than at registration, or it lost its data; readers can't decode these messages",
            next_step="point PACKHORSE_REGISTRY_URL to the right one, or restore it",
        )
