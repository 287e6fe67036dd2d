"""The port `Broker`: hand rows to librdkafka, hear what became of them, begin again when something failed."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from confluent_kafka import KafkaError, KafkaException, Message

from packhorse.core.clock import Clock
from packhorse.core.errors import BrokerUnavailable, SettingsError
from packhorse.core.kafka_properties import Property
from packhorse.core.naming import topic_name
from packhorse.relay import refusals
from packhorse.relay.holds import Fault, Kind, Scope
from packhorse.relay.kafka import clients
from packhorse.relay.kafka.gate import Gate
from packhorse.relay.kafka.properties import BATCH_BYTES, DEFAULTS, OURS, fencing
from packhorse.relay.kafka.reports import DROPPED, Chain, Report, blamed, silent, unchained, unled
from packhorse.relay.kafka.topics import Refused, Topics
from packhorse.relay.kafka.transactions import Transactions
from packhorse.relay.model import AGGREGATEID, AGGREGATETYPE, CREATED_MS, PAYLOAD, Row
from packhorse.relay.ports import Failed, Handed
from packhorse.relay.records import Headers, headers_of

MOST_ROWS, MOST_BYTES = 20_000, 64 * 1024 * 1024
"""
Rows and payload bytes that are kept until the next confirmation; then there is no room for more. More rows fall out of the
processor's caches: 50,000 take 0.5 µs a row longer and 30 MiB more; fewer wait more often for a broker that is far away.
"""
_ROOM = 0.1
_LAST_REPORTS = 1.0
"""Seconds for the client to report what it dropped."""
_FENCED = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})


class KafkaBroker:
    """
    Be the port `Broker`; `halt` may be called by any thread, all else belongs to one.

    Reports are asked for of errors alone. A callback bound to each row would say which one failed and costs 0.4 µs a row;
    instead the rows handed over since the last confirmation are kept, within bounds, and searched when something failed.
    """

    def __init__(
        self,
        properties: Mapping[str, Property],
        *,
        namespace: str,
        clock: Clock,
        fence: str | None = None,
        headers: Callable[[Row], Headers] = headers_of,
    ) -> None:
        """
        Make the client.

        *fence* is the name that one client has at a time, None: nobody is fenced; *headers* makes a record's headers.
        """
        self._properties = {**properties, **({} if fence is None else fencing(fence))}
        self._fence = fence
        self._headers = headers
        self._namespace = namespace
        self._clock = clock
        self._handed: list[Row] = []
        self._handed_bytes = 0
        self._reports: Chain | None = None
        self._fatal: str | None = None
        self._fenced = False
        self._topics = Topics({k: v for k, v in properties.items() if k not in {*OURS, *DEFAULTS}})
        largest = int(self._properties.get("message.max.bytes", BATCH_BYTES))
        self._gate = Gate(self._topics, namespace=namespace, largest=largest)
        self._batch = int(self._properties.get("batch.size", BATCH_BYTES))
        self._halted = False
        self._make()

    def _make(self) -> None:
        self._producer = clients.producer({**self._properties, "batch.size": self._batch})
        self._transactions = None if self._fence is None else Transactions(self._producer, self._clock)

    def missing(self, topics: Iterable[str]) -> list[str]:
        """Return those of *topics* that are not there, as `Topics.missing` does."""
        return self._topics.missing(topics)

    # --- sending

    def send(self, rows: Sequence[Row]) -> Handed:
        if len(self._handed) > MOST_ROWS or self._handed_bytes > MOST_BYTES or not self._begun():
            return Handed(0)
        handed = self._send(rows)
        self._handed += rows[: handed.count]
        self._handed_bytes += sum(len(row[PAYLOAD] or b"") for row in rows[: handed.count])
        return handed

    def _begun(self) -> bool:
        try:
            return self._transactions is None or self._transactions.begin()
        except KafkaException as error:
            self._note(error)
            return False

    def _send(self, rows: Sequence[Row]) -> Handed:
        produce, report, sure = self._producer.produce, self._report, self._gate.sure
        headers_of = self._headers
        aggregatetype, topic, fits = "", "", -1
        for count, row in enumerate(rows):
            if row[AGGREGATETYPE] != aggregatetype:
                aggregatetype = row[AGGREGATETYPE]
                topic, fits = sure.get(aggregatetype, ("", -1))
            if len(row[PAYLOAD] or b"") > fits:
                passed = self._passed(row, first=not count)
                if not isinstance(passed, str):
                    return Handed(count, passed)
                if self._gate.smallest < self._batch:
                    return self._in_smaller_batches(rows) if not count else Handed(count)
                topic, fits = sure.get(aggregatetype, (passed, -1))
            try:
                # By position: topic, value, key, partition, both names of the callback, timestamp, headers. By name 0.4 µs more.
                produce(
                    topic, row[PAYLOAD], row[AGGREGATEID], -1, report, report, row[CREATED_MS], headers_of(row)
                )  # fmt: skip
            except BufferError:
                self._poll(_ROOM)
                return Handed(count)
            except (KafkaException, TypeError, ValueError, OverflowError) as error:
                return Handed(count, self._blamed(row, error))
            if self._halted:
                return Handed(count)
        self._poll(0)
        return Handed(len(rows))

    def _passed(self, row: Row, *, first: bool) -> str | Fault | None:
        """Return what the gate says; None when the broker does not answer and rows before it, which count as handed over, are not told yet."""
        try:
            return self._gate.passed(row)
        except BrokerUnavailable:
            if first:
                raise
            return None

    def _in_smaller_batches(self, rows: Sequence[Row]) -> Handed:
        """Make the client anew with batches that every topic takes, since the broker refuses whole ones; once nothing is on its way."""
        if self._handed or self._halted:
            return Handed(0)
        self._batch = self._gate.smallest
        self._begin_anew()
        return self._send(rows) if self._begun() else Handed(0)

    def _blamed(self, row: Row, error: Exception) -> Fault | None:
        fault = self._gate.refused(row, error)
        if fault is None:
            self._note(error)
        return fault

    # --- what became of it

    def _report(self, error: KafkaError | None, message: Message) -> None:
        """
        Keep a failed report.

        The client calls this with an exception already set when it met its fatal error in the same poll: any call of a
        C function would fail here, so this only builds a tuple and stores it.
        """
        if error is not None:
            self._reports = (error, message, self._reports)

    def _poll(self, seconds: float) -> None:
        try:
            self._producer.poll(seconds)
        except (KafkaException, SystemError) as error:
            self._note(error)

    def _note(self, error: BaseException) -> None:
        """Remember that the client is beyond use; reports of the rows follow in later polls."""
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KafkaException):
            cause = cause.__cause__
        text = cause.args[0].str() if isinstance(cause, KafkaException) else str(error)
        if isinstance(cause, KafkaException) and cause.args[0].name() in _FENCED:
            # The client may have said before that it is beyond use, without the reason.
            self._fatal = f"{self._why_refused()}: {text}"
        elif not self._fatal:
            self._fatal = text

    def _why_refused(self) -> str:
        """Say, and remember, why the broker refuses this client's transaction."""
        if self._transactions is not None and self._transactions.outlived():
            return "the transaction took longer than the broker lets it; its rows go again"
        self._fenced = True
        return "another relay has taken over"

    def confirmed(self, patience: float) -> bool:
        until = self._clock.monotonic() + patience
        try:
            left = self._producer.flush(patience)
            if left or self._halted or self._reports is not None or self._fatal is not None:
                return False
            if not self._committed(until - self._clock.monotonic()):
                return False
        except (KafkaException, SystemError) as error:
            self._note(error)
            return False
        self._forget()
        return True

    def _committed(self, patience: float) -> bool:
        if self._transactions is None:
            return True
        if self._transactions.outlived():
            self._fatal = self._why_refused()
            return False
        return self._transactions.commit(patience)

    def _forget(self) -> None:
        self._handed.clear()
        self._handed_bytes = 0

    def failed(self) -> Failed | None:
        if self._reports is None and self._fatal is None:
            return Failed(None, "sending was halted") if self._halted else None
        return self._judged(list(unchained(self._reports)))

    def _judged(self, reports: Sequence[Report]) -> Failed:
        fault = blamed(reports, self._handed, namespace=self._namespace)
        reason = self._said(reports) if fault is None else fault.reason
        return Failed(fault, reason, fenced=self._fenced)

    def _said(self, reports: Sequence[Report]) -> str:
        if self._fatal is None and any(report.name in _FENCED for report in reports):
            return self._why_refused()
        others = [report.said for report in reports if report.name not in DROPPED]
        return self._fatal or (others[-1] if others else "the client dropped rows")

    def unreachable(self) -> Sequence[Fault]:
        names = {f"{self._namespace}.{row[AGGREGATETYPE]}": row[AGGREGATETYPE] for row in self._handed}
        if not names:
            return []
        faults: list[Fault] = []
        for name, topic in self._topics.described(names).items():
            rows = [row for row in self._handed if row[AGGREGATETYPE] == names[name]]
            if isinstance(topic, Refused):
                faults.append(refusals.fault_of(topic.refusal, rows[0], topic=name, said=topic.said))
            else:
                faults += unled(topic, rows)
        return faults

    def probe(self, scope: Scope) -> str | None:
        try:
            name = topic_name(self._namespace, scope.aggregatetype)
        except SettingsError as error:
            return str(error)
        topic = self._topics.described([name])[name]
        if isinstance(topic, Refused):
            return topic.refusal.step
        if scope.kind is Kind.PARTITION and scope.partition is not None:
            return topic.trouble(scope.partition)
        return None

    # --- beginning again

    def halt(self) -> None:
        self._halted = True
        # closed at this moment by the thread that it belongs to, a client has nothing left that could leave
        with contextlib.suppress(RuntimeError):
            self._producer.purge(in_queue=True, in_flight=True, blocking=False)

    def renew(self, patience: float) -> Failed | None:
        """Do as the port says; `silent` needs *patience*: without it nobody had time to answer."""
        halted, failed = self._halted, self.failed()
        self._drop(in_flight=False, patience=patience)
        self._drop(in_flight=True, patience=_LAST_REPORTS)
        reports = list(unchained(self._reports))
        if failed is not None and not halted:
            failed = self._judged(reports)
        if patience > 0 and not halted:
            failed = self._with_silent(failed, reports)
        self._forget()
        self._gate.forget()
        self._begin_anew()
        return failed

    def _drop(self, *, in_flight: bool, patience: float) -> None:
        """Drop what waits, and with *in_flight* what is under way; hear the reports up to *patience* seconds."""
        until = self._clock.monotonic() + patience
        self._producer.purge(in_queue=True, in_flight=in_flight, blocking=True)
        while len(self._producer) and self._clock.monotonic() < until:
            self._poll(0.1)

    def _with_silent(self, failed: Failed | None, reports: Sequence[Report]) -> Failed | None:
        faults = silent(
            reports,
            self._handed,
            self._gate.partitions(),
            namespace=self._namespace,
            broken=failed is not None,
        )
        if not faults:
            return failed
        if failed is None:
            return Failed(None, f"{len(faults)} partitions confirm nothing while others do", faults)
        return replace(failed, silent=faults)

    def _begin_anew(self) -> None:
        self.close()
        self._reports, self._fatal, self._fenced = None, None, False
        self._halted = False
        self._make()

    def close(self) -> None:
        self.halt()
        self._poll(0)
        if self._transactions is None:
            self._producer.close()
        else:
            self._transactions.abort()
