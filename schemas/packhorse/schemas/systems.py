"""The settings of the three systems underneath, and of the namespace, as the parts' settings models mix them in."""

import json
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr

from packhorse.core.errors import SettingsError
from packhorse.core.naming import checked_identifier, checked_topic
from packhorse.schemas.conninfo import checked_conninfo


def _identifier(value: str) -> str:
    return _as_value_error(lambda: checked_identifier(value, what="database schema"))


def _namespace(value: str) -> str:
    return _as_value_error(lambda: checked_topic(value))


def _as_value_error(check: Any) -> str:
    try:
        return str(check())
    except SettingsError as error:
        raise ValueError(str(error)) from None


def _conninfo(value: SecretStr) -> SecretStr:
    checked_conninfo(value.get_secret_value())
    return value


DatabaseUrl = Annotated[SecretStr, AfterValidator(_conninfo)]
"""libpq URL or connection string; checked so that no driver's error can quote a piece of its password."""


class DatabaseSettings(BaseModel):
    """
    Say where the tables are.

    Attributes:
        database_url: libpq URL or connection string of Postgres; may hold a password.
        database_schema: Database schema of Packhorse's own tables.
    """

    database_url: DatabaseUrl
    database_schema: Annotated[str, AfterValidator(_identifier)] = "packhorse"


def _properties(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError('not a JSON object; it looks like {"security.protocol": "SASL_SSL"}')  # noqa: TRY004 pydantic's way
    return found


KafkaProperties = Annotated[dict[str, str | int | float | bool], BeforeValidator(_properties)]
"""librdkafka properties: a table in packhorse.toml, a JSON object in the environment."""


class KafkaSettings(BaseModel):
    """
    Say where the broker is and how to speak to it.

    Attributes:
        kafka_bootstrap_servers: host:port, several parted by commas.
        kafka_properties: Further librdkafka properties (security, TLS); those that would break a promise are refused.
        kafka_sasl_password: Password for SASL, apart from the properties so that it can come from a file.
    """

    kafka_bootstrap_servers: str = Field(min_length=1)
    kafka_properties: KafkaProperties = Field(default_factory=dict, repr=False)
    kafka_sasl_password: SecretStr | None = None


def _registry_url(value: str) -> str:
    parts = urlsplit(value)
    if "@" in parts.netloc:
        raise ValueError(
            "credentials stand apart: set PACKHORSE_REGISTRY_USER and PACKHORSE_REGISTRY_PASSWORD (or …_FILE)"
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(
            "http:// or https://, a host and perhaps a path are needed, e.g. http://registry:8081"
        )
    return value.rstrip("/")


RegistryUrl = Annotated[str, AfterValidator(_registry_url)]
"""The Confluent API's base URL, without credentials in it."""


class RegistrySettings(BaseModel):
    """
    Say where the schema registry is (the Confluent API's base URL).

    Attributes:
        registry_url: e.g. http://registry:8081 or http://apicurio:8080/apis/ccompat/v7.
        registry_user, registry_password: For basic authentication, if it is asked for.
        registry_timeout: Seconds for connect, and for each read; one call takes at most twice as long.
    """

    registry_url: RegistryUrl
    registry_user: str | None = None
    registry_password: SecretStr | None = None
    registry_timeout: float = Field(default=5.0, gt=0, le=60)


class NamespaceSettings(BaseModel):
    """
    Say which namespace the topics have.

    Attributes:
        namespace: First part of every topic's name.
    """

    namespace: Annotated[str, AfterValidator(_namespace)]
