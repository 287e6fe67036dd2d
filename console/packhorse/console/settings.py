"""The console's settings: a database always, broker and registry only for what needs them."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, Field, SecretStr

from packhorse.console.api.hosts import Hosts
from packhorse.console.pages.origins import Trusted
from packhorse.core.errors import SettingsError
from packhorse.core.naming import checked_identifier, checked_topic
from packhorse.schemas.settings import PartSettings
from packhorse.schemas.systems import (
    DatabaseUrl,
    KafkaProperties,
    KafkaSettings,
    RegistrySettings,
    RegistryUrl,
)

SHORTEST_KEY = 32
"""Characters of a key that signs cookies, at least."""


def _namespace(value: str | None) -> str | None:
    return None if value is None else _checked(lambda: checked_topic(value))


def _schema(value: str) -> str:
    return _checked(lambda: checked_identifier(value, what="database schema"))


def _proxies(value: str) -> str:
    return _checked(lambda: (Trusted(value), value)[1])


def _hosts(value: str) -> str:
    return _checked(lambda: (Hosts("", value), value)[1])


def _keys(value: SecretStr) -> SecretStr:
    keys = value.get_secret_value().split()
    if not keys or min(map(len, keys)) < SHORTEST_KEY:
        raise ValueError(f"a key needs {SHORTEST_KEY} characters or more: openssl rand -hex 32 makes one")
    return value


def _checked(check: Callable[[], str]) -> str:
    try:
        return check()
    except SettingsError as error:
        raise ValueError(str(error)) from None


class ServerFields(BaseModel):
    """
    Say how `packhorse console` serves; the other commands of the section know these names and do not use them.

    Attributes:
        token: For the commands: whose rights count and who is on record, instead of the database's role; set it from a file.
        host, port: Where it listens; port 0 takes any that is free, and the log names it.
        hosts: Names, parted by commas, by which it may be asked for beside that of its address and this machine's own: the proxy's, e.g. packhorse.example.org. Requests for others are refused.
        runner: Whether it goes on with redrives and replays that are running.
        proxies: Addresses or networks, parted by commas, of proxies whose X-Forwarded-For, X-Forwarded-Proto and, with user_header, whose word about who is there is believed; none by default.
        pages: Whether it serves the web page beside the API.
        user_header: Header in which those proxies name whom they have signed in, e.g. X-Forwarded-User; they must drop it from what comes in.
        links: Whether the terminal shows links that sign in once as the console's own role; by default where standard error is a terminal.
        session_key: What cookies are signed with, 32 characters or more, several parted by blanks, the newest last; set it from a file. Without it each start signs everybody out.
        connections: Connections to the database, at most, which requests share.
        drain_timeout: Seconds that requests in hand may take after SIGTERM.
    """

    token: SecretStr | None = None
    host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    port: int = Field(default=8400, ge=0, le=65_535)
    hosts: Annotated[str, Field(max_length=1_000), AfterValidator(_hosts)] = ""
    runner: bool = True
    proxies: Annotated[str, Field(max_length=1_000), AfterValidator(_proxies)] = ""
    pages: bool = True
    user_header: Annotated[str, Field(pattern="^[A-Za-z][A-Za-z0-9-]{0,99}$")] | None = None
    links: bool | None = None
    session_key: Annotated[SecretStr, AfterValidator(_keys)] | None = None
    connections: int = Field(default=10, ge=1, le=200)
    drain_timeout: float = Field(default=10.0, ge=1, le=300)


class DoctorSettings(ServerFields, PartSettings):
    """
    Say what `packhorse doctor` looks at; what is not set is a finding and no error.

    Attributes:
        database_url: libpq URL or connection string of Postgres; may hold a password.
        database_schema: Database schema of Packhorse's own tables.
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
        contacts: File in TOML with a table for each contact: url, secret_file, timeout; for the application that tells them.
    """

    section: ClassVar[str] = "console"

    database_url: DatabaseUrl | None = None
    database_schema: Annotated[str, AfterValidator(_schema)] = "packhorse"
    kafka_bootstrap_servers: Annotated[str, Field(min_length=1)] | None = None
    kafka_properties: KafkaProperties = Field(default_factory=dict)
    kafka_sasl_password: SecretStr | None = None
    registry_url: RegistryUrl | None = None
    registry_user: str | None = None
    registry_password: SecretStr | None = None
    registry_timeout: float = Field(default=5.0, gt=0, le=60)
    namespace: Annotated[str | None, AfterValidator(_namespace)] = None
    timeout: float = Field(default=5.0, ge=1, le=60)
    search_records: int = Field(default=10_000, ge=1, le=1_000_000)
    search_seconds: float = Field(default=5.0, gt=0, le=300)
    contacts: Path | None = None

    def registry(self) -> RegistrySettings | None:
        """Return the registry's settings; None when it is not set."""
        if self.registry_url is None:
            return None
        return RegistrySettings(
            registry_url=self.registry_url,
            registry_user=self.registry_user,
            registry_password=self.registry_password,
            registry_timeout=self.registry_timeout,
        )

    def kafka(self) -> KafkaSettings | None:
        """Return the broker's settings; None when it is not set."""
        if self.kafka_bootstrap_servers is None:
            return None
        return KafkaSettings(
            kafka_bootstrap_servers=self.kafka_bootstrap_servers,
            kafka_properties=self.kafka_properties,
            kafka_sasl_password=self.kafka_sasl_password,
        )

    def sasl_password(self) -> str | None:
        """Return the password for SASL in clear, for the client alone."""
        return None if self.kafka_sasl_password is None else self.kafka_sasl_password.get_secret_value()


class ConsoleSettings(DoctorSettings):
    """Say what the console looks at: the same, and a database always."""

    database_url: DatabaseUrl

    def token_in_clear(self) -> str | None:
        """Return the token, to be hashed and not to be kept."""
        return None if self.token is None else self.token.get_secret_value()
