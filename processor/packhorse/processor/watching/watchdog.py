"""
Beside the loop: send what was recorded and is not known to be sent (the database first, the copy after it), wake keys that
nobody goes on with, and notice that the database is another one.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from packhorse.core.backoff import Backoff, delay_after
from packhorse.core.errors import BrokerUnavailable, PackhorseError
from packhorse.processor.copies import CopiesMissed, Copy, fitting, wake_up
from packhorse.processor.noticing.upkeep import Upkeep
from packhorse.processor.parking.crowding import Bounds, Crowd, crowd
from packhorse.processor.plant import Plant
from packhorse.processor.running.faults import describe
from packhorse.processor.running.lanework import produced
from packhorse.processor.storing import postgres
from packhorse.processor.storing.store import PORTION, After, Quarantined, Steps, Wake, behind
from packhorse.processor.storing.transaction import transaction

EVERY = 1.0
"""Seconds to the next look behind one that found nothing."""
SOON = 0.1
"""Least seconds until more is looked for of the kinds that something was found of: what comes steadily is not sent in a burst each second."""
REST = 9
"""How many times as long as these looks take, they wait; with EVERY seconds a whole look is due again."""
SLICE = 2.0
"""Seconds after which a look that finds full portions ends; the next one begins at once."""
COUNT_EVERY = 5.0
"""Least seconds between two counts of what waits behind parked keys."""
LONG = 0.05
"""Seconds from which on a look at all that was ever redriven counts as long: with the next it waits fifty times that."""
NOBODY = UUID(int=0)
"""Stands for the head in the wake-up of a key that has none."""

Topics = tuple[str, ...]
Act = Callable[[], int]
"""Sends the next portion of what is owed of one kind, and returns how much that was."""


class Watchdog:
    """
    Look every second for what is owed and send it: redriven messages that are due, retries that are overdue, quarantine copies
    that are overdue, wake-ups of keys whose head is finished. What the broker does not take of one keeps nothing from the others:
    each look goes on behind the portion of the last one. While a portion was full the next one is sent at once, one of each kind in
    turn. Of what something was found, more is looked for sooner.

    Of redriven and quarantined messages the rows stay locked while their copies are sent, so that no other process sends
    them too. Of retries and wake-ups the next time is written before, at a doubling wait: no lane waits for a lock
    meanwhile. A crash in between sends a copy once more, or later; a copy whose attempt is not the recorded one is a duplicate,
    and a wake-up of a key that needs none does nothing. One thread, one connection of its own.
    """

    def __init__(
        self,
        plant: Plant,
        *,
        bounds: Bounds | None = None,
        crowds: Callable[[Mapping[tuple[str, int], str]], None] = lambda full: None,  # noqa: ARG005
    ) -> None:
        self._plant = plant
        self._bounds = bounds or Bounds()
        self._crowds = crowds
        self._crowd = Crowd()
        self._count_at = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="packhorse-watchdog", daemon=True)
        self._connection: postgres.GuardedConnection | None = None
        self._incarnation: str | None = None
        self._swept = ("", "")
        self._after: dict[str, After] = {}
        self._upkeep = Upkeep(plant)
        self._owes = False
        self._found: Sequence[Act] = ()
        self._whole_at = 0.0
        self._lost_at = 0.0

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
        else:
            self._close()

    def look(self) -> int:
        """
        Send what is due, and return how many copies and wake-ups that were.

        Raises:
            DatabaseUnavailable, BrokerUnavailable, NotReady: What is due stays due.
        """
        self._found = ()
        connection, store = self._held(), self._plant.store
        self._notice(postgres.run(connection, store.incarnation()))
        topics = self._plant.app.topics
        self._count(connection)
        self._swept = postgres.run(connection, store.sweep(self._swept))
        acts: tuple[Act, ...] = (
            lambda: self._locked(connection, topics, store.due_redrives, "redriven messages sent"),
            lambda: self._lost(connection, topics),
            lambda: self._locked(connection, topics, store.late_copies, "copies to quarantine sent late"),
            lambda: self._overdue(connection, topics),
            lambda: self._wake(connection, topics),
        )
        self._upkeep.turn(connection)
        return self._act(acts)

    def _act(self, acts: Sequence[Act]) -> int:
        """Do *acts* in turn, and those again that had a full portion, until none has or the slice is over; return how much that was."""
        clock = self._plant.clock
        until, sent, missed, some = clock.monotonic() + SLICE, 0, list[BrokerUnavailable](), list[Act]()
        self._owes, self._found = False, ()
        while acts:
            full = list[Act]()
            for act in acts:
                try:
                    found = act()
                except BrokerUnavailable as error:
                    missed.append(error)
                    continue
                sent += found
                if found >= PORTION:
                    full.append(act)
                elif found:
                    some.append(act)
            acts = full
            if acts and (self._stop.is_set() or clock.monotonic() >= until):
                self._owes = True
                break
        if missed:
            raise missed[0]
        self._found = some
        return sent

    def _count(self, connection: postgres.GuardedConnection) -> None:
        """Count what waits behind parked keys, the more seldom the longer that takes; let what is full stand still."""
        now = self._plant.clock.monotonic()
        if now < self._count_at:
            return
        standing = postgres.run(connection, self._plant.store.parked_standing())
        took = self._plant.clock.monotonic() - now
        self._count_at = now + max(COUNT_EVERY, 50 * took)
        found = crowd(self._crowd, standing, self._bounds)
        if found != self._crowd:
            self._crowd = found
            self._crowds(found.full)

    def _locked(
        self,
        connection: postgres.GuardedConnection,
        topics: Topics,
        owed: Callable[[Topics, After], Steps[list[Quarantined]]],
        what: str,
    ) -> int:
        """Send the next portion of what is *owed* in the transaction that has it locked; what can't be sent is owed on."""
        with transaction(connection):
            due = postgres.run(connection, owed(topics, self._after.get(what, After())))
            self._after[what] = behind(due)
            missed = self._send(connection, due, what)
        if missed is not None:
            raise missed
        return len(due)

    def _lost(self, connection: postgres.GuardedConnection, topics: Topics) -> int:
        """Send redriven messages again whose copy may be lost; looked for the more seldom the longer that takes."""
        clock = self._plant.clock
        began = clock.monotonic()
        if began < self._lost_at:
            return 0
        found = self._locked(
            connection, topics, self._plant.store.lost_redrives, "redriven messages sent again"
        )
        took = clock.monotonic() - began
        self._lost_at = 0.0 if found or took < LONG else clock.monotonic() + 50 * took
        return found

    def _overdue(self, connection: postgres.GuardedConnection, topics: Topics) -> int:
        due = postgres.run(connection, self._plant.store.overdue_retries(topics))
        missed = self._send(connection, due, "overdue retries sent again")
        if missed is not None:
            raise missed
        return len(due)

    def _send(
        self, connection: postgres.GuardedConnection, due: Sequence[Quarantined], what: str
    ) -> CopiesMissed | None:
        """Send copies and record where they stand; return what went wrong with some of them."""
        plant, missed = self._plant, None
        if not due:
            return None
        try:
            places = dict(enumerate(produced(due, plant)))
        except CopiesMissed as error:
            places, missed = dict(error.places), error
        for topic in sorted({due[at].topic for at in places}):
            stand = [place for at, place in places.items() if due[at].topic == topic]
            postgres.run(connection, plant.store.confirm_copies(topic, stand))
        if missed is not None:
            refused = {at: text for at, text in missed.refused.items() if due[at].tier is not None}
            for topic in sorted({due[at].topic for at in refused}):
                said = {due[at].id: text for at, text in refused.items() if due[at].topic == topic}
                postgres.run(connection, plant.store.refuse_redrives(topic, said))
        plant.log.info(what, group=plant.app.group, messages=len(places))
        return missed

    def _wake(self, connection: postgres.GuardedConnection, topics: Topics) -> int:
        """Wake keys whose head is finished."""
        plant, store = self._plant, self._plant.store
        wakes = postgres.run(connection, store.due_wakes(topics))
        if wakes:
            plant.copies.send([fitting(self._wake_up(wake), wake.topic, plant.partitions) for wake in wakes])
            plant.log.info("parked keys woken", group=plant.app.group, keys=len(wakes))
        return len(wakes)

    def _wake_up(self, wake: Wake) -> Copy:
        head, group = wake.head or NOBODY, self._plant.app.group
        return wake_up(head, group=group, source=wake.topic, partition=wake.partition, key=wake.key)

    def _watch(self) -> None:
        forever(self.turn, self._stop, self._plant, every=EVERY, name="watchdog")
        self._close()

    def turn(self) -> float:
        """Look: at all once EVERY seconds, in between for more of what was found; return the seconds to the next look."""
        clock = self._plant.clock
        began = clock.monotonic()
        if self._found and began < self._whole_at:
            self._act(self._found)
        else:
            self._whole_at = began + EVERY
            self.look()
        while self._owes and not self._stop.is_set():
            self.look()
        return min(EVERY, max(SOON, REST * (clock.monotonic() - began))) if self._found else EVERY

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.end()

    def _notice(self, incarnation: str) -> None:
        """Let the partitions read their watermarks again when another server answers, also while nothing is to do."""
        if self._incarnation not in {None, incarnation}:
            self._plant.log.warning("another database server answers", was=self._incarnation, now=incarnation)
            self._plant.reconnected()
        self._incarnation = incarnation

    def _held(self) -> postgres.GuardedConnection:
        if self._connection is None or self._connection.closed:
            self._connection = postgres.connect(self._plant.conninfo)
            # Each of its statements is for many rows, and of tables that a redrive of many has just changed: planned anew each time.
            self._connection.prepare_threshold = None
            if self._incarnation is not None:
                self._plant.reconnected()
        return self._connection


def forever(
    look: Callable[[], float], stop: threading.Event, plant: Plant, *, every: float, name: str
) -> None:
    """
    Look again and again until *stop* is set, at first after *every* seconds, then after those that the last look returned.

    Trouble is told once and waited out, what nobody foresaw ends the process.
    """
    failures, policy, wait = 0, Backoff(first=every), every
    while not stop.wait(
        wait if not failures else delay_after(failures, policy, jitter=plant.chance.fraction())
    ):
        try:
            wait = look()
            failures = 0
        except PackhorseError as error:
            failures += 1
            if failures == 1:
                plant.log.warning("waits", who=name, cause=str(error))
        except Exception as error:  # noqa: BLE001 a thread that died must not go unseen
            plant.broke(f"the {name} met an error that nobody foresaw: {describe(error)}")
            break
