"""The producer of copies to the group's own topics."""

import threading
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from packhorse.core.errors import BrokerUnavailable
from packhorse.core.kafka_properties import Property
from packhorse.processor.copies import Copy
from packhorse.processor.kafka.errors import made, told
from packhorse.processor.storing.store import Place

SEND_TIMEOUT = 30.0
"""Seconds after which a copy that is not confirmed counts as not sent."""


class CopyProducer:
    """
    Produce copies with all acknowledgements; safe to share between threads.

    A client that met its fatal error is made anew, so that copies go again without a restart.
    """

    def __init__(self, properties: Mapping[str, Property]) -> None:
        self._properties = {**properties, "error_cb": _ignore}
        self._renewing = threading.Lock()
        self._producer = self._made()

    def _made(self) -> Producer:
        client: Producer = made(lambda: Producer(self._properties))
        return client

    def send(self, copies: Sequence[Copy]) -> list[Place]:
        """Produce *copies* and return where they stand; see `plant.SendsCopies`."""
        client = self._producer
        reports: dict[int, Message] = {}
        failures: list[KafkaError] = []
        done = threading.Event()

        def report(at: int) -> Callable[[KafkaError | None, Message], None]:
            def delivered(error: KafkaError | None, message: Message) -> None:
                failures.append(error) if error is not None else reports.__setitem__(at, message)
                if len(reports) + len(failures) == len(copies):
                    done.set()

            return delivered

        for at, copy in enumerate(copies):
            _produce(client, copy, report(at), failures)
        client.flush(SEND_TIMEOUT)
        if failures or not done.wait(1.0):
            cause = told(failures[0]) if failures else f"not confirmed within {SEND_TIMEOUT:g} s"
            if any(_is_fatal(failure) for failure in failures):
                self._renew(client)
            raise BrokerUnavailable(
                f"{len(copies) - len(reports)} of {len(copies)} copies to {copies[0].topic}: {cause}"
            )
        return [
            Place(copy.of.id, reports[at].partition() or 0, reports[at].offset() or 0, copy.of.attempt)
            for at, copy in enumerate(copies)
        ]

    def _renew(self, used: Producer) -> None:
        with self._renewing:
            if self._producer is used:
                self._producer = self._made()


def _produce(
    client: Producer,
    copy: Copy,
    on_delivery: Callable[[KafkaError | None, Message], None],
    failures: list[KafkaError],
) -> None:
    """Hand one copy to the client; what it refuses at once is a failure like a report of one, and the rest still goes."""
    try:
        client.produce(
            copy.topic,
            value=copy.value,
            key=copy.key,
            partition=copy.partition,
            headers=list(copy.headers),
            on_delivery=on_delivery,
        )
    except BufferError as error:
        raise BrokerUnavailable(f"the producer's queue is full of copies to {copy.topic}") from error
    except KafkaException as error:
        failures.append(error.args[0])


def _is_fatal(error: KafkaError) -> bool:
    return error.fatal() or error.code() == KafkaError._FATAL  # noqa: SLF001 the client names its own errors so


def _ignore(error: KafkaError) -> None:
    """Each copy's own report says what became of it."""
