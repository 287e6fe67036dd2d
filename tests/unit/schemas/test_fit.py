"""Whether a handler's class fits what the registry holds, asked before the first message."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.schemas import message_class, record

from packhorse.core.errors import RegistryUnavailable, SchemaError, SchemaNotRegistered
from packhorse.schemas.fit import check_fit

SUBJECT = "test.things-test.Made"
V1, V2, V3 = record(("a", "int")), record(("a", "int"), ("b", "int", 0)), record(("a", "string"))


class Held:
    """A source that holds the versions it was made with."""

    def __init__(self, *texts: str) -> None:
        self._texts = dict(enumerate(texts, start=1))

    def versions_of(self, subject: str) -> Mapping[int, str]:
        return self._texts if subject == SUBJECT else {}


def text_of(tmp_path: Path, schema: Any) -> str:
    return str(message_class(tmp_path, schema).__packhorse__.schema)


@pytest.mark.case("S-03")
def test_a_class_that_reads_its_version_and_all_before_fits(tmp_path: Path) -> None:
    held = Held(text_of(tmp_path, V1), text_of(tmp_path, V2))
    check_fit(message_class(tmp_path, V1), held)
    check_fit(message_class(tmp_path, V1, V2), held)


@pytest.mark.case("S-03")
def test_a_class_whose_schema_is_missing_is_named_with_subject_and_version(tmp_path: Path) -> None:
    """Fails when a subject that is not there counts as one without faults."""
    for held in (Held(), Held(text_of(tmp_path, V1))):
        with pytest.raises(
            SchemaNotRegistered, match=rf"{SUBJECT} v2, which Made was made from, is not in the registry"
        ):
            check_fit(message_class(tmp_path, V1, V2), held)


@pytest.mark.case("S-03")
def test_a_class_that_cannot_read_an_earlier_version_is_refused_by_field_and_rule(tmp_path: Path) -> None:
    held = Held(text_of(tmp_path, V1), text_of(tmp_path, V3))
    with pytest.raises(
        SchemaError,
        match=rf"{SUBJECT}: Made, made from v1, can't read the registry's version 1: a: int .*rule type",
    ):
        check_fit(message_class(tmp_path, V3), held)


def test_a_version_that_was_registered_later_keeps_nobody_from_starting(tmp_path: Path) -> None:
    """It is registered before anybody writes it; a reader that restarts meanwhile must go on."""
    check_fit(message_class(tmp_path, V1), Held(text_of(tmp_path, V1), text_of(tmp_path, V3)))


@pytest.mark.case("S-03")
def test_a_class_that_does_not_fit_its_own_schema_is_refused_by_field(tmp_path: Path) -> None:
    made = message_class(tmp_path, V2)

    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Made:
        a: int
        __packhorse__ = made.__packhorse__

    with pytest.raises(
        SchemaError, match=rf"{SUBJECT} v1: class Made does not fit its schema: Made has no b"
    ):
        check_fit(Made, Held(text_of(tmp_path, V2)))  # type: ignore[arg-type]


def test_trouble_with_the_registry_passes_through(tmp_path: Path) -> None:
    class Away(Held):
        def versions_of(self, subject: str) -> Mapping[int, str]:
            raise RegistryUnavailable(subject)

    with pytest.raises(RegistryUnavailable):
        check_fit(message_class(tmp_path, V1), Away())
