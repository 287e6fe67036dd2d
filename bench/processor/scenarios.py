"""Conditions that cost others their speed: failing messages, a slow key, a large inbox, parked keys; and more processes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

import psycopg
from bench.processor.contestants import Contestant, packhorse
from bench.processor.ground import Filled, Ground, Place
from bench.processor.runs import ALL, Throughput, throughput, worked_through
from tests.support.databases import unique_name

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.processor.record import key_hash

MODES = {"plain": 0.4, "pipelined": 1.0, "batch": 1.0}
"""Ways to write, with the part of the records that each gets."""

FILL_INBOX = """
INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, partition, "offset", type)
SELECT 'earlier', %(topic)s, uuidv7(-(interval '20 hours' * n / %(rows)s)), 'done', n %% 6, n, 'bench.OrderPlaced'
  FROM generate_series(1, %(rows)s::bigint) AS n
"""
PARKED_KEYS = "COPY packhorse.parked_key (group_id, topic, key_hash, key, partition, head_id) FROM STDIN"
HEADS = """
INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, partition, "offset", type, reason, first_failed_at)
SELECT k.group_id, k.topic, k.head_id, 'quarantine', k.partition, 0, 'bench.OrderPlaced', 'permanent-error', now()
  FROM packhorse.parked_key AS k WHERE k.group_id = %(group)s
"""
QUARANTINED = """
INSERT INTO packhorse.quarantined_message (group_id, topic, message_id, topic_id, partition, "offset", key, payload, headers,
    type, reason, attempts, first_failed_at, copy_partition, copy_offset, key_hash)
