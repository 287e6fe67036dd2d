"""The producer of copies to the group's own topics."""

import threading
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from packhorse.core.errors import BrokerUnavailable
from packhorse.core.kafka_properties import Property
from packhorse.processor.copies import CopiesMissed, Copy
from packhorse.processor.kafka.errors import FORBIDDEN, MISSING, made, told
from packhorse.processor.storing.store import Place

SEND_TIMEOUT = 12.0
"""Seconds after which a copy that is not confirmed counts as not sent; a little more than the client's own message.timeout.ms."""
SERVE = 0.1
"""Longest wait of one look for reports, in seconds: so long does closing take."""

LASTING = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.POLICY_VIOLATION,
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 the client names its own errors so
    }
)
"""What the broker says of a copy that it will not take later either."""

Delivered = Callable[[KafkaError | None, Message], None]


class CopyProducer:
    """
    Produce copies with all acknowledgements; safe to share between threads.

    Each caller waits for its own copies alone: one thread takes the reports of all, so what another caller's topic is stuck
    at delays nobody else. A client that met its fatal error is made anew, so that copies go again without a restart.
    """

    def __init__(self, properties: Mapping[str, Property]) -> None:
        self._properties = {**properties, "error_cb": _ignore}
        self._renewing = threading.Lock()
        self._client = _Client(self._properties)

    def send(self, copies: Sequence[Copy]) -> list[Place]:
        """
        Produce *copies* and return where they stand; see `plant.SendsCopies`. It blocks up to SEND_TIMEOUT, and where a batch is
        too large for its topic for each half of it once more, so that the one that is keeps nothing from the others.
        """
        client = self._client
        client.serve()
        sending = _sent(client, copies)
        if len(copies) > 1 and (large := sending.too_large()):
            sending.places |= _apart(client, copies, large)
        if len(sending.places) < len(copies):
            if any(_is_fatal(error) for error in sending.failures.values()):
                self._renew(client)
            raise CopiesMissed(sending.told(), dict(sending.places), sending.refused())
        return [sending.places[at] for at in range(len(copies))]

    def close(self) -> None:
        """Stop taking reports; copies that are not confirmed by now count as not sent."""
        with self._renewing:
            self._client.close()

    def _renew(self, used: "_Client") -> None:
        with self._renewing:
            if self._client is used:
                self._client = _Client(self._properties)
                used.close()


class _Client:
    """One client, and the thread that takes its reports; the thread begins with the first copy."""

    def __init__(self, properties: Mapping[str, object]) -> None:
        self.producer: Producer = made(lambda: Producer(dict(properties)))
        self._starting = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def serve(self) -> None:
        """See to it that reports are taken."""
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._stop.clear()
                self._thread = threading.Thread(target=self._take, name="packhorse-copies", daemon=True)
                self._thread.start()

    def close(self) -> None:
        with self._starting:
            self._stop.set()
            if self._thread is not None:
                self._thread.join(10 * SERVE)

    def _take(self) -> None:
        while not self._stop.is_set():
            self.producer.poll(SERVE)


class _Sending:
    """
    The copies of one caller and what has become of them; reports come from another thread.

    Attributes:
        places: Where confirmed copies stand, by their number.
        failures: Errors of the others.
    """

    def __init__(self, copies: Sequence[Copy]) -> None:
        self._copies = copies
        self._done = threading.Event()
        self.places: dict[int, Place] = {}
        self.failures: dict[int, KafkaError] = {}

    def produce(self, producer: Producer, at: int, copy: Copy) -> None:
        """Hand one copy to the client; what it refuses at once is a failure like a report of one, and the rest still goes."""
        try:
            producer.produce(
                copy.topic,
                value=copy.value,
                key=copy.key,
                partition=copy.partition,
                headers=list(copy.headers),
                on_delivery=self._report_of(at),
            )
        except BufferError as error:
            raise BrokerUnavailable(f"the producer's queue is full of copies to {copy.topic}") from error
        except KafkaException as error:
            self._failed(at, error.args[0])

    def wait(self, seconds: float) -> None:
        """Wait until each copy is confirmed or has failed, or *seconds* are over."""
        if self._copies:
            self._done.wait(seconds)

    def too_large(self) -> list[int]:
        """Return which copies the broker did not take because their batch was too large: of one alone that is its own fault."""
        return sorted(
            at for at, error in self.failures.items() if error.code() == KafkaError.MSG_SIZE_TOO_LARGE
        )

    def told(self) -> str:
        """Return what went wrong, by topic and cause, with what to do."""
        missed = [at for at in range(len(self._copies)) if at not in self.places]
        first = missed[0]
        topic, error = self._copies[first].topic, self.failures.get(first)
        cause = f"not confirmed within {SEND_TIMEOUT:g} s" if error is None else told(error)
        others = {self._copies[at].topic for at in missed} - {topic}
        more = f" (others to {', '.join(sorted(others))})" if others else ""
        return f"{len(missed)} of {len(self._copies)} copies to {topic}: {cause}{more}{_advice(error)}"

    def refused(self) -> dict[int, str]:
        """Return why the broker did not take some copies, where it will not take them later either unless somebody does something."""
        return {
            at: f"{told(error)}{_advice(error)}"
            for at, error in self.failures.items()
            if at not in self.places
            if error.code() in LASTING or error.code() in MISSING or error.code() in FORBIDDEN
        }

    def _report_of(self, at: int) -> Delivered:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._failed(at, error)
                return
            copy = self._copies[at]
            self.places[at] = Place(copy.id, message.partition() or 0, message.offset() or 0, copy.attempt)
            self._count()

        return delivered

    def _failed(self, at: int, error: KafkaError) -> None:
        self.failures[at] = error
        self._count()

    def _count(self) -> None:
        if len(self.places) + len(self.failures) == len(self._copies):
            self._done.set()


def _sent(client: _Client, copies: Sequence[Copy]) -> _Sending:
    """Produce *copies* and wait for what becomes of them."""
    sending = _Sending(copies)
    for at, copy in enumerate(copies):
        sending.produce(client.producer, at, copy)
    sending.wait(SEND_TIMEOUT)
    return sending


def _apart(client: _Client, copies: Sequence[Copy], large: Sequence[int]) -> dict[int, Place]:
    """Produce those of *copies* whose batch was too large in halves, down to single ones; return where they stand."""
    places: dict[int, Place] = {}
    pending = _halves(large)
    while pending:
        some = pending.pop()
        sending = _sent(client, [copies[at] for at in some])
        places |= {some[number]: place for number, place in sending.places.items()}
        pending += _halves([some[number] for number in sending.too_large()])
    return places


def _halves(large: Sequence[int]) -> list[Sequence[int]]:
    """Return both halves; nothing of one alone, which is too large itself."""
    half = len(large) // 2
    return [large[half:], large[:half]] if half else []


def _advice(error: KafkaError | None) -> str:
    code = None if error is None else error.code()
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        return "; the topic must take 64 KiB more than its source: `packhorse topics apply` sets it"
    if code in MISSING or code == KafkaError._UNKNOWN_PARTITION:  # noqa: SLF001 the client names its own errors so
        return "; `packhorse topics plan` says what is missing, `packhorse topics apply` makes it"
    if code in FORBIDDEN:
        return "; grant this client the right to write to it"
    return ""


def _is_fatal(error: KafkaError) -> bool:
    return error.fatal() or error.code() == KafkaError._FATAL  # noqa: SLF001


def _ignore(error: KafkaError) -> None:
    """Each copy's own report says what became of it."""
