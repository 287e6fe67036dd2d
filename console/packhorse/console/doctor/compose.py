"""Put the doctor's checks together from settings; drivers are imported inside the checks."""

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from packhorse.console.doctor.findings import Finding, ok, skipped
from packhorse.console.doctor.judge_broker import judge_broker, judge_plan, judge_topics, topics_of
from packhorse.console.doctor.judge_schemas import judge_schemas
from packhorse.console.doctor.judge_settings import Further, judge_settings
from packhorse.console.doctor.judge_takeover import judge_takeover
from packhorse.console.doctor.runner import Check
from packhorse.console.settings import DoctorSettings
from packhorse.core.errors import InfrastructureError, NotReady, UnknownSchema
from packhorse.schemas.settings import PartSettings

if TYPE_CHECKING:
    from packhorse.console.doctor.kafka import BrokerCheck
    from packhorse.console.doctor.postgres import DatabaseCheck
    from packhorse.schemas.registry import Registry

SETTINGS_MODULES = (
    "packhorse.schemas.options",
    "packhorse.producer.settings",
    "packhorse.relay.settings",
    "packhorse.processor.settings",
    "packhorse.console.settings",
)
"""Where the parts keep their settings models."""


def checks(settings: DoctorSettings, *, avro: Path | None, app: str | None) -> list[Check]:
    """Return the checks that *settings* allow, each to be run apart from the others."""
    doctor = _Doctor(settings)
    away = "it is down, not reachable from here, or refuses us"
    made = [
        Check(
            name="settings",
            run=_settings,
            cause="a settings file or variable can't be read",
            next_step="docs/reference/settings.md lists all settings",
        ),
        Check(
            name="database",
            run=doctor.database,
            cause=away,
            next_step="start it, or correct PACKHORSE_DATABASE_URL; see docs/runbooks/database-trouble.md",
        ),
        Check(
            name="broker",
            run=doctor.broker,
            cause=away,
            next_step="start it, or correct PACKHORSE_KAFKA_BOOTSTRAP_SERVERS and PACKHORSE_KAFKA_PROPERTIES; "
            "see docs/runbooks/broker-trouble.md",
        ),
        Check(
            name="topics", run=doctor.topics, cause="a right is missing", next_step="packhorse topics plan"
        ),
        Check(
            name="take-over",
            run=doctor.takeover,
            cause=away,
            next_step="see docs/how-to/run-the-processor.md",
        ),
        Check(
            name="registry",
            run=doctor.registry,
            cause=away,
            next_step="start it, or correct PACKHORSE_REGISTRY_URL",
        ),
    ]
    if avro is not None:
        made.append(
            Check(
                name="schema ids",
                run=lambda: doctor.schema_ids(avro),
                cause="the folder, the database or the registry can't be read",
                next_step=f"packhorse schemas check --avro-dir {avro}",
            )
        )
    if app is not None:
        made.append(
            Check(
                name="application",
                run=lambda: doctor.application(app),
                cause="the application can't be loaded, or the broker can't be asked",
                next_step=f"packhorse topics plan {app}",
            )
        )
    return made


def settings_models() -> list[type[PartSettings]]:
    """Return the settings models of all parts, by importing each part's settings module."""
    for module in SETTINGS_MODULES:
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module)
    found: list[type[PartSettings]] = []
    waiting = [PartSettings]
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        if model.section and model.__module__.startswith("packhorse."):
            found.append(model)
    return sorted(found, key=lambda model: (model.section, model.__name__))


def _settings() -> Sequence[Finding]:
    from packhorse.processor.clients import consumer_properties
    from packhorse.processor.settings import ProcessorSettings
    from packhorse.relay.compose import kafka_properties
    from packhorse.relay.settings import RelaySettings

    further: Further = {
        RelaySettings: kafka_properties,
        ProcessorSettings: lambda settings: consumer_properties(settings, "group"),
    }
    return list(judge_settings(settings_models(), os.environ, further=further))


