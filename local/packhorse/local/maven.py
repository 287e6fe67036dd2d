"""Fetch single files from the Maven repository through jgo, which knows its address; nothing is resolved."""

import logging
from pathlib import Path

from packhorse.local.artifacts import Artifact
from packhorse.local.errors import StackFailed
from packhorse.local.progress import Progress

_QUIET_FOR = 60  # seconds without a byte until a download counts as stuck


def fetch(artifact: Artifact, into: Path, progress: Progress) -> Path:
    """
    Bring one file below the empty folder *into* and return its path, unverified.

    Raises:
        StackFailed: The `dev` extra is not installed, or the file did not arrive.
    """
    try:
        from jgo.maven import MavenContext, PythonResolver
    except ImportError as error:
        raise StackFailed("the package jgo is missing; install packhorse[dev]") from error
    logging.getLogger("jgo").setLevel(logging.ERROR)
    context = MavenContext(
        resolver=PythonResolver(progress_callback=progress.download), repo_cache=into, timeout=_QUIET_FOR
    )
    component = context.project(artifact.group, artifact.name).at_version(artifact.version)
    try:
        return Path(
            component.artifact(classifier=artifact.classifier, packaging=artifact.packaging).resolve()
        )
    except (OSError, RuntimeError) as error:  # requests' errors are OSErrors; jgo's own are RuntimeErrors
        raise StackFailed(
            f"{artifact.filename} did not arrive from the Maven repository"
            f" ({type(error).__name__}: {error}); check the network or its proxy settings and try again"
        ) from error
