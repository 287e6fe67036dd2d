"""Registering: the registry first, then the table; repeated at will, resumed after any crash."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.registry import MemoryRegistry, MemoryTable
from tests.support.schemas import SHOP, record, write_folder

from packhorse.core.errors import RegistryUnavailable, SchemaError
from packhorse.schemas.folder import Folder, load_folder
from packhorse.schemas.register import Done, Outcome, register

SUBJECT = "test.things-test.Made"
PLACED = "shop.orders-shop.OrderPlaced"


def registering(folder: Folder, registry: MemoryRegistry, table: MemoryTable) -> list[Outcome]:
    return list(register(folder, registry, table))


def folder_of(tmp_path: Path, *versions: Any) -> Folder:
    return load_folder(write_folder(tmp_path, {SUBJECT: list(versions)}))


def test_everything_is_registered_in_the_order_of_references_and_recorded() -> None:
    registry, table = MemoryRegistry(), MemoryTable()
    outcomes = registering(load_folder(SHOP), registry, table)
    assert [one.done for one in outcomes] == [Done.REGISTERED] * 6
    assert registry.calls.index("shop.Money") < registry.calls.index(PLACED)
    assert {key: row.schema_id for key, row in table.kept.items()} == {
        (one.version.subject, one.version.version): one.schema_id for one in outcomes
    }
    assert len({one.schema_id for one in outcomes}) == 6


@pytest.mark.case("S-02")
def test_a_type_is_registered_before_what_refers_to_it_whatever_their_names(tmp_path: Path) -> None:
    """Fails when the order of names is taken for the order of references."""
    inner = {"type": "record", "name": "Inner", "namespace": "zoo", "fields": [{"name": "a", "type": "int"}]}
    wider = {**inner, "fields": [*inner["fields"], {"name": "b", "type": "int", "default": 0}]}
    outer = {**record(("inner", "zoo.Inner")), "packhorse.references": {"zoo.Inner": 2}}
    folder = load_folder(write_folder(tmp_path, {SUBJECT: outer, "zoo.Inner": [inner, wider]}))
    registry = MemoryRegistry()
    registering(folder, registry, MemoryTable())
    assert registry.calls == ["zoo.Inner", "zoo.Inner", SUBJECT]


@pytest.mark.case("S-02")
def test_the_table_holds_the_registrys_id_and_not_the_version() -> None:
    """Fails when the version, or the registry's own count, is written where the id belongs."""
    registry, table = MemoryRegistry(first_id=1_000), MemoryTable()
    registering(load_folder(SHOP), registry, table)
    for (subject, version), row in table.kept.items():
        stored = registry.subjects[subject][version - 1]
        assert row.schema_id == stored[1] >= 1_000


def test_a_second_run_changes_nothing() -> None:
    registry, table = MemoryRegistry(), MemoryTable()
    first = registering(load_folder(SHOP), registry, table)
    registry.calls.clear()
    table.writes.clear()
    second = registering(load_folder(SHOP), registry, table)
    assert [one.done for one in second] == [Done.UNCHANGED] * 6
    assert [one.schema_id for one in second] == [one.schema_id for one in first]
    assert (registry.calls, table.writes) == ([], [])


class Crash(BaseException):
    """Nobody catches it."""


@pytest.mark.parametrize("at", range(1, 7))
def test_a_crash_between_registry_and_table_is_made_good_by_the_next_run(at: int) -> None:
    """
    The registry has the schema, the table not: the next run finds it there.

    Fails when the row is written before the registry answered: a crash would leave an id that means nothing.
    """
    registry, table = MemoryRegistry(), MemoryTable()

    def crash() -> None:
        if len(registry.calls) == at:
            raise Crash

    registry.before_answer = crash
    with pytest.raises(Crash):
        registering(load_folder(SHOP), registry, table)
    assert len(table.kept) == at - 1
    registry.before_answer = lambda: None
    outcomes = registering(load_folder(SHOP), registry, table)
    assert [one.done for one in outcomes] == [Done.UNCHANGED] * (at - 1) + [Done.RECORDED] + [
        Done.REGISTERED
    ] * (6 - at)
    assert {row.schema_id for row in table.kept.values()} == set(registry.ids)


