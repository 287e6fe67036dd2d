"""Put the service together from settings; the drivers are imported here and not before."""

from collections.abc import Iterator
from contextlib import contextmanager

from packhorse.console.service import OperatorService
from packhorse.console.settings import ConsoleSettings


@contextmanager
def service_of(settings: ConsoleSettings) -> Iterator[OperatorService]:
    """
    Connect to the database and hand out the service; broker and registry are spoken to only when they are needed.

    Raises:
        SettingsError: A setting is not allowed.
        DatabaseUnavailable: The database does not answer, or refuses us.
    """
    from packhorse.console.kafka import KafkaTopics, Limits
    from packhorse.console.postgres import opened

    topics = None
    if settings.kafka_bootstrap_servers is not None:
        topics = KafkaTopics(
            settings.kafka_bootstrap_servers,
            properties=settings.kafka_properties,
            sasl_password=settings.sasl_password(),
            limits=Limits(
                records=settings.search_records, seconds=settings.search_seconds, timeout=settings.timeout
            ),
        )
    url = settings.database_url.get_secret_value()
    with opened(url, schema=settings.database_schema, timeout=settings.timeout) as tables:
        yield OperatorService(tables, topics=topics, namespace=settings.namespace)
