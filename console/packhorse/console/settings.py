"""The console's settings: a database always, broker and registry only for what needs them."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, SecretStr

from packhorse.core.errors import SettingsError
from packhorse.core.naming import checked_topic
from packhorse.schemas.settings import DatabaseSettings, PartSettings


def _namespace(value: str | None) -> str | None:
    try:
        return None if value is None else checked_topic(value)
    except SettingsError as error:
        raise ValueError(str(error)) from None


class ConsoleSettings(PartSettings, DatabaseSettings):
    """
    Say what the console looks at.

    Attributes:
        kafka_bootstrap_servers: host:port, several parted by commas; without it no topic is searched.
        kafka_properties: Further librdkafka properties (security, TLS).
        kafka_sasl_password: Password for SASL.
        registry_url: The Confluent API's base URL; needed to show a payload.
        registry_user, registry_password: For basic authentication, if it is asked for.
        registry_timeout: Seconds for connect, and for each read.
        namespace: First part of every topic's name; needed to search a topic.
        timeout: Seconds after which a question to database or broker is given up.
        search_records: Records that one search reads at most.
        search_seconds: Seconds that one search takes at most.
    """

    section: ClassVar[str] = "console"

    kafka_bootstrap_servers: str | None = None
    kafka_properties: dict[str, str | int | float | bool] = Field(default_factory=dict)
    kafka_sasl_password: SecretStr | None = None
    registry_url: str | None = None
    registry_user: str | None = None
    registry_password: SecretStr | None = None
    registry_timeout: float = Field(default=5.0, gt=0, le=60)
    namespace: Annotated[str | None, AfterValidator(_namespace)] = None
    timeout: float = Field(default=5.0, ge=1, le=60)
    search_records: int = Field(default=10_000, ge=1, le=1_000_000)
    search_seconds: float = Field(default=5.0, gt=0, le=300)
