"""What an answer of a schema registry means: whose fault it is, decided apart from the network."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from packhorse.core.errors import PackhorseError, RegistryUnavailable, SchemaError, Undecodable, UnknownSchema

_TEXT_SHOWN = 200
_AVRO: Final = "AVRO"


class Code(IntEnum):
    """Error codes of the Confluent API that say something clear."""

    SUBJECT_NOT_FOUND = 40401
    VERSION_NOT_FOUND = 40402
    SCHEMA_NOT_FOUND = 40403
    INVALID_SCHEMA = 42201


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryReference:
    """A reference as the registry keeps it; *version* is the registry's own count, not the folder's."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchema:
    """A schema's text as it was registered, and the references that it needs."""

    text: str
    references: tuple[RegistryReference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """Where a schema stands in the registry."""

    schema_id: int
    version: int


def body_of(status: int, content: bytes, *, asked: str) -> Mapping[str, Any]:
    """
    Return the JSON object of a good answer; *asked* names the call in errors.

    Raises:
        UnknownSchema: The registry says with its own code that it does not know the id.
        SchemaError: It says that the schema is invalid, or incompatible with an earlier version.
        RegistryUnavailable: Any other answer. A bare 404 is one of these: it means a wrong address, not a missing id.
    """
    found = _object(content)
    if status == 200 and found is not None:
        return found
    raise _error(status, found, asked)


def list_of(status: int, content: bytes, *, asked: str) -> list[Any]:
    """
    Return the JSON list of a good answer.

    Raises:
        RegistryUnavailable: Any other answer.
    """
    found = _json(content)
    if status == 200 and isinstance(found, list):
        return found
    raise _error(status, _object(content), asked)


def is_absent(status: int, content: bytes) -> bool:
    """Say whether an answer to a look-up says clearly that the subject, or the schema under it, is not there."""
    found = _object(content) or {}
    return status == 404 and found.get("error_code") in {Code.SUBJECT_NOT_FOUND, Code.SCHEMA_NOT_FOUND}


def _error(status: int, found: Mapping[str, Any] | None, asked: str) -> PackhorseError:
    code = found.get("error_code") if found else None
    said = f": {_shown(found.get('message'))}" if found and found.get("message") else ""
    match status, code:
        case 404, Code.SCHEMA_NOT_FOUND:
            return UnknownSchema(f"the registry does not know it ({asked}{said})")
        case 404, Code.SUBJECT_NOT_FOUND | Code.VERSION_NOT_FOUND:
            return RegistryUnavailable(f"the registry lacks something that it should have ({asked}{said})")
        case 409, _:
            return SchemaError(f"the registry refuses it as incompatible with an earlier version{said}")
        case 422, _:
            return SchemaError(f"the registry refuses it as invalid{said}")
        case _:
            return RegistryUnavailable(f"the registry answered {status} to {asked}{said}; {_advice(status)}")


def _advice(status: int) -> str:
    match status:
        case 401:
            return "set PACKHORSE_REGISTRY_USER and PACKHORSE_REGISTRY_PASSWORD (or …_FILE)"
        case 403:
            return (
                "give the user the right to read schemas, or to write them for `packhorse schemas register`"
            )
        case 404:
            return "check PACKHORSE_REGISTRY_URL: nothing of a schema registry is at that address"
        case 429:
            return "it asks for fewer calls; trying again later helps"
        case 200:
            return "that is not the JSON of the Confluent API; check that PACKHORSE_REGISTRY_URL is a schema registry's"
        case _ if 300 <= status < 400:
            return "redirects are not followed; set PACKHORSE_REGISTRY_URL to where it leads"
        case _:
            return "look at the registry's own log"


def stored_schema(body: Mapping[str, Any], *, asked: str) -> StoredSchema:
    """
    Return the schema in *body*.

    Raises:
        Undecodable: It is of another kind than Avro.
        RegistryUnavailable: The body has not the form that the API promises.
    """
    kind = body.get("schemaType") or _AVRO
    if kind != _AVRO:
        raise Undecodable(f"the schema is {_shown(kind)}, {_AVRO} is needed ({asked})")
    raw = body.get("references") or []
    if not isinstance(body.get("schema"), str) or not isinstance(raw, list):
        raise _malformed(asked)
    return StoredSchema(text=body["schema"], references=tuple(_reference(item, asked) for item in raw))


def registered(body: Mapping[str, Any], *, asked: str) -> Registered:
    """
    Return id and version in *body*.

    Raises:
        RegistryUnavailable: The body has not the form that the API promises.
    """
    schema_id, version = body.get("id"), body.get("version", 0)
    if type(schema_id) is not int or type(version) is not int:
        raise _malformed(asked)
    return Registered(schema_id=schema_id, version=version)


def _reference(raw: Any, asked: str) -> RegistryReference:
    match raw:
        case {"name": str(name), "subject": str(subject), "version": int(version)}:
            return RegistryReference(name=name, subject=subject, version=version)
        case _:
            raise _malformed(asked)


def _malformed(asked: str) -> RegistryUnavailable:
    return RegistryUnavailable(
        f"the registry's answer to {asked} has not the form of the Confluent API; check PACKHORSE_REGISTRY_URL"
    )


def _object(content: bytes) -> Mapping[str, Any] | None:
    found = _json(content)
    return found if isinstance(found, dict) else None


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _shown(text: object) -> str:
    plain = " ".join(str(text).split())
    return plain if len(plain) <= _TEXT_SHOWN else f"{plain[: _TEXT_SHOWN - 1]}…"
