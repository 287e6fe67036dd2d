"""Put the service together from settings; the drivers are imported here and not before."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING

from packhorse.console.acting.person import Person, this_process
from packhorse.console.acting.service import People
from packhorse.console.audit.service import Audit
from packhorse.console.finding.service import Finding
from packhorse.console.jobs.service import Jobs
from packhorse.console.offsets.service import Offsets
from packhorse.console.operators.service import Operators
from packhorse.console.pausing.service import Pausing
from packhorse.console.processing.service import Processing
from packhorse.console.purging.service import Purging
from packhorse.console.quarantine.groups.service import Groups
from packhorse.console.quarantine.restoring.listing import Bound
from packhorse.console.quarantine.restoring.service import Restoring
from packhorse.console.quarantine.service import Quarantine
from packhorse.console.reconciling.service import Reconciling
from packhorse.console.redriving.edits import Edits
from packhorse.console.redriving.service import Redrives
from packhorse.console.relaying.service import Relaying
from packhorse.console.replaying.service import Replays
from packhorse.console.service import Service
from packhorse.console.settings import ConsoleSettings
from packhorse.console.top.service import Top
from packhorse.console.truth.service import Truth
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK

if TYPE_CHECKING:
    from packhorse.console.acting.postgres import Database
    from packhorse.console.offsets.kafka import GroupOffsets
    from packhorse.console.pausing.kafka import PausingBroker
    from packhorse.console.replaying.reading import Ranges
    from packhorse.console.top.kafka import TopicEnds
    from packhorse.console.truth.kafka import KafkaTopics
    from packhorse.console.truth.registry import RegistryPayloads


@contextmanager
def service_of(settings: ConsoleSettings, *, claimed: str | None = None) -> Iterator[Service]:
    """
    Connect to the database and hand out the service of whoever runs this process; broker and registry are spoken to only when
    they are needed. The holder of PACKHORSE_CONSOLE_TOKEN acts if it is set, else the database's role; *claimed* is on record as such.

    Raises:
        SettingsError: A setting is not allowed.
        DatabaseUnavailable: The database does not answer, or refuses us.
    """
    from packhorse.console.acting.postgres import opened

    url = settings.database_url.get_secret_value()
    person = this_process(claimed=claimed, token=settings.token_in_clear())
    with (
        opened(url, schema=settings.database_schema, timeout=settings.timeout) as database,
        ExitStack() as open_,
    ):
        yield rooms(database, person, settings, topics=_topics(settings), payloads=_payloads(settings, open_))


@contextmanager
def services_of(settings: ConsoleSettings, database: "Database") -> Iterator[Callable[[Person], Service]]:
    """
    Hand out what makes the service of each person that a server answers; broker and registry are shared by all.

    Raises:
        SettingsError: A setting is not allowed.
    """
    with ExitStack() as open_:
        topics, payloads = _topics(settings), _payloads(settings, open_)
        made = _ends(settings)
        ends = None if made is None else cache(made)
        yield lambda person: rooms(database, person, settings, topics=topics, payloads=payloads, ends=ends)


def rooms(
    database: "Database",
    person: Person,
    settings: ConsoleSettings,
    *,
    topics: "KafkaTopics | None",
    payloads: "RegistryPayloads | None",
    ends: "Callable[[], TopicEnds] | None" = None,
) -> Service:
    """Return the service of *person*; *ends* is what asks where topics end, where several services share it."""
    from packhorse.console.audit.postgres import AuditTable
    from packhorse.console.finding.postgres import FindingTables
    from packhorse.console.jobs.postgres import JobTables
    from packhorse.console.offsets.postgres import OffsetsTables
    from packhorse.console.operators.postgres import OperatorTables
    from packhorse.console.pausing.postgres import PausingTables
    from packhorse.console.processing.postgres import ProcessingTables
    from packhorse.console.purging.postgres import PurgeTables
    from packhorse.console.quarantine.groups.postgres import GroupTables
    from packhorse.console.quarantine.postgres import QuarantineTables
    from packhorse.console.quarantine.restoring.postgres import RestoringTables
    from packhorse.console.reconciling.postgres import ReconcilingTables
    from packhorse.console.redriving.edits import EditTables
    from packhorse.console.redriving.postgres import RedriveTables
    from packhorse.console.relaying.postgres import RelayTables
    from packhorse.console.replaying.postgres import ReplayTables
    from packhorse.console.top.postgres import TopTables
    from packhorse.console.truth.postgres import FactTables

    facts = FactTables(database, namespace=settings.namespace)
    truth = Truth(facts, person, topics=topics, namespace=settings.namespace)
    quarantine = Quarantine(QuarantineTables(database), truth, person, payloads=payloads)
    broker, ranges = _broker(settings), _ranges(settings)
    return Service(
        people=People(database, person),
        operators=Operators(OperatorTables(database), person),
        audit=Audit(AuditTable(database), person),
        pausing=Pausing(PausingTables(database), person, broker=broker),
        processing=Processing(ProcessingTables(database), person),
        purging=Purging(PurgeTables(database), person, broker=broker),
        truth=truth,
        finding=Finding(FindingTables(database), person, places=topics),
        quarantine=quarantine,
        jobs=Jobs(
            JobTables(database), truth, quarantine, person, payloads=payloads, namespace=settings.namespace
        ),
        groups=Groups(GroupTables(database), person),
        restoring=Restoring(
            RestoringTables(database),
            truth,
            person,
            ranges=ranges,
            bound=Bound(records=settings.search_records, seconds=settings.search_seconds),
        ),
        top=Top(TopTables(database), person, broker=ends or _ends(settings)),
        relaying=Relaying(RelayTables(database), person),
        replays=Replays(ReplayTables(database), person, broker=ranges, decodes=payloads),
        offsets=Offsets(OffsetsTables(database), person, broker=_offsets(settings)),
        reconciling=Reconciling(ReconcilingTables(database), person),
        redrives=Redrives(RedriveTables(database), person, clock=SYSTEM_CLOCK),
        edits=Edits(
            EditTables(database),
            person,
            decoder=None if payloads is None else payloads.decoder,
            clock=SYSTEM_CLOCK,
            chance=SYSTEM_CHANCE,
        ),
    )


def _broker(settings: ConsoleSettings) -> "PausingBroker | None":
    kafka = settings.kafka()
    if kafka is None:
        return None
    from packhorse.console.pausing.kafka import PausingBroker

    return PausingBroker(kafka)


def _ranges(settings: ConsoleSettings) -> "Callable[[], Ranges] | None":
    """Return what makes the reader of ranges: its clients begin to work as soon as they are made."""
    if (broker := settings.kafka()) is None:
        return None

    def make() -> "Ranges":
        from packhorse.console.replaying.kafka import KafkaRanges

        return KafkaRanges(broker)

    return make


def _offsets(settings: ConsoleSettings) -> "Callable[[], GroupOffsets] | None":
    if (broker := settings.kafka()) is None:
        return None

    def make() -> "GroupOffsets":
        from packhorse.console.offsets.kafka import GroupOffsets

        return GroupOffsets(broker)

    return make


def _ends(settings: ConsoleSettings) -> "Callable[[], TopicEnds] | None":
    kafka = settings.kafka()
    if kafka is None:
        return None

    def made() -> "TopicEnds":
        from packhorse.console.top.kafka import TopicEnds
        from packhorse.processor.clients import admin_properties

        return TopicEnds(admin_properties(kafka))

    return made


def _topics(settings: ConsoleSettings) -> "KafkaTopics | None":
    if settings.kafka_bootstrap_servers is None:
        return None
    from packhorse.console.truth.kafka import KafkaTopics, Limits

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
    from packhorse.console.truth.registry import RegistryPayloads
    from packhorse.schemas.registry import Registry

    return RegistryPayloads(open_.enter_context(Registry(registry)))
