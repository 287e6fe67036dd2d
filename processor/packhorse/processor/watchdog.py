"""
Beside the loop: send what was recorded and is not known to be sent (the database first, the copy after it), and notice
that the database is another one.
"""

import threading

from packhorse.core.backoff import Backoff, delay_after
from packhorse.core.errors import PackhorseError
from packhorse.processor.copies import to_quarantine, to_retry
from packhorse.processor.plant import Plant
from packhorse.processor.running.faults import describe
from packhorse.processor.running.lanework import COMMIT, ROLLBACK
from packhorse.processor.storing import postgres
from packhorse.processor.storing.store import Place, Quarantined

EVERY = 1.0
"""Seconds between two looks."""


class Watchdog:
    """
    Look every second for redriven messages that are due and for quarantine copies that are overdue, and send them.

    The rows stay locked while their copies are sent, so that no other process sends them too; a crash after the broker's
    confirmation and before the commit sends them once more, and a copy whose attempt is not the recorded one is a
    duplicate. One thread, one connection of its own.
    """

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="packhorse-watchdog", daemon=True)
        self._connection: postgres.GuardedConnection | None = None
        self._incarnation: str | None = None

    def start(self) -> None:
        """
        Start looking; from here on, before a watermark is remembered, a change of the server is noticed.

        Raises:
            DatabaseUnavailable: The database does not answer.
        """
        self._notice(postgres.run(self._held(), self._plant.store.incarnation()))
        self._thread.start()

    def stop(self) -> None:
        """Look no more; waits for the look in hand, up to two seconds."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def look(self) -> int:
        """
        Send what is due, and return how many copies that were.

        Raises:
            DatabaseUnavailable, BrokerUnavailable, NotReady: What is due stays due.
        """
        connection = self._held()
        self._notice(postgres.run(connection, self._plant.store.incarnation()))
        topics = self._plant.app.topics
        sent = 0
        for look in (self._redrives, self._late):
            postgres.begin(connection)
            try:
                sent += look(connection, topics)
                postgres.command(connection, COMMIT)
            except BaseException:
                self._forget(connection)
                raise
        return sent

    def _redrives(self, connection: postgres.GuardedConnection, topics: tuple[str, ...]) -> int:
        plant = self._plant
        due = postgres.run(connection, plant.store.due_redrives(topics))
        if due:
            now = plant.clock.now()
            plant.copies.send([to_retry(message, plant.app.group, now) for message in due])
            postgres.run(connection, plant.store.redrives_sent(topics, [message.id for message in due]))
            plant.log.info("redriven messages sent", group=plant.app.group, messages=len(due))
        return len(due)

    def _late(self, connection: postgres.GuardedConnection, topics: tuple[str, ...]) -> int:
        plant = self._plant
        late = postgres.run(connection, plant.store.late_copies(topics))
        for topic, messages in _by_topic(late).items():
            places: list[Place] = plant.copies.send(
                [to_quarantine(message, plant.app.group) for message in messages]
            )
            postgres.run(connection, plant.store.confirm_copies(topic, places))
        return len(late)

    def _watch(self) -> None:
        failures, policy = 0, Backoff(first=EVERY)
        while not self._stop.wait(
            EVERY if not failures else delay_after(failures, policy, jitter=self._plant.chance.fraction())
        ):
            try:
                self.look()
                failures = 0
            except PackhorseError as error:
                failures += 1
                if failures == 1:
                    self._plant.log.warning("watchdog waits", cause=str(error))
            except Exception as error:  # noqa: BLE001 a watchdog that died must not go unseen
                self._plant.broke(f"the watchdog met an error that nobody foresaw: {describe(error)}")
                break
        if self._connection is not None:
            self._connection.end()

    def _notice(self, incarnation: str) -> None:
        """Let the partitions read their watermarks again when another server answers, also while nothing is to do."""
        if self._incarnation not in {None, incarnation}:
            self._plant.log.warning("another database server answers", was=self._incarnation, now=incarnation)
            self._plant.reconnected()
        self._incarnation = incarnation

    def _held(self) -> postgres.GuardedConnection:
        if self._connection is None or self._connection.closed:
            self._connection = postgres.connect(self._plant.conninfo)
            if self._incarnation is not None:
                self._plant.reconnected()
        return self._connection

    def _forget(self, connection: postgres.GuardedConnection) -> None:
        try:
            postgres.command(connection, ROLLBACK)
        except PackhorseError:
            connection.end()


def _by_topic(messages: list[Quarantined]) -> dict[str, list[Quarantined]]:
    found: dict[str, list[Quarantined]] = {}
    for message in messages:
        found.setdefault(message.topic, []).append(message)
    return found
