"""Put a relay together from its settings: the real database, the real broker, the machine's clock."""

import contextlib
from functools import partial

from packhorse.core import logs
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.errors import BrokerUnavailable, NotReady
from packhorse.core.kafka_properties import Property, merged
from packhorse.core.telemetry import NO_TELEMETRY, Telemetry
from packhorse.relay.doing.lease import LeaseKeeper
from packhorse.relay.doing.pace import ThreadPace
from packhorse.relay.doing.shell import Relay
from packhorse.relay.kafka import DEFAULTS, OURS, RESERVED, KafkaBroker, fence_name
from packhorse.relay.model import Policy
from packhorse.relay.owner import owner_name
from packhorse.relay.ports import Probe
from packhorse.relay.postgres.cdc_setup import left_slots
from packhorse.relay.postgres.connection import Reach
from packhorse.relay.postgres.lease import PostgresLease
from packhorse.relay.postgres.outbox import PostgresOutbox
from packhorse.relay.postgres.stream import PostgresStream
from packhorse.relay.postgres.waking import PostgresWakes
from packhorse.relay.records import all_headers_of, headers_of
from packhorse.relay.retention.keeper import RetentionKeeper
from packhorse.relay.retention.postgres import PostgresPartitions
from packhorse.relay.settings import RelaySettings
from packhorse.relay.waking.listener import WakeListener

_log = logs.logger("relay")
MEASURE = 15.0
"""Seconds between two measurements of what waits."""


def kafka_properties(settings: RelaySettings) -> dict[str, Property]:
    """
    Return the client's configuration.

    Raises:
        SettingsError: The user's properties would break a promise; names them.
    """
    password = settings.kafka_sasl_password
    return merged(
        {**DEFAULTS, **settings.kafka_properties},
        OURS,
        bootstrap_servers=settings.kafka_bootstrap_servers,
        sasl_password=None if password is None else password.get_secret_value(),
        part="relay",
        reserved=RESERVED,
    )


def policy(settings: RelaySettings, *, measured: bool) -> Policy:
    """Return the core's policy; *measured*: somebody collects the gauges."""
    return Policy(
        batch_rows=settings.batch_rows,
        poll=settings.poll,
        idle_poll=settings.idle_poll,
        silence=settings.silence,
        stop_within=settings.stop_within,
        release_rate=settings.release_rate,
        mode=settings.mode,
        slot_budget=settings.wal_budget,
        stream_retry=settings.stream_retry,
        measure=MEASURE if measured else 0.0,
    )


def check_ready(settings: RelaySettings) -> None:
    """
    Look at the tables and rights that every relay needs.

    Raises:
        NotReady: Names what is missing.
        DatabaseUnavailable: No answer.
    """
    outbox = PostgresOutbox(
        settings.database_url.get_secret_value(), settings.database_schema, batch_rows=settings.batch_rows,
        reach=Reach(answer=settings.database_timeout),
    )  # fmt: skip
    try:
        outbox.check_ready()
    finally:
        outbox.close()


def tell_of_left_slots(settings: RelaySettings) -> None:
    """Name the slots of ours that nobody reads, once a process: for each of them the database keeps log on its disk."""
    polls = settings.mode == "polling"
    reach = Reach(answer=settings.database_timeout)
    for slot in left_slots(_direct_url(settings), settings.database_schema, reach=reach, ours_too=polls):
        _log.error(
            "nobody reads a replication slot of ours, and the database keeps log for it; "
            "`packhorse relay cdc-setup --drop-slot` gives it up",
            slot=slot.name,
            held_bytes=slot.held_bytes,
        )


def _direct_url(settings: RelaySettings) -> str:
    """Return the URL of the server itself, where a pooler stands at the other."""
    return (settings.replication_url or settings.database_url).get_secret_value()


