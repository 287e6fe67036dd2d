"""Fields that are marked personal, and which topics may still hold records of somebody."""

from typing import Any

import pytest

from packhorse.console.purging.fields import has_value, paths_of, tagged_by
from packhorse.console.purging.model import Kind, Place, Wanted, stays_of
from packhorse.core.errors import UsageError
from packhorse.core.partitions import partition_of
from packhorse.processor import Subject

PERSON = '{"type":"record","name":"Person","fields":[{"name":"email","type":["null","string"]},{"name":"age","type":"int"}]}'
TRIP = (
    '{"type":"record","name":"Trip","fields":[{"name":"flight","type":"string"},'
    f'{{"name":"lead","type":{PERSON},"packhorse.personal":true}},'
    '{"name":"others","type":{"type":"array","items":{"type":"record","name":"Other","fields":'
    '[{"name":"email","type":"string","packhorse.personal":true}]}}}]}'
)
PLAIN = '{"type":"record","name":"Plain","fields":[{"name":"email","type":"string"}]}'
SCHEMAS = {1: TRIP, 2: PLAIN, 3: "no schema"}


@pytest.mark.parametrize("path", ["lead", "lead.email", "others[].email"])
def test_a_field_is_found_where_it_or_what_it_lies_in_is_marked(path: str) -> None:
    assert tagged_by(SCHEMAS, path) == (1,)


@pytest.mark.parametrize("path", ["email", "flight", "leader", "others", "others[]", ""])
def test_what_is_not_marked_is_refused_by_name(path: str) -> None:
    """Fails when a field whose name only begins alike is taken, or one of a schema that does not mark it."""
    with pytest.raises(UsageError, match=r"marked are lead, others\[\]\.email"):
        tagged_by(SCHEMAS, path)
    with pytest.raises(UsageError, match="none marks any field"):
        tagged_by({2: PLAIN}, "email")
    assert paths_of("no schema") == ()


@pytest.mark.parametrize(
    ("value", "path", "wanted", "found"),
    [
        ({"lead": {"email": "a", "age": 7}}, "lead.email", "a", True),
        ({"lead": {"email": "a", "age": 7}}, "lead", "7", True),
        ({"lead": {"email": None}}, "lead.email", "", False),
        ({"others": [{"email": "a"}, {"email": "b"}]}, "others[].email", "b", True),
        ({"others": [{"email": "a"}]}, "others.email", "a", False),
        ({"by": {"s": {"email": "a"}}}, "by{}.email", "a", True),
        ({"flag": True}, "flag", "true", True),
        ({"n": 1.5}, "n", "1.5", True),
        (None, "lead", "a", False),
    ],
)
def test_a_value_is_compared_as_text_at_its_path(value: Any, path: str, wanted: str, found: bool) -> None:
    assert has_value(value, path, wanted) == found


def test_a_source_is_named_by_the_partition_of_the_key_where_it_is_known() -> None:
    sources = {"a.b": 12, "a.c": None}
    at = partition_of(b"ann", 12)
    places = [
        Place(topic="a.b", partition=at, offset=9),
        Place(topic="a.b", partition=at, offset=3),
        Place(topic="a.b.g.quarantine", partition=at, kind=Kind.QUARANTINE),
    ]
    found = [
        (one.topic, one.kind, one.partition, one.offsets)
        for one in stays_of(Subject(key="ann"), sources, places)
    ]
    assert found == [
        ("a.b", Kind.SOURCE, at, (3, 9)),
        ("a.c", Kind.SOURCE, None, ()),
        ("a.b.g.quarantine", Kind.QUARANTINE, at, ()),
    ]
    by_field = stays_of(Subject(path="lead", value="ann"), sources, ())
    assert [(one.topic, one.partition) for one in by_field] == [("a.b", None), ("a.c", None)]


@pytest.mark.case("P8")
def test_what_is_hashed_tells_a_key_from_a_field_and_is_in_no_representation() -> None:
    key, tagged = Wanted(subject=Subject(key="ann")), Wanted(subject=Subject(path="lead", value="ann"))
    assert (key.marked, tagged.marked) == ("key=ann", "field lead=ann")
    assert "ann" not in repr((key, tagged))
