"""The schemas that Packhorse brings along: the reference to a job, and its own notices for the namespace of an installation."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from packhorse.core.naming import topic_name
from packhorse.schemas.folder import Folder, load_folder

_FOLDER: Final = Path(__file__).with_name("avro")
_OURS: Final = "packhorse"
"""The namespace that the files stand under."""
_NOTICE: Final = f"{_OURS}.packhorse-notice-"
_JOB: Final = f"{_OURS}.job-"


def notices(namespace: str) -> Folder:
    """
    Return the schemas of notices as they are registered for *namespace*.

    >>> [version.subject for version in notices("airline").versions]
    ['airline.packhorse-notice-packhorse.NeedsPerson']

    Raises:
        SettingsError: *namespace* makes no legal name of a topic.
    """
    topic_name(namespace, "packhorse-notice")
    folder = _those_of(_NOTICE)
    versions = tuple(
        replace(version, subject=f"{namespace}{version.subject.removeprefix(_OURS)}")
        for version in folder.versions
    )
    return Folder(path=folder.path, versions=versions)


def jobs() -> Folder:
    """
    Return the schema of the message that every job has, whatever its input: one for all installations.

    >>> [version.subject for version in jobs().versions]
    ['packhorse.job-packhorse.JobReference']
    """
    return _those_of(_JOB)


def _those_of(prefix: str) -> Folder:
    folder = load_folder(_FOLDER)
    return Folder(
        path=folder.path, versions=tuple(v for v in folder.versions if v.subject.startswith(prefix))
    )