class Composed:
    """The relay of one shard, and what it holds open: a `Hand` of the crew."""

    def __init__(
        self,
        settings: RelaySettings,
        *,
        shard: int = 0,
        telemetry: Telemetry = NO_TELEMETRY,
        probe: Probe | None = None,
    ) -> None:
        """
        Check tables, rights and topics, and send nothing yet. A broker that is away is no fault of the set-up: it is waited for.

        Raises:
            NotReady: A table, a right or a topic of the registered schemas is missing.
            DatabaseUnavailable: The database does not answer at the start.
            SettingsError: A client property is refused.
        """
        with contextlib.ExitStack() as opened:
            self._open(opened, settings, shard=shard, telemetry=telemetry, probe=probe)
            self._opened = opened.pop_all()

    def _open(
        self,
        opened: contextlib.ExitStack,
        settings: RelaySettings,
        *,
        shard: int,
        telemetry: Telemetry,
        probe: Probe | None,
    ) -> None:
        """Put all together; *opened* closes what stands by then, also when the rest can't be had."""
        url, schema = settings.database_url.get_secret_value(), settings.database_schema
        properties = kafka_properties(settings)
        self.outbox = PostgresOutbox(
            url,
            schema,
            batch_rows=settings.batch_rows,
            shard=shard,
            reach=Reach(answer=settings.database_timeout),
        )
        opened.callback(self.outbox.close)
        self.outbox.check_ready()
        wakes = self._wakes(settings)
        client = partial(
            KafkaBroker, properties, namespace=settings.namespace, clock=SYSTEM_CLOCK,
            headers=all_headers_of if settings.null_headers else headers_of,
        )  # fmt: skip
        fence = fence_name(settings.namespace, schema, shard=shard) if settings.fenced else None
        self.broker = client(fence=fence)
        opened.callback(self.broker.close)
        self._check_topics(settings.namespace)
        self.keeper = LeaseKeeper(
            PostgresLease(url, schema, lease=settings.lease, shard=shard),
            lease=settings.lease,
            clock=SYSTEM_CLOCK,
            halt=self._halt,
        )
        opened.callback(self.keeper.close)
        self.stream = self._stream(settings, shard)
        if self.stream is not None:
            opened.callback(self.stream.close)
        self.pace = ThreadPace()
        opened.callback(self.pace.close)
        self.relay = Relay(
            outbox=self.outbox,
            broker=self.broker,
            keeper=self.keeper,
            pace=self.pace,
            policy=policy(settings, measured=telemetry is not NO_TELEMETRY),
            owner=owner_name(),
            lease=settings.lease,
            clock=SYSTEM_CLOCK,
            chance=SYSTEM_CHANCE,
            telemetry=telemetry,
            probe=probe,
            second=partial(client, fence=None if fence is None else f"{fence}.release"),
            stream=self.stream,
        )
        self.retention = RetentionKeeper(
            PostgresPartitions(url, schema),
            settings.rules,
            every=settings.retention_every,
            by=owner_name(),
            owns=self._owns,
            telemetry=telemetry,
        )
        opened.callback(self.retention.close)
        if shard == 0:
            self.retention.start()
        self.listener = None if wakes is None else WakeListener(wakes, wake=self.relay.wake)
        if self.listener is not None:
            opened.callback(self.listener.close)
            self.listener.start()

    def _stream(self, settings: RelaySettings, shard: int) -> PostgresStream | None:
        """Return the stream that the mode asks for."""
        if settings.mode == "polling":
            return None
        return PostgresStream(
            _direct_url(settings),
            settings.database_schema,
            clock=SYSTEM_CLOCK,
            shard=shard,
            database_url=settings.database_url.get_secret_value(),
            reach=Reach(answer=settings.database_timeout),
        )

    def _wakes(self, settings: RelaySettings) -> PostgresWakes | None:
        if not settings.listen:
            return None
        wakes = PostgresWakes(
            _direct_url(settings), settings.database_schema, reach=Reach(answer=settings.database_timeout)
        )
        if not wakes.check():
            _log.warning("no commit wakes the relay: run `packhorse relay notify on`; polling goes on")
        return wakes

    def _halt(self) -> None:
        self.broker.halt()
        self.relay.halt_release()

    @property
    def owned(self) -> bool:
        """Tell whether this process owns the shard; from any thread."""
        return self.relay.owned

    def run(self) -> None:
        """Run the relay until `stop`."""
        self.relay.run()

    def stop(self) -> None:
        """Ask for a clean stop; from any thread, and from a signal handler."""
        self.relay.stop()

    def _owns(self) -> bool:
        deadline = self.keeper.deadline()
        return deadline is not None and SYSTEM_CLOCK.monotonic() < deadline

    def _check_topics(self, namespace: str) -> None:
        topics = self.outbox.registered_topics()
        ours = [topic for topic in topics if topic.rpartition(".")[0] == namespace]
        if topics and not ours:
            _log.warning(
                "no schema that is registered here belongs to a topic of this namespace; is PACKHORSE_NAMESPACE right?",
                namespace=namespace, topics=", ".join(sorted(topics)[:3]),
            )  # fmt: skip
        try:
            missing = self.broker.missing(ours) if ours else []
        except BrokerUnavailable as error:
            _log.warning("the broker is away; its topics are not checked", reason=str(error))
            return
        if missing:
            raise NotReady(
                f"topic {', '.join(missing)} is missing, and schemas for it are registered; "
                "make it with `packhorse topics apply`"
            )

    def close(self) -> None:
        """Close all; rows still on their way are dropped and go again from the table's position."""
        self._opened.close()