def test_trouble_in_the_middle_leaves_what_is_done() -> None:
    registry, table = MemoryRegistry(), MemoryTable()

    def away() -> None:
        if len(registry.calls) == 3:
            raise RegistryUnavailable("away")

    registry.before_answer = away
    outcomes = register(load_folder(SHOP), registry, table)
    done = [next(outcomes), next(outcomes)]
    with pytest.raises(RegistryUnavailable):
        next(outcomes)
    assert list(table.kept) == [(one.version.subject, one.version.version) for one in done]


def test_a_changed_file_of_a_released_version_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    registry, table = MemoryRegistry(), MemoryTable()
    registering(folder_of(tmp_path, record(("a", "int"))), registry, table)
    registry.calls.clear()
    changed = folder_of(tmp_path, record(("a", "int"), ("b", "int", 0)), record(("a", "int")))
    with pytest.raises(
        SchemaError, match=r"v1\.avsc: .* v1 was registered with another text, as schema 101; .* as v2"
    ):
        registering(changed, registry, table)
    assert registry.calls == []


def test_docs_of_a_released_version_may_change(tmp_path: Path) -> None:
    registry, table = MemoryRegistry(lenient=True), MemoryTable()
    registering(folder_of(tmp_path, record(("a", "int"))), registry, table)
    outcomes = registering(folder_of(tmp_path, record(("a", "int"), doc="Better words.")), registry, table)
    assert [(one.done, one.note) for one in outcomes] == [(Done.UNCHANGED, "")]


def test_a_registry_that_was_built_anew_gives_new_ids_and_that_is_told() -> None:
    table = MemoryTable()
    registering(load_folder(SHOP), MemoryRegistry(), table)
    outcomes = registering(load_folder(SHOP), MemoryRegistry(first_id=501), table)
    assert {one.done for one in outcomes} == {Done.CHANGED}
    assert outcomes[0].note.startswith("was 101: messages that were written with it need the old registry")
    assert {row.schema_id for row in table.kept.values()} == set(range(501, 507))


def test_versions_that_write_the_same_bytes_may_share_an_id_and_that_is_told(tmp_path: Path) -> None:
    """Some registries answer the old id for a schema that only adds a default."""
    folder = folder_of(tmp_path, record(("a", "string")), record(("a", "string", "none")))
    table = MemoryTable()
    outcomes = registering(folder, MemoryRegistry(lenient=True), table)
    assert [one.schema_id for one in outcomes] == [101, 101]
    assert "earlier text with the same bytes" in outcomes[1].note
    assert len({row.fingerprint for row in table.kept.values()}) == 2


@pytest.mark.case("X-07")
def test_a_mark_that_the_registry_does_not_keep_is_refused(tmp_path: Path) -> None:
    """Screens mask by the registry's text: fails when an id is taken under which that field would be shown."""
    marked = record({"name": "a", "type": "string", "packhorse.personal": True})
    folder = folder_of(tmp_path, record(("a", "string")), marked)
    table = MemoryTable()
    with pytest.raises(
        SchemaError, match="v2: the registry gave id 101, whose text does not mark a as personal"
    ):
        registering(folder, MemoryRegistry(lenient=True), table)
    assert [version for _, version in table.kept] == [1]


def test_an_id_of_another_schema_is_refused(tmp_path: Path) -> None:
    class Confused(MemoryRegistry):
        def schema_of(self, schema_id: int) -> str:
            return '{"type":"record","name":"test.Made","fields":[{"name":"a","type":"long"},{"name":"b","type":"long"}]}'

    table = MemoryTable()
    with pytest.raises(SchemaError, match="gave id 101, under which it keeps another schema"):
        registering(folder_of(tmp_path, record(("a", "int"))), Confused(), table)
    assert table.kept == {}


def test_the_registrys_refusal_names_subject_and_version(tmp_path: Path) -> None:
    class Strict(MemoryRegistry):
        def register(self, *_: Any) -> Any:
            raise SchemaError("the registry refuses it as invalid")

    with pytest.raises(SchemaError, match=rf"{SUBJECT} v1: the registry refuses"):
        registering(folder_of(tmp_path, record()), Strict(), MemoryTable())
