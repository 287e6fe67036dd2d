"""What the watchdog and the renewer do on a real database, with a topic that is a list."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.contract.processor.parties import (
    GROUP,
    STORE,
    TIER,
    TOPIC,
    Party,
    app,
    done,
    failed,
    parked,
    parties,
    stopped,
)

from packhorse.core.clock import SystemClock
from packhorse.core.errors import BrokerUnavailable
from packhorse.processor.copies import CopiesMissed, Copy
from packhorse.processor.plant import Plant
from packhorse.processor.record import WAKE, key_hash
from packhorse.processor.storing import postgres
from packhorse.processor.storing.store import PORTION, After, Place, Statement
from packhorse.processor.watching.renewer import Renewer
from packhorse.processor.watching.watchdog import EVERY, SOON, Watchdog
from packhorse.producer import Outbox

K = key_hash(b"k")


class Topic:
    def __init__(self) -> None:
        self.log: list[Copy] = []
        self.lost = False
        self.refused: set[int] = set()

    def send(self, copies: Sequence[Copy]) -> list[Place]:
        if self.lost:
            raise CopiesMissed("not sent", {})
        taken = {at: copy for at, copy in enumerate(copies) if copy.id.int not in self.refused}
        self.log.extend(taken.values())
        places = {at: Place(copy.id, copy.partition, at, copy.attempt) for at, copy in taken.items()}
        if len(places) < len(copies):
            raise CopiesMissed("one is too large", places)
        return list(places.values())

    def taken(self) -> list[tuple[int, str, int]]:
        """Return, and forget, what was sent: number, last part of the topic's name, attempt."""
        log, self.log = self.log, []
        return [(copy.id.int, copy.topic.removeprefix(f"{TOPIC}.{GROUP}."), copy.attempt) for copy in log]


class Ground:
    def __init__(self, url: str, party: Party) -> None:
        self.party, self.topic = party, Topic()
        self.plant = Plant(
            app=app(),
            sources={},
            member=UUID(int=1),
            conninfo=postgres.settings_of(url, idle_ms=20_000, lock_ms=1_000),
            store=STORE,
            decoder=None,  # type: ignore[arg-type]
            copies=self.topic,
            broker=None,  # type: ignore[arg-type]
            outbox=Outbox(origin="contract"),
        )
        self.watchdog = Watchdog(self.plant)

    def look(self) -> list[tuple[int, str, int]]:
        self.watchdog.look()
        return self.topic.taken()

    def later(self, table: str, *columns: str, seconds: int = 600) -> None:
        """Let time pass for the rows of *table*."""
        changes = ", ".join(f"{column} = {column} - interval '{seconds} s'" for column in columns)
        self.party.connection.execute(f"UPDATE packhorse.{table} SET {changes}".encode())


@pytest.fixture
def ground(tables: str) -> Iterator[Ground]:
    with parties(tables, 1) as (party,):
        made = Ground(tables, party)
        yield made
        made.watchdog.stop()


@pytest.mark.case("T-23")
def test_a_retry_whose_copy_nobody_sent_is_sent_when_it_is_overdue_and_once(ground: Ground) -> None:
    """Fails when the watchdog sends no overdue retries, or does not confirm what it has sent."""
    ground.party.record(failed(1))
    assert ground.look() == []
    ground.later("retry_message", "due_at", seconds=75)
    assert ground.look() == [(1, "retry.1m", 2)]
    assert ground.look() == []
    assert ground.party.row(1).copied


@pytest.mark.case("T-23")
def test_what_the_broker_did_not_take_is_sent_at_the_next_time(ground: Ground) -> None:
    ground.party.record(failed(1))
    ground.later("retry_message", "due_at", seconds=75)
    ground.topic.lost = True
    with pytest.raises(BrokerUnavailable):
        ground.look()
    ground.topic.lost = False
    assert ground.look() == []
    ground.later("retry_message", "resend_at", seconds=61)
    assert ground.look() == [(1, "retry.1m", 2)]


@pytest.mark.case("T-03", "T-14")
def test_a_copy_that_the_broker_never_takes_keeps_nothing_from_the_others(ground: Ground) -> None:
    """
    Fails when the look ends with it: redriven messages and parked keys would wait until somebody makes it fit; or when the others
    of its portion are not recorded as sent, and go again with each look.
    """
    for n in (1, 2):
        ground.party.record(stopped(n, b"%d" % n))
    ground.later("quarantined_message", "quarantined_at")
    ground.party.record(failed(3, b"3"))
    ground.later("retry_message", "due_at", seconds=75)
    ground.topic.refused = {1}
    with pytest.raises(BrokerUnavailable, match="too large"):
        ground.look()
    assert ground.topic.taken() == [(2, "quarantine", 1), (3, "retry.1m", 2)]
    with pytest.raises(BrokerUnavailable, match="too large"):
        ground.look()
    assert ground.topic.taken() == []
    ground.topic.refused = set()
    assert ground.look() == [(1, "quarantine", 1)]


