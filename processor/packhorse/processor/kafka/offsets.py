"""Ask for offsets, of groups and of logs, without being a member."""

import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from packhorse.core.kafka_properties import Property
from packhorse.processor.kafka.errors import AWAY, asked, made

NOBODY = "packhorse-questions"
"""Stands where the client wants a group and the question is of none."""
Place = tuple[str, int]


class Offsets:
    """
    Ask coordinators for what groups have committed, and leaders where logs begin and end; safe to share between threads.

    One client a group, made at its first question; it never subscribes, so it joins nothing. The admin client has such
    questions too. An answer that the coordinator has moved, or is lost with the connection, ends the whole process in there (a
    null pointer, an assertion), which no caller can catch; and once a broker was restarted it takes its own old idea of the
    leader's epoch to each partition for minutes, and is refused.
    """

    def __init__(self, properties: Mapping[str, Property]) -> None:
        self._properties = {**properties, "enable.auto.commit": False, "isolation.level": "read_uncommitted"}
        self._clients: dict[str, Consumer] = {}
        self._making = threading.Lock()
        weakref.finalize(self, _leave, self._clients)

    def committed(self, group: str, topic: str, partition: int, *, timeout: float) -> int | None:
        """
        Return the offset that *group* has committed; None when there is none.

        Raises:
            BrokerUnavailable: The coordinator does not answer within *timeout* seconds.
            NotReady: This client may not see the group.
        """
        try:
            found = self._client(group).committed([TopicPartition(topic, partition)], timeout=timeout)[0]
        except KafkaException as error:
            raise asked(error, f"group {group}") from error
        if found.error is not None:
            raise asked(KafkaException(found.error), f"group {group}")
        return found.offset if found.offset >= 0 else None

    def firsts(self, places: Sequence[Place], *, timeout: float) -> dict[Place, int | KafkaError]:
        """Return the first offset of each of *places*, or what the broker said instead."""
        return self._of(places, OFFSET_BEGINNING, timeout)

    def nexts(self, places: Sequence[Place], *, timeout: float) -> dict[Place, int | KafkaError]:
        """Return the next offset of each of *places*, or what the broker said instead."""
        return self._of(places, OFFSET_END, timeout)

    def _of(self, places: Sequence[Place], which: int, timeout: float) -> dict[Place, int | KafkaError]:
        """
        Ask for all at once, and for those that have a leader once more where one has none, which fails the whole question.

        So at most three times *timeout* go by, however many there are. A broker that is away is not asked again.
        """
        client = self._client(NOBODY)
        try:
            return _asked(client, places, which, timeout)
        except KafkaException as error:
            refused: KafkaError = error.args[0]
        if len(places) == 1 or refused.code() in AWAY:
            return dict.fromkeys(places, refused)
        try:
            led = _led(client, places, timeout)
            found = _asked(client, led, which, timeout) if led else {}
        except KafkaException as error:
            return dict.fromkeys(places, error.args[0])
        return {place: found.get(place, refused) for place in places}

    def _client(self, group: str) -> Consumer:
        with self._making:
            if group not in self._clients:
                self._clients[group] = made(lambda: Consumer({**self._properties, "group.id": group}))
            return self._clients[group]


def _asked(
    client: Consumer, places: Sequence[Place], which: int, timeout: float
) -> dict[Place, int | KafkaError]:
    found = client.offsets_for_times([TopicPartition(*place, which) for place in places], timeout=timeout)
    return {(one.topic, one.partition): one.offset if one.error is None else one.error for one in found}


def _led(client: Consumer, places: Sequence[Place], timeout: float) -> list[Place]:
    """Return those of *places* that have a leader."""
    topics = client.list_topics(timeout=timeout).topics
    return [
        (topic, partition)
        for topic, partition in places
        if topic in topics
        and partition in topics[topic].partitions
        and topics[topic].partitions[partition].leader >= 0
    ]


def _leave(clients: dict[str, Consumer]) -> None:
    """
    Close clients that nobody asks any more, each in a thread of its own that keeps it.

    One that is dropped unclosed is closed by whatever thread happens to collect garbage, and while its broker is away that
    thread waits for ever.
    """
    for client in clients.values():
        with suppress(RuntimeError):  # the interpreter ends: no thread begins any more
            threading.Thread(target=client.close, name="packhorse-leaving", daemon=True).start()
