"""Put a processor together from its settings, and check at the start that all it needs is there."""

from collections import Counter
from uuid import UUID

from packhorse.core import logs
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.errors import RegistryUnavailable
from packhorse.core.telemetry import NO_TELEMETRY, Telemetry
from packhorse.processor.app import Processor
from packhorse.processor.clients import admin_properties, consumer_properties, producer_properties
from packhorse.processor.inbox.postgres import InboxTables
from packhorse.processor.inbox.retention import InboxRetention
from packhorse.processor.jobs.keeper import JobKeeper
from packhorse.processor.jobs.keeping.postgres import JobTables
from packhorse.processor.jobs.keeping.retention import JobRetention
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.kafka.consumer import GroupConsumer
from packhorse.processor.kafka.group_times import GroupQuestions
from packhorse.processor.kafka.producer import CopyProducer
from packhorse.processor.kafka.trimming import RecordDeleter
from packhorse.processor.keeping.keeper import Keeper, own_name
from packhorse.processor.member.intake import Intake
from packhorse.processor.member.jobs import Place
from packhorse.processor.member.loop import Loop, StopSign, Times
from packhorse.processor.member.rationing import job_lanes
from packhorse.processor.parking.crowding import Bounds
from packhorse.processor.plant import Plant
from packhorse.processor.record import Stream
from packhorse.processor.running.lanes import Lanes
from packhorse.processor.running.measure import Measure
from packhorse.processor.settings import ProcessorSettings
from packhorse.processor.signals import Signal, no_signal
from packhorse.processor.storing import postgres
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.store import Store
from packhorse.processor.takeover import GroupTimes, below_session
from packhorse.processor.tiers.ladder import sources_of, tiers_among
from packhorse.processor.tiers.trimming import Trimmer
from packhorse.processor.topics.checking import needed, partitions_of
from packhorse.processor.topics.keeper import TopicKeeper
from packhorse.processor.topics.watching import TopicWatch
from packhorse.processor.watching.board import LOOP
from packhorse.processor.watching.compose import Watching
from packhorse.processor.watching.renewer import Renewer
from packhorse.processor.watching.watchdog import Watchdog
from packhorse.producer import Outbox
from packhorse.schemas.decode import Decoder
from packhorse.schemas.fit import check_fit
from packhorse.schemas.registry import Registry

log = logs.logger("processor")


