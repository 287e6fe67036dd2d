"""The operator: redrives and discards what lies in quarantine, stops a key and lets it go on, as the console's statements do."""

from typing import TYPE_CHECKING, Any

from tests.simulation.processor.adapter import QUERIES, run
from tests.simulation.processor.database import Row, Session
from tests.simulation.processor.messages import GROUP, SOURCE, Deed

from packhorse.core.errors import PackhorseError
from packhorse.processor.copies import copy_of, wake_up
from packhorse.processor.record import key_hash
from packhorse.processor.storing.store import Place, Store

if TYPE_CHECKING:
    from tests.simulation.processor.world import World

STORE = Store(queries=QUERIES, group=GROUP, schema="packhorse")


class Operator:
    """One person at work, again and again."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._paused: dict[bytes, float] = {}

    def work(self) -> None:
        while True:
            self._world.hub.pause(self._world.random.choice([0.5, 5.0, 20.0]))
            try:
                self._look()
            except PackhorseError:
                continue

    def _look(self) -> None:
        world = self._world
        session = world.connect()
        if world.theme == "unwatched":
            session.is_spared = True
        try:
            self._pauses(session)
            for (source, one), row in list(world.database.tables.rows["quarantined"].items()):
                if row["state"] == "quarantined" and world.random.random() < 0.5:
                    self._act(session, source, one, row)
        finally:
            session.lose()

    def _pauses(self, session: Session) -> None:
        world = self._world
        for key, until in list(self._paused.items()):
            if until <= world.hub.now:
                run(session, STORE.resume_key(SOURCE, key_hash(key)))
                del self._paused[key]
                world.say(f"operator resumes {key!r}")
        records = world.broker.logs[SOURCE, 0].records
        if world.faults_left and records and world.theme != "unwatched" and world.random.random() < 0.05:
            record = world.random.choice(records)
            if record.key is not None and record.key not in self._paused:
                self._paused[record.key] = world.hub.now + 20
                run(
                    session,
                    STORE.pause_key(
                        SOURCE, key_hash(record.key), key=record.key, partition=0, actor="operator", why=None
                    ),
                )
                world.say(f"operator pauses {record.key!r}")

    def _act(self, session: Session, source: str, one: Any, row: Row) -> None:
        world = self._world
        redrives = world.random.random() < 0.6
        session.say("BEGIN")
        done, _ = session.execute(
            redrive if redrives else discard, "operator's act", {"key": (source, one), "was": row}
        )
        if done and not redrives:
            # It may be done though the answer is lost.
            world.checks.discarded.add(one)
        session.say("COMMIT" if done else "ROLLBACK")
        if done and redrives:
            world.say(f"operator redrives {one.int}")
            script = world.script(one)
            if world.random.random() < 0.7:
                script.deed, script.times = Deed.WELL, 0
        elif done:
            world.say(f"operator discards {one.int}")
        if done and world.theme == "unwatched":
            self._wakes(session, one, row)

    def _wakes(self, session: Session, one: Any, row: Row) -> None:
        """Send what the watchdog would: the copy that is due, or a wake-up of the key."""
        world = self._world
        due = run(session, STORE.due_redrives([SOURCE]))
        for message in due:
            copy = copy_of(message, GROUP)
            offset = world.broker.send(copy)
            run(
                session,
                STORE.confirm_copies(SOURCE, [Place(copy.id, copy.partition, offset, copy.attempt, "0s")]),
            )
        if not due:
            world.broker.send(
                wake_up(one, group=GROUP, source=SOURCE, partition=row["partition"], key=row["key"])
            )


def redrive(c: Session, v: Row) -> tuple[list[Any], int]:
    """Order one attempt; a key that is not parked is parked with this message as its head."""
    source, one = v["key"]
    row, inbox = _ours(c, v)
    if row is None or inbox is None:
        return [], 0
    c.put("quarantined", v["key"], {**row, "state": "redriven", "redrive_sent_at": None})
    c.put(
        "inbox", v["key"], {**inbox, "outcome": "retry", "attempt": inbox["attempt"] + 1, "due_at": c.hub.now}
    )
    hashed = row["key_hash"]
    if hashed is not None and c.newest("key", (source, hashed)) is None:
        head: Row = {"head": one, "lease": None, "paused": False, "wake_at": None}
        head |= {"key": row["key"], "partition": row["partition"], "token": int(c.hub.now * 1e6)}
        c.put("key", (source, hashed), head)
    return [(1,)], 1


def discard(c: Session, v: Row) -> tuple[list[Any], int]:
    """Give one message up."""
    row, inbox = _ours(c, v)
    if row is None or inbox is None:
        return [], 0
    c.put("quarantined", v["key"], {**row, "state": "discarded"})
    c.put("inbox", v["key"], {**inbox, "outcome": "discarded"})
    return [(1,)], 1


def _ours(c: Session, v: Row) -> tuple[Row | None, Row | None]:
    inbox = c.seize("inbox", v["key"], lambda r: r["outcome"] == "quarantine")
    if inbox is None:
        return None, None
    row = c.seize("quarantined", v["key"], lambda r: r["state"] == "quarantined")
    return row, inbox