@pytest.mark.case("T-14")
@pytest.mark.parametrize("redriven", [False, True])
def test_copies_that_are_never_taken_don_t_keep_those_behind_them_from_their_turn(
    ground: Ground, *, redriven: bool
) -> None:
    """Fails when each portion begins with the first that is owed, where as many as a portion can't be sent."""
    ground.party.record(*(stopped(n, b"%d" % n) for n in range(1, PORTION + 4)))
    ground.later("quarantined_message", "quarantined_at")
    if redriven:
        ground.party.connection.execute("UPDATE packhorse.quarantined_message SET state = 'redriven'")
        ground.party.connection.execute(
            "UPDATE packhorse.inbox SET outcome = 'retry', attempt = 2, due_at = clock_timestamp()"
        )
    ground.topic.refused = set(range(1, PORTION + 1))
    with pytest.raises(BrokerUnavailable, match="too large"):
        ground.look()
    assert ground.topic.taken() == []
    assert [n - PORTION for n, _, _ in ground.look()] == [1, 2, 3]
    ground.topic.refused = set()
    assert len(ground.look()) == PORTION


def test_what_is_owed_is_sent_portion_after_portion_in_one_look(ground: Ground) -> None:
    """Fails when each look sends one portion: of a hundred thousand that are redriven a second's wait would lie between each thousand."""
    count = 2 * PORTION + 3
    ground.party.record(*(stopped(n, b"%d" % n) for n in range(count)))
    ground.later("quarantined_message", "quarantined_at")
    assert ground.watchdog.look() == count
    assert {n for n, _, _ in ground.topic.taken()} == set(range(count))


class Still(SystemClock):
    """A clock whose monotonic time goes on when the test says so."""

    def __init__(self) -> None:
        self.seconds = self.step = 0.0

    def monotonic(self) -> float:
        self.seconds += self.step
        return self.seconds


def test_what_comes_steadily_is_looked_for_soon_and_all_once_a_second(ground: Ground) -> None:
    """
    Fails when it waits for the next second: a second's worth of redriven messages would go in one burst, before which live ones wait; when
    each of these looks goes over all that there is, or none does while they find something; or when a look that takes a while is taken as often.
    """
    clock = Still()
    ground.plant = replace(ground.plant, clock=clock)
    ground.watchdog.stop()
    ground.watchdog = Watchdog(ground.plant)

    def redriven(number: int) -> None:
        ground.party.record(stopped(number, b"%d" % number))
        ground.party.connection.execute("UPDATE packhorse.quarantined_message SET state = 'redriven'")
        ground.party.connection.execute(
            "UPDATE packhorse.inbox SET outcome = 'retry', attempt = 2, due_at = clock_timestamp() WHERE attempt = 1"
        )

    def turned() -> tuple[float, list[tuple[int, str, int]]]:
        return ground.watchdog.turn(), ground.topic.taken()

    assert turned() == (EVERY, [])
    clock.seconds = 1.0
    redriven(1)
    assert turned() == (SOON, [(1, "retry.0s", 2)])
    ground.party.record(failed(3, b"3"))
    ground.later("retry_message", "due_at", seconds=75)
    for number in (4, 5):
        redriven(number)
        clock.seconds += 0.4
        assert turned() == (SOON, [(number, "retry.0s", 2)])
    redriven(6)
    clock.seconds = 2.0
    assert turned() == (SOON, [(6, "retry.0s", 2), (3, "retry.1m", 2)])
    assert turned() == (EVERY, [])
    redriven(7)
    clock.step = 0.003
    wait, _ = turned()
    assert SOON < wait < EVERY


@pytest.mark.case("T-19")
def test_a_partition_that_a_topic_made_anew_has_not_is_another_one(ground: Ground) -> None:
    """Fails when the copy is for a partition that there is not: it would wait for ever."""
    ground.party.record(failed(3, b"3"))
    ground.party.connection.execute("UPDATE packhorse.retry_message SET partition = 7")
    ground.later("retry_message", "due_at", seconds=75)
    ground.plant = replace(ground.plant, partitions={TOPIC: 4})
    ground.watchdog.stop()
    ground.watchdog = Watchdog(ground.plant)
    ground.watchdog.look()
    [copy] = ground.topic.log
    assert (copy.partition, dict(copy.headers)["source-partition"]) == (3, b"7")