SELECT k.group_id, k.topic, k.head_id, w.topic_id, k.partition, 0, k.key, 'payload'::bytea, '[]', 'bench.OrderPlaced',
    'permanent-error', 1, now(), k.partition, 0, k.key_hash
  FROM packhorse.parked_key AS k CROSS JOIN (SELECT min(topic_id::text)::uuid AS topic_id FROM packhorse.watermark) AS w
 WHERE k.group_id = %(group)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """
    One way to run, and what it is compared with.

    Attributes:
        name: Unique in its table.
        base: Name of the line that it is divided by; empty for such a line itself.
        goal: The least ratio; 0: none.
    """

    name: str
    run: Callable[[], Throughput]
    base: str = ""
    goal: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much each scenario gets."""

    records: int
    inbox_rows: int
    parked_keys: int


def modes() -> dict[str, float]:
    """Return the ways to write that this version has."""
    return {mode: share for mode, share in MODES.items() if packhorse(mode, mode).missing() is None}


def _of(mode: str, **settings: str) -> Contestant:
    return packhorse(f"packhorse {mode}", mode, settings=settings)


def _beside(
    ground: Ground,
    filled: Filled,
    mode: str,
    rest: str,
    wanted: int,
    setting: tuple[str, str],
    what: str,
    goal: float,
) -> list[Line]:
    """Return a mode untroubled and troubled, with the results of *rest* counted in both."""

    def runs(contestant: Contestant) -> Callable[[], Throughput]:
        return lambda: throughput(ground, contestant, filled, rest=rest, wanted=wanted)

    name, value = setting
    return [
        Line(name=mode, run=runs(_of(mode))),
        Line(name=f"{mode}, {what}", run=runs(_of(mode, **{name: value})), base=mode, goal=goal),
    ]


@contextmanager
def failing(ground: Ground, sizes: Sizes) -> Iterator[list[Line]]:
    """Every twentieth message raises in its first attempt; counted are the others. Each message has a key of its own."""
    filled, lines = ground.filled("avro", sizes.records, keys=sizes.records), []
    for mode, share in modes().items():
        wanted, goal = int(sizes.records * 19 / 20 * share), 0.7 if mode == "plain" else 0.9
        setting = ("BENCH_FAILS", "20")
        lines += _beside(ground, filled, mode, "n % 20 <> 0", wanted, setting, "5 % fail", goal)
    yield lines


@contextmanager
def slow(ground: Ground, sizes: Sizes) -> Iterator[list[Line]]:
    """Of a thousand keys one is slow: each of its messages takes a second; counted are the others."""
    filled, lines = ground.filled("avro", sizes.records, keys=1_000), []
    for mode, share in modes().items():
        if mode == "batch":
            continue  # the handler has the slow message and the others in one call
        # Up to nine tenths: who shares the slow message's transaction at the very end waits a second, whatever the rate.
        wanted, setting = int(sizes.records * 0.9 * share), ("BENCH_SLOW", "1000")
        lines += _beside(ground, filled, mode, "n % 1000 <> 0", wanted, setting, "1 key in 1,000 slow", 0.95)
    yield lines


@contextmanager
def processes(ground: Ground, sizes: Sizes) -> Iterator[list[Line]]:
    """One process and two, counted once each has its partitions: handlers that compute, and handlers that wait for somebody."""
    filled, lines = ground.filled("avro", sizes.records), []
    kinds = {
        "plain": (_of("plain"), 0.3),
        "waiting 5 ms": (_of("plain", BENCH_WAIT="0.005"), 0.04),
    }

    def runs(contestant: Contestant, part: float, count: int) -> Callable[[], Throughput]:
        wanted = int(sizes.records * part)
        return lambda: throughput(
            ground,
            contestant,
            filled,
            rest=lambda place: ground.settled(place, count),
            wanted=wanted,
            processes=count,
        )

    for name, (contestant, part) in kinds.items():
        one, two = f"{name}, 1 process", f"{name}, 2 processes"
        lines += [
            Line(name=one, run=runs(contestant, part, 1)),
            Line(name=two, run=runs(contestant, part, 2), base=one, goal=1.7),
        ]
    yield lines


class _Kept:
    """A place that serves several runs; each has a group of its own unless the group stays."""

    def __init__(self, ground: Ground, place: Place, contestant: Contestant) -> None:
        self._ground, self.place, self._contestant = ground, place, contestant

    def all_again(self, wanted: int) -> Throughput:
        """Work through the topic once more, as another group."""
        place = replace(self.place, group=unique_name("bench").replace("_", "-"))
        self._contestant.before(place)
        try:
            return self.go_on(wanted, place=place)
        finally:
            self._ground.forget(place)

    def go_on(self, wanted: int, rest: str = ALL, place: Place | None = None) -> Throughput:
        """Work on until there are *wanted* results."""
        place = place or self.place
        with psycopg.connect(place.database) as connection:
            connection.execute("TRUNCATE result")
        return worked_through(self._ground, self._contestant, place, rest=rest, wanted=wanted)


@contextmanager
def inbox(ground: Ground, sizes: Sizes) -> Iterator[list[Line]]:
    """An inbox of the last twenty hours beside an empty one."""
    filled = ground.filled("avro", sizes.records)
    mode = "batch" if "batch" in modes() else "plain"
    contestant, wanted = _of(mode), int(sizes.records * MODES[mode])
    with ground.standing(filled) as empty, ground.standing(filled) as large:
        fresh, full = _Kept(ground, empty, contestant), _Kept(ground, large, contestant)
        full.all_again(
            wanted
        )  # what the product makes when it starts, such as partitions, stands before the rows
        with psycopg.connect(large.database, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = off")
            connection.execute(FILL_INBOX, {"topic": filled.topic, "rows": sizes.inbox_rows})
            connection.execute("VACUUM ANALYZE packhorse.inbox")
        yield [
            Line(name=f"{mode}, empty inbox", run=lambda: fresh.all_again(wanted)),
            Line(
                name=f"{mode}, {sizes.inbox_rows:,} rows", run=lambda: full.all_again(wanted),
                base=f"{mode}, empty inbox", goal=0.95,
            ),
        ]  # fmt: skip


@contextmanager
def parked(ground: Ground, sizes: Sizes) -> Iterator[list[Line]]:
    """Healthy keys alone, and beside many whose heads rest in quarantine; two groups of one topic."""
    filled = ground.empty("avro")
    mode = "batch" if "batch" in modes() else "plain"
    contestant, each = _of(mode), int(sizes.records * MODES[mode])
    with ground.standing(filled) as without, ground.standing(filled) as beside:
        stood = [0]

        def round_of(kept: _Kept) -> Callable[[], Throughput]:
            contestant.before(kept.place)
            done = [0]

            def run() -> Throughput:
                first = done[0] * each
                done[0] += 1
                if stood[0] <= first:
                    ground.produce(filled, first, first + each)
                    stood[0] = first + each
                return kept.go_on(each, f"n >= {first} AND n < {first + each}")

            return run

        alone, full = (round_of(_Kept(ground, place, contestant)) for place in (without, beside))
        alone()
        full()
        park(beside, sizes.parked_keys)
        yield [
            Line(name=f"{mode}, none parked", run=alone),
            Line(
                name=f"{mode}, {sizes.parked_keys:,} keys parked", run=full, base=f"{mode}, none parked", goal=0.95
            ),
        ]  # fmt: skip


def park(place: Place, keys: int) -> None:
    """Park keys behind heads that rest in quarantine, with their copies confirmed."""
    with psycopg.connect(place.database) as connection:
        with connection.cursor().copy(PARKED_KEYS) as copy:
            for number in range(keys):
                key, head = f"parked-{number}".encode(), SYSTEM_CHANCE.token()
                copy.write_row((place.group, place.topic, key_hash(key), key, number % 6, head))
        connection.execute(HEADS, {"group": place.group})
        connection.execute(QUARANTINED, {"group": place.group})
    with psycopg.connect(place.database, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE packhorse.parked_key")


SCENARIOS: dict[str, Callable[[Ground, Sizes], AbstractContextManager[list[Line]]]] = {
    "failing": failing, "slow": slow, "inbox": inbox, "parked": parked, "processes": processes,
}  # fmt: skip