class _Doctor:
    """The checks that need a driver, each with its own connections."""

    def __init__(self, settings: DoctorSettings) -> None:
        self._settings = settings

    def database(self) -> Sequence[Finding]:
        found = self._database()
        return [_unset("database", "PACKHORSE_DATABASE_URL")] if found is None else found.findings()

    def broker(self) -> Sequence[Finding]:
        found = self._broker()
        if found is None:
            return [_unset("broker", "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS")]
        return list(judge_broker(found.broker()))

    def topics(self) -> Sequence[Finding]:
        database, broker = self._database(), self._broker()
        if database is None or broker is None:
            return [skipped("topics", "needs a database and a broker")]
        try:
            sources, groups = database.topics()
            topics = broker.topics(topics_of(sources, groups, broker.names()))
        except (InfrastructureError, NotReady) as error:
            return [
                skipped(
                    "topics", f"not looked at: {error}", next_step="see the checks of database and broker"
                )
            ]
        return list(judge_topics(sources, groups, topics))

    def takeover(self) -> Sequence[Finding]:
        database, kafka = self._database(), self._settings.kafka()
        if database is None or kafka is None:
            return [skipped("take-over", "needs a database and a broker")]
        from packhorse.processor.clients import admin_properties
        from packhorse.processor.kafka.group_times import GroupQuestions

        try:
            groups = {group for group, _, _ in database.topics()[1]}
        except (InfrastructureError, NotReady) as error:
            return [
                skipped("take-over", f"not looked at: {error}", next_step="see the check of the database")
            ]
        broker = GroupQuestions(admin_properties(kafka))
        times = {
            group: broker.times(
                group,
                {
                    **kafka.kafka_properties,
                    "group.protocol": "classic" if broker.is_classic(group) else "consumer",
                },
            )
            for group in groups
        }
        return list(judge_takeover(times)) or [skipped("take-over", "no group reads")]

    def registry(self) -> Sequence[Finding]:
        registry = self._settings.registry()
        if registry is None:
            return [_unset("registry", "PACKHORSE_REGISTRY_URL")]
        from packhorse.schemas.registry import Registry

        with Registry(registry) as asked:
            return [ok("registry", f"it answers, with {len(asked.subjects())} subjects")]

    def schema_ids(self, avro: Path) -> Sequence[Finding]:
        from packhorse.schemas.folder import load_folder
        from packhorse.schemas.registry import Registry

        folder, database, registry = load_folder(avro), self._database(), self._settings.registry()
        if database is None:
            return [skipped("schema ids", "needs a database")]
        if registry is None:
            return list(judge_schemas(folder, database.schema_ids(), None))
        with Registry(registry) as asked:
            return list(judge_schemas(folder, database.schema_ids(), lambda number: _knows(asked, number)))

    def application(self, target: str) -> Sequence[Finding]:
        kafka = self._settings.kafka()
        if kafka is None:
            return [_unset("application", "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS")]
        from packhorse.processor.clients import admin_properties
        from packhorse.processor.kafka.admin import BrokerQuestions
        from packhorse.processor.loading import load
        from packhorse.processor.topics.plan import plan, wanted_by

        wanted = wanted_by([load(target)], (), partitions=None, replication=-1)
        broker = BrokerQuestions(admin_properties(kafka))
        there = broker.standing(wanted)
        steps = plan(wanted, there, default_max_bytes=broker.default_max_message_bytes())
        return list(judge_plan(target, len(wanted.names), [str(step) for step in steps]))

    def _database(self) -> "DatabaseCheck | None":
        from packhorse.console.doctor.postgres import DatabaseCheck

        settings = self._settings
        if settings.database_url is None:
            return None
        url = settings.database_url.get_secret_value()
        return DatabaseCheck(url, schema=settings.database_schema, timeout=settings.timeout)

    def _broker(self) -> "BrokerCheck | None":
        from packhorse.console.doctor.kafka import BrokerCheck
        from packhorse.processor.clients import admin_properties

        kafka = self._settings.kafka()
        if kafka is None:
            return None
        return BrokerCheck(
            kafka.kafka_bootstrap_servers, admin_properties(kafka), timeout=self._settings.timeout
        )


def _knows(registry: "Registry", schema_id: int) -> bool:
    try:
        registry.schema_of(schema_id)
    except UnknownSchema:
        return False
    return True


def _unset(check: str, variable: str) -> Finding:
    return skipped(
        check, f"{variable} is not set", next_step=f"set {variable}; packhorse dev env prints it for `dev`"
    )