def test_a_late_copy_to_quarantine_is_sent_once(ground: Ground) -> None:
    ground.party.record(stopped(1))
    assert ground.look() == []
    ground.later("quarantined_message", "quarantined_at")
    assert ground.look() == [(1, "quarantine", 1)]
    assert ground.look() == []


def test_a_redriven_message_goes_to_the_tier_of_no_delay_once(ground: Ground) -> None:
    ground.party.record(stopped(1))
    ground.party.connection.execute("UPDATE packhorse.quarantined_message SET state = 'redriven'")
    ground.party.connection.execute(
        "UPDATE packhorse.inbox SET outcome = 'retry', attempt = 2, due_at = clock_timestamp()"
    )
    assert ground.look() == [(1, "retry.0s", 2)]
    assert ground.look() == []


@pytest.mark.case("T-23")
def test_a_redriven_message_goes_again_at_doubling_waits(ground: Ground) -> None:
    """Fails when it goes every few minutes: where people pause what reads it, its tier would grow without end."""
    test_a_redriven_message_goes_to_the_tier_of_no_delay_once(ground)
    for minutes, goes in ((6, True), (5, False), (2, True), (12, False), (2, True)):
        ground.later("quarantined_message", "redrive_sent_at", seconds=60 * minutes)
        ground.later("inbox", "due_at", seconds=60 * minutes)
        assert bool(ground.look()) is goes, minutes


@pytest.mark.case("X-10")
def test_an_attempt_that_the_inbox_knows_otherwise_is_not_sent(ground: Ground) -> None:
    """Fails when retry_message alone is asked: a version without tiers ends what this one has begun, and does not know that table."""
    ground.party.record(failed(1))
    ground.later("retry_message", "due_at", seconds=75)
    ground.party.connection.execute("UPDATE packhorse.inbox SET outcome = 'done'")
    assert ground.look() == [(1, "retry.0s", 0)], "its key is woken, and that is all"


@pytest.mark.case("T-03")
def test_a_key_whose_head_was_discarded_is_woken(ground: Ground) -> None:
    """Fails when the watchdog wakes no keys."""
    ground.party.record(stopped(1), parked(2))
    ground.party.run(STORE.confirm_copies(TOPIC, [Place(UUID(int=1), 0, 0, 1)]))
    assert ground.look() == []
    ground.party.connection.execute(
        "UPDATE packhorse.inbox SET outcome = 'discarded' WHERE outcome = 'quarantine'"
    )
    ground.watchdog.look()
    (wake,) = ground.topic.log
    assert (wake.topic, wake.partition, wake.key, wake.value) == (f"{TOPIC}.{GROUP}.retry.0s", 0, b"k", None)
    assert ("reason", WAKE.encode()) in wake.headers
    ground.topic.taken()
    assert ground.look() == []
    ground.later("parked_key", "wake_at", seconds=61)
    assert len(ground.look()) == 1


@pytest.mark.case("O-10")
@pytest.mark.parametrize("paused", [("", -1), (TOPIC, -1), (TOPIC, 0)])
def test_no_wake_up_is_sent_to_what_people_pause(ground: Ground, paused: tuple[str, int]) -> None:
    """Fails when one is: each key's would come again every minute, for as long as that lasts, and be read in the end."""
    ground.party.record(failed(1))
    ground.party.connection.execute("UPDATE packhorse.inbox SET outcome = 'discarded'")
    topic, partition = paused
    ground.party.run(STORE.pause("someone", None, topic=topic, partition=partition))
    ground.party.run(STORE.pause("someone", None, topic="other"))
    assert ground.look() == []
    ground.party.run(STORE.resume(topic=topic, partition=partition))
    assert ground.look() == [(1, "retry.0s", 0)]


def test_every_parked_key_is_looked_at_in_turn(ground: Ground) -> None:
    """Fails when the sweep begins anew before it was through."""
    keys = [b"%d" % n for n in range(1_500)]
    ground.party.record(*(failed(n, key) for n, key in enumerate(keys)))
    last = max(keys, key=key_hash)
    ground.party.connection.execute(
        "UPDATE packhorse.inbox SET outcome = 'discarded' WHERE message_id = %s",
        (UUID(int=keys.index(last)),),
    )
    assert ground.look() == []
    assert len(ground.look()) == 1
    assert ground.look() == []


