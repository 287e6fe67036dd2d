"""What an answer of the registry means: whose fault it is, and what to do."""

import json
from typing import Any

import pytest

from packhorse.core.errors import (
    InfrastructureError,
    RegistryUnavailable,
    SchemaError,
    Undecodable,
    UnknownSchema,
)
from packhorse.schemas.answers import (
    RegistryReference,
    body_of,
    is_absent,
    list_of,
    registered,
    stored_schema,
)


def answer(status: int, body: Any) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return body_of(status, content, asked="/schemas/ids/7")


@pytest.mark.case("S-10")
def test_only_the_registrys_own_code_says_that_an_id_is_unknown() -> None:
    """Fails when a bare 404 is taken for it: a wrong address would quarantine every message."""
    with pytest.raises(UnknownSchema, match="Schema 7 not found"):
        answer(404, {"error_code": 40403, "message": "Schema 7 not found"})


TROUBLE: list[tuple[int, Any, str]] = [
    (404, b"", "check PACKHORSE_REGISTRY_URL"),
    (404, b"<html>not here</html>", "check PACKHORSE_REGISTRY_URL"),
    (404, {"error_code": 404, "message": "HTTP 404 Not Found"}, "check PACKHORSE_REGISTRY_URL"),
    (404, {"error_code": 40401, "message": "Subject not found"}, "lacks something"),
    (404, {"error_code": 40402}, "lacks something"),
    (404, {"error_code": "40403"}, "check PACKHORSE_REGISTRY_URL"),
    (401, {"error_code": 40101}, "set PACKHORSE_REGISTRY_USER"),
    (403, {"error_code": 40301}, "give the user the right"),
    (408, b"", "look at the registry's own log"),
    (429, b"slow down", "asks for fewer calls"),
    (500, {"error_code": 50001, "message": "store"}, "look at the registry's own log"),
    (502, b"bad gateway", "look at the registry's own log"),
    (503, b"", "look at the registry's own log"),
    (301, b"", "redirects are not followed"),
    (200, b"", "not the JSON of the Confluent API"),
    (200, b"rubbish", "not the JSON of the Confluent API"),
    (200, b"[1]", "not the JSON of the Confluent API"),
    (200, b"\xff\xfe", "not the JSON of the Confluent API"),
    (200, b"[" * 1_000_000, "not the JSON of the Confluent API"),
    (204, b"", "look at"),
]


@pytest.mark.case("S-09")
@pytest.mark.parametrize(("status", "body", "told"), TROUBLE)
def test_every_other_answer_is_trouble_with_the_registry(status: int, body: Any, told: str) -> None:
    """
    It pauses and is tried again; it is never a message's fault.

    Fails when `_error` gives any of these another class than RegistryUnavailable.
    """
    with pytest.raises(RegistryUnavailable, match=told) as caught:
        answer(status, body)
    assert isinstance(caught.value, InfrastructureError)
    assert "/schemas/ids/7" in str(caught.value)


def test_a_refusal_of_the_schema_is_the_schemas_fault() -> None:
    with pytest.raises(SchemaError, match="incompatible with an earlier version: no default for b"):
        answer(409, {"error_code": 409, "message": "no default for b"})
    with pytest.raises(SchemaError, match="refuses it as invalid"):
        answer(422, {"error_code": 42201})


def test_a_long_message_of_the_registrys_is_cut() -> None:
    with pytest.raises(RegistryUnavailable) as caught:
        answer(500, {"message": "x\n" * 10_000})
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("code", "absent"), [(40401, True), (40403, True), (40402, False), (404, False), (None, False)]
)
def test_a_look_up_finds_nothing_only_when_the_registry_says_so(code: int | None, absent: bool) -> None:
    assert is_absent(404, json.dumps({"error_code": code}).encode()) is absent
    assert not is_absent(500, json.dumps({"error_code": code}).encode())
    assert not is_absent(404, b"")


def test_a_list_is_read_and_anything_else_is_trouble() -> None:
    assert list_of(200, b"[1, 2]", asked="/subjects") == [1, 2]
    for status, content in [(200, b"{}"), (200, b"rubbish"), (500, b"[1]"), (404, b"")]:
        with pytest.raises(RegistryUnavailable, match="/subjects"):
            list_of(status, content, asked="/subjects")


def test_a_stored_schema_is_read() -> None:
    body = {"schema": '"int"', "references": [{"name": "a.B", "subject": "a.B", "version": 3}]}
    stored = stored_schema(body, asked="x")
    assert (stored.text, stored.references) == (
        '"int"',
        (RegistryReference(name="a.B", subject="a.B", version=3),),
    )
    assert (
        stored_schema({"schema": '"int"', "schemaType": "AVRO", "references": None}, asked="x").references
        == ()
    )


def test_a_schema_of_another_kind_is_undecodable() -> None:
    with pytest.raises(Undecodable, match="PROTOBUF, AVRO is needed"):
        stored_schema({"schema": "syntax", "schemaType": "PROTOBUF"}, asked="x")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"schema": 5},
        {"schema": "x", "references": {"a": 1}},
        {"schema": "x", "references": [5]},
        {"schema": "x", "references": [{"name": "a"}]},
    ],
)
def test_a_body_of_another_form_is_trouble_with_the_registry(body: Any) -> None:
    with pytest.raises(RegistryUnavailable, match="not the form of the Confluent API"):
        stored_schema(body, asked="x")


@pytest.mark.parametrize("body", [{}, {"id": "7"}, {"id": True}, {"id": 7, "version": "1"}])
def test_an_id_of_another_form_is_trouble_with_the_registry(body: Any) -> None:
    with pytest.raises(RegistryUnavailable, match="not the form of the Confluent API"):
        registered(body, asked="x")