class Composed:
    """
    A processor with all that it works with.

    Raises:
        NotReady: A topic, a table or a right is missing; names it. Nothing is made or changed.
        SchemaError: A message class can't read what its subject holds, or was made from a version that is not there.
        SettingsError: A Kafka property would break a promise.
        DatabaseUnavailable, BrokerUnavailable: Either does not answer at the start.
    """

    def __init__(
        self,
        app: Processor,
        settings: ProcessorSettings,
        *,
        telemetry: Telemetry = NO_TELEMETRY,
        signal: Signal = no_signal,
    ) -> None:
        app.check()
        properties = consumer_properties(settings, app.group)
        self.registry = Registry(settings)
        self._check_schemas(app)
        broker = BrokerQuestions(admin_properties(settings))
        sources = sources_of(app, broker.topic_names())
        partitions = partitions_of(app, sources, broker.identities(needed(app, sources)))
        times = GroupQuestions(admin_properties(settings)).times(app.group, properties)
        log.info("a member that is gone is noticed", group=app.group, times=str(times))
        self.copies = CopyProducer(producer_properties(settings))
        store = Store(
            queries=queries_for(settings.database_schema), group=app.group, schema=settings.database_schema
        )
        self.plant = Plant(
            app=app,
            sources=sources,
            member=SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now()),
            conninfo=postgres.settings_of(
                settings.database_url.get_secret_value(),
                idle_ms=_bounded("idle_transaction_timeout", settings.idle_transaction_timeout, times),
                lock_ms=_bounded("lock_timeout", settings.lock_timeout, times),
            ),
            store=store,
            decoder=Decoder(self.registry),
            copies=self.copies,
            broker=broker,
            outbox=Outbox(origin=app.group, schema=settings.database_schema, telemetry=telemetry),
            skip_unknown=settings.unknown_types == "skip",
            missing=settings.missing_records,
            telemetry=telemetry,
            signal=signal,
            log=log,
            reconnected=self._reconnected,
            broke=self._broke,
            partitions=partitions,
            job_lease=settings.job_lease,
        )
        self._check_tables()
        self.plant.board.say("contacts", contacts_of(app))
        self.lanes = Lanes(
            self.plant,
            Measure(telemetry, SYSTEM_CLOCK, app.group),
            count=app.concurrency or settings.concurrency,
        )
        self.loop = Loop(
            consume=lambda loop: GroupConsumer(properties, list(sources), loop, log),
            lanes=self.lanes,
            limits=settings.limits(),
            times=Times(drain=settings.drain_timeout, revoke=settings.revoke_timeout),
            clock=SYSTEM_CLOCK,
            chance=SYSTEM_CHANCE,
            telemetry=telemetry,
            log=log,
            group=app.group,
            streams=self._stream_of,
            sort=Intake(app),
            board=self.plant.board,
            leaving=self.plant.runs.stop,
            bodies=self.plant.runs.are_running,
            ranks=app.ranks,
            ration=job_lanes(app.all_handlers, self.lanes.count),
        )
        self.watching = Watching(
            self.plant,
            settings,
            lanes=app.concurrency or settings.concurrency,
            broker=broker,
            consumer=properties,
            pause=self.loop.pauses,
        )
        self.watchdog = Watchdog(
            self.plant,
            bounds=Bounds(messages=settings.parked_records, size=settings.parked_bytes),
            crowds=self.loop.crowds,
        )
        self.renewer = Renewer(self.plant)
        self.jobs = JobKeeper(self.plant)
        self.keepers = (self._inbox(settings, telemetry), self._jobs(settings, telemetry))
        self.topics = TopicKeeper(
            TopicWatch(sources, broker, log),
            Trimmer(tiers_among(sources), RecordDeleter(admin_properties(settings)), log),
            done=self._done,
            anew=self._reconnected,
            clock=SYSTEM_CLOCK,
            log=log,
        )

    def _inbox(self, settings: ProcessorSettings, telemetry: Telemetry) -> Keeper:
        tables = InboxTables(settings.database_url.get_secret_value(), settings.database_schema)
        retention = InboxRetention(
            tables, settings.inbox_rules, every=settings.inbox_every, by=own_name(), telemetry=telemetry
        )
        return Keeper(retention, SYSTEM_CLOCK, what="inbox")

    def _jobs(self, settings: ProcessorSettings, telemetry: Telemetry) -> Keeper:
        tables = JobTables(settings.database_url.get_secret_value(), settings.database_schema)
        retention = JobRetention(
            tables, settings.job_rules, every=settings.job_every, by=own_name(), telemetry=telemetry
        )
        return Keeper(retention, SYSTEM_CLOCK, what="job-retention")

    def _stream_of(self, place: Place) -> Stream:
        """Return the stream of *place*; its topic's id is known when it was opened."""
        read = self.plant.sources[place[0]]
        return Stream(topic=place[0], topic_id=UUID(int=0), source=read.source, tier=read.tier)

    def _done(self) -> dict[Place, int]:
        """Return up to where partitions are done, durable and committed."""
        return {
            (sample.topic, sample.partition): min(sample.position, sample.committed)
            for sample in self.plant.board.samples
            if sample.position is not None and sample.committed is not None
        }

    def _reconnected(self) -> None:
        self.loop.void()

    def _broke(self, why: str) -> None:
        self.loop.abort(why)

    def run(self, stop: StopSign) -> None:
        """
        Work until *stop* is set; then finish what runs, commit, leave the group, and stop what runs beside the loop.

        Raises:
            DatabaseUnavailable, NotReady: At the start, before a message is read.
            PackhorseError: The process must stop, as `Loop.run` says.
        """
        try:
            self.watching.start()
            self.watchdog.start()
            self.renewer.start()
            self.jobs.start()
            for keeper in self.keepers:
                keeper.start()
            self.topics.start()
            with self.plant.board.vitals.living(LOOP):
                self.loop.run(stop)
        finally:
            self.close()

    def close(self) -> None:
        """Stop what runs beside the loop."""
        self.watchdog.stop()
        self.renewer.stop()
        self.jobs.stop()
        self.plant.ledger.close()
        self.topics.stop()
        for keeper in self.keepers:
            keeper.stop()
        self.copies.close()
        self.plant.deadlines.close()
        self.watching.stop()
        self.registry.close()

    def _check_tables(self) -> None:
        connection = postgres.connect(self.plant.conninfo)
        try:
            postgres.run(connection, self.plant.store.check_ready(jobs=bool(self.plant.app.jobs)))
            _, waiting = postgres.run(connection, self.plant.store.group_standing())
        finally:
            connection.end()
        left: Counter[str] = Counter()
        for topic, _, messages, _ in waiting:
            left[topic] += messages
        for topic in sorted(left.keys() - set(self.plant.app.topics)):
            log.warning(
                "messages of a topic wait that no handler is declared for any more: in retry, parked or in quarantine; they are "
                "kept, and go on when there is one again",
                group=self.plant.app.group,
                topic=topic,
                messages=left[topic],
            )

    def _check_schemas(self, app: Processor) -> None:
        """Check that each message class reads what its subject holds; a registry that is away is no reason not to start."""
        try:
            for message in {handler.message for handler in app.all_handlers}:
                check_fit(message, self.registry)
        except RegistryUnavailable as error:
            log.warning("schemas are not checked: the registry is away", cause=str(error))


def contacts_of(app: Processor) -> dict[str, str]:
    """Return who is told when messages of a type need a person, by type, as status shows it."""
    named = {handler.type.type: app.contact_of(handler.type.type) for handler in app.handlers.values()}
    return {name: contact for name, contact in sorted(named.items()) if contact is not None}


def _bounded(name: str, seconds: float, times: GroupTimes) -> int:
    """Return *seconds* in milliseconds, or less: a frozen owner's transaction must end before the next owner begins."""
    bounded = below_session(seconds, times)
    if bounded < seconds:
        log.info(
            "a time-out is shortened: a frozen process must not block the next owner of its partitions",
            name=name,
            setting=seconds,
            used=round(bounded, 1),
            session=times.session,
        )
    return round(bounded * 1000)
