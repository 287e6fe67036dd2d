"""Put the service together from settings; the drivers are imported here and not before."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from packhorse.console.service import OperatorService
from packhorse.console.settings import ConsoleSettings

if TYPE_CHECKING:
    from packhorse.console.kafka import KafkaTopics
    from packhorse.console.registry import RegistryPayloads


@contextmanager
def service_of(settings: ConsoleSettings) -> Iterator[OperatorService]:
    """
    Connect to the database and hand out the service; broker and registry are spoken to only when they are needed.

    Raises:
        SettingsError: A setting is not allowed.
        DatabaseUnavailable: The database does not answer, or refuses us.
    """
    from packhorse.console.postgres import opened

    url = settings.database_url.get_secret_value()
    with (
        opened(url, schema=settings.database_schema, timeout=settings.timeout) as tables,
        ExitStack() as open_,
    ):
        yield OperatorService(
            tables,
            topics=_topics(settings),
            payloads=_payloads(settings, open_),
            namespace=settings.namespace,
        )


def _topics(settings: ConsoleSettings) -> "KafkaTopics | None":
    if settings.kafka_bootstrap_servers is None:
        return None
    from packhorse.console.kafka import KafkaTopics, Limits

    return KafkaTopics(
        settings.kafka_bootstrap_servers,
        properties=settings.kafka_properties,
        sasl_password=settings.sasl_password(),
        limits=Limits(
            records=settings.search_records, seconds=settings.search_seconds, timeout=settings.timeout
        ),
    )


def _payloads(settings: ConsoleSettings, open_: ExitStack) -> "RegistryPayloads | None":
    registry = settings.registry()
    if registry is None:
        return None
    from packhorse.console.registry import RegistryPayloads
    from packhorse.schemas.registry import Registry

    return RegistryPayloads(open_.enter_context(Registry(registry)))
