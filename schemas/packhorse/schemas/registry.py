"""The schema registry, by the Confluent API: reads schemas for decoding, and registers them for the command."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import httpx

from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.errors import RegistryUnavailable, SchemaError, Undecodable, UnknownSchema
from packhorse.schemas.answers import (
    Registered,
    RegistryReference,
    StoredSchema,
    body_of,
    is_absent,
    list_of,
    registered,
    stored_schema,
)
from packhorse.schemas.deadline import BoundedTransport
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.systems import RegistrySettings
from packhorse.schemas.text import resolved_text
from packhorse.schemas.tree import Schema

_HEADERS: Final = {
    "Accept": "application/vnd.schemaregistry.v1+json, application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/vnd.schemaregistry.v1+json",
}
_TOTAL_FACTOR = 2
"""One exchange may take as long as connect and one read together."""
_DEEPEST = 32
"""Longest chain of references that is followed."""


class Registry:
    """
    Be a `SchemaSource`, and what `packhorse schemas register` needs besides.

    Keeps each schema for ever by its id, since ids never change their schema; failures are not kept. Safe to share
    between threads. Each call blocks for at most twice `registry_timeout` for each schema that it has to fetch.
    """

    def __init__(self, settings: RegistrySettings, *, clock: Clock = SYSTEM_CLOCK) -> None:
        password = settings.registry_password
        auth = (settings.registry_user, password.get_secret_value() if password else "")
        self._url = settings.registry_url.rstrip("/")
        self._client = httpx.Client(
            auth=auth if settings.registry_user is not None else None,  # type: ignore[arg-type]  # both are text here
            headers=_HEADERS,
            timeout=httpx.Timeout(settings.registry_timeout),
            transport=BoundedTransport(clock, settings.registry_timeout * _TOTAL_FACTOR),
        )
        self._texts: dict[int, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; calls that are under way fail."""
        self._client.close()

    def schema_of(self, schema_id: int) -> str:
        """
        Return the schema with the id, as JSON text that defines all it names.

        Raises:
            UnknownSchema: The registry says clearly that there is no such id.
            Undecodable: There is one, and it is no Avro schema.
            RegistryUnavailable: Anything else, and what to do.
        """
        if schema_id not in self._texts:
            asked = f"/schemas/ids/{schema_id}"
            try:
                stored = stored_schema(self._call("GET", asked), asked=asked)
            except UnknownSchema as error:
                raise UnknownSchema(f"schema {schema_id}: {error}") from error
            except (Undecodable, SchemaError) as error:
                raise Undecodable(f"schema {schema_id}: {error}") from error
            self._texts[schema_id] = self._resolved(f"schema {schema_id}", stored)
        return self._texts[schema_id]

    def lookup(self, subject: str, text: str, references: Sequence[RegistryReference]) -> Registered | None:
        """
        Return where exactly this schema stands under *subject*; None when it does not.

        Raises:
            SchemaError: The registry finds the schema invalid.
            RegistryUnavailable: No clear answer could be had.
        """
        asked = f"/subjects/{quote(subject, safe='')}"
        answer = self._send("POST", asked, _request(text, references))
        if is_absent(answer.status_code, answer.content):
            return None
        return registered(body_of(answer.status_code, answer.content, asked=asked), asked=asked)

    def register(self, subject: str, text: str, references: Sequence[RegistryReference]) -> Registered:
        """
        Register the schema under *subject*, or find it there, and return where it stands.

        Raises:
            SchemaError: The registry finds it invalid, or incompatible with an earlier version.
            RegistryUnavailable: No clear answer could be had; it may be registered by now, and the call may be repeated.
        """
        asked = f"/subjects/{quote(subject, safe='')}/versions"
        made = registered(self._call("POST", asked, _request(text, references)), asked=asked)
        # Not every registry's answer has the version, which whoever refers to this schema needs.
        found = self.lookup(subject, text, references)
        if found is None:
            raise RegistryUnavailable(
                f"the registry took {subject} as schema {made.schema_id} and does not find it; try again"
            )
        return found

    def versions_of(self, subject: str) -> dict[int, str]:
        """
        Return the schemas under *subject*, each as `schema_of` gives it, by the registry's own count of versions.

        Raises:
            Undecodable: One is no Avro schema.
            RegistryUnavailable: No clear answer could be had.
        """
        asked = f"/subjects/{quote(subject, safe='')}/versions"
        answer = self._send("GET", asked, None)
        if is_absent(answer.status_code, answer.content):
            return {}
        found: dict[int, str] = {}
        for version in list_of(answer.status_code, answer.content, asked=asked):
            one = f"{asked}/{version}"
            body = self._call("GET", one)
            stored = stored_schema(body, asked=one)
            found[int(version)] = self._resolved(f"{subject} version {version}", stored)
        return found

    def subjects(self) -> list[str]:
        """
        Return the names of all subjects; the cheapest question to see that a registry is there.

        Raises:
            RegistryUnavailable: It is not, or refuses.
        """
        asked = "/subjects"
        answer = self._send("GET", asked, None)
        return [str(subject) for subject in list_of(answer.status_code, answer.content, asked=asked)]

    def _resolved(self, what: str, stored: StoredSchema) -> str:
        try:
            return resolved_text(self._parsed(stored, depth=0))
        except SchemaError as error:
            raise Undecodable(f"{what}: {error}") from error

    def _parsed(self, stored: StoredSchema, *, depth: int) -> Schema:
        if depth > _DEEPEST:
            raise SchemaError(f"its references go deeper than {_DEEPEST}")
        parts = [self._parsed(self._referred(reference), depth=depth + 1) for reference in stored.references]

        def find(name: str) -> Schema | None:
            return next((part for part in parts if name in part.names), None)

        return parse_schema(stored.text, find=find)

    def _referred(self, reference: RegistryReference) -> StoredSchema:
        asked = f"/subjects/{quote(reference.subject, safe='')}/versions/{reference.version}?deleted=true"
        return stored_schema(self._call("GET", asked), asked=asked)

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        answer = self._send(method, path, body)
        return body_of(answer.status_code, answer.content, asked=path)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> httpx.Response:
        try:
            return self._client.request(method, f"{self._url}{path}", json=body)
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:
            raise RegistryUnavailable(
                f"the registry at {self._url} did not answer {path}: {error}; is it running, and is PACKHORSE_REGISTRY_URL right?"
            ) from error


def _request(text: str, references: Sequence[RegistryReference]) -> dict[str, Any]:
    listed = [{"name": one.name, "subject": one.subject, "version": one.version} for one in references]
    return {"schema": text, "schemaType": "AVRO", **({"references": listed} if listed else {})}