def test_leases_are_renewed_for_as_long_as_a_lane_drains(ground: Ground) -> None:
    """Fails when the renewer asks for other claims than the lanes have entered."""
    party = ground.party
    party.record(failed(1), parked(2))
    party.record(done(1, row=party.row(1)), stream=TIER)
    claim = party.run(STORE.claim(TOPIC, K, "test", lease=1.0)).claim
    assert claim is not None
    renewer, lane = Renewer(ground.plant), object()
    assert renewer.renew() == 0
    ground.plant.claims.enter(lane, TOPIC, claim)
    assert renewer.renew() == 1
    assert party.run(STORE.claim(TOPIC, K, "other")).busy > 25
    ground.plant.claims.forget(lane)
    assert renewer.renew() == 0
    party.expire()
    assert party.run(STORE.claim(TOPIC, K, "other")).claim is not None
    ground.plant.claims.enter(lane, TOPIC, claim)
    assert renewer.renew() == 0, "the token has moved"
    ground.plant.claims.forget(lane)
    renewer.renew()


def test_a_lost_claim_whose_row_is_locked_keeps_no_lease_from_being_renewed_and_no_other_from_being_left(
    ground: Ground, tables: str
) -> None:
    """Fails when lost claims are left before leases are renewed, or when the first that can't be left ends the look."""
    party, plant = ground.party, ground.plant
    keys = [b"a", b"b", b"k"]
    party.record(*(failed(n, key) for n, key in enumerate(keys)))
    claims = {}
    for n, key in enumerate(keys):
        party.record(done(n, key, row=party.row(n)), stream=TIER)
        party.record(failed(n + 10, key))
        claims[key] = party.run(STORE.claim(TOPIC, key_hash(key), "test", lease=1.0)).claim
    lanes = {key: object() for key in keys}
    for key, claim in claims.items():
        assert claim is not None
        plant.claims.enter(lanes[key], TOPIC, claim)
    locked, other = sorted(keys[:2], key=key_hash)
    plant.claims.lose(lanes[locked])
    plant.claims.lose(lanes[other])
    with psycopg.connect(tables) as backend:  # the one that the lane thinks lost
        backend.execute(
            "SELECT FROM packhorse.parked_key WHERE key_hash = %s FOR UPDATE", (key_hash(locked),)
        )
        renewer = Renewer(plant)
        assert renewer.renew() == 1
        assert party.run(STORE.claim(TOPIC, K, "other")).busy > 25
        assert [one.key for one in plant.claims.lost()] == [key_hash(locked)]
    renewer.renew()
    assert plant.claims.lost() == []
    for key in keys:
        plant.claims.forget(lanes[key])
    renewer.renew()


MANY = """
INSERT INTO packhorse.quarantined_message (group_id, topic, message_id, topic_id, partition, "offset", headers, reason, attempts,
    first_failed_at, quarantined_at, state, copy_offset, redrive_sent_at)
SELECT %(group)s, %(topic)s, md5(n::text)::uuid, %(id)s, n %% 6, n, '[]', 'failed', 5, now(), now() - interval '1 hour', %(state)s,
    CASE WHEN %(done)s AND %(state)s = 'quarantined' THEN n END, CASE WHEN %(done)s THEN now() END
FROM generate_series(1, 20000) AS n"""
OPEN = """
INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, attempt, partition, "offset", due_at)
SELECT group_id, topic, message_id, 'retry', 6, partition, "offset", now() - interval '1 minute'
FROM packhorse.quarantined_message"""


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("state", ["redriven", "quarantined"])
def test_a_look_reads_no_more_for_all_that_is_redriven_or_in_quarantine(
    ground: Ground, state: str, is_done: bool
) -> None:
    """Fails when a look sorts all of it, or goes through the rows of what is sent: there may be hundreds of thousands."""
    connection, store = ground.party.connection, STORE
    connection.execute(
        MANY, {"group": GROUP, "topic": TOPIC, "id": UUID(int=77), "state": state, "done": is_done}
    )
    connection.execute(OPEN)
    connection.execute("VACUUM ANALYZE packhorse.quarantined_message")
    connection.execute("VACUUM ANALYZE packhorse.inbox")
    ways = {"redriven": [store.due_redrives, store.lost_redrives], "quarantined": [store.late_copies]}
    for way, owed in zip(ways[state], (PORTION, 0), strict=False):
        asked = next(way((TOPIC, "other"), After()))
        _assert_little_is_read(connection, asked, rows=0 if is_done else owed)


def _assert_little_is_read(connection: Any, asked: Statement, *, rows: int) -> None:
    plan = connection.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + asked.text, asked.parameters)
    found: Any = (plan.fetchone() or (None,))[0]
    blocks = found[0]["Plan"]["Shared Hit Blocks"] + found[0]["Plan"]["Shared Read Blocks"]
    assert found[0]["Plan"]["Actual Rows"] == rows
    assert blocks < 1_000 + 15 * rows, found
