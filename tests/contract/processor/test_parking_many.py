"""Draining many parked keys together on a real database: one follower of each key in a transaction, all or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from tests.contract.processor.parties import (
    FAILS,
    STORE,
    TIER,
    TOPIC,
    Answers,
    Party,
    Script,
    app,
    done,
    driven,
    failed,
    followers,
    parked,
)

from packhorse.core.errors import BrokerUnavailable
from packhorse.processor.outcomes import Outcome
from packhorse.processor.parking.draining import Drained, Ending
from packhorse.processor.parking.many import Many, drain_many
from packhorse.processor.record import key_hash
from packhorse.processor.running.requests import (
    Begin,
    CommitTransaction,
    LeaveKeys,
    Request,
    SendKept,
    Write,
)
from packhorse.processor.running.tallying import Followed
from packhorse.processor.running.verdict import Attempt

KEYS = [b"%d" % n for n in range(20)]
HASHES = [key_hash(key) for key in KEYS]


def finished_heads(party: Party, *behind: int) -> None:
    """Park each key behind a head that is done; of key *k* follower *n* is message 1000 * n + k."""
    party.record(*(failed(100 + k, key) for k, key in enumerate(KEYS)))
    for n in behind:
        party.record(*(parked(1000 * n + k, key) for k, key in enumerate(KEYS)))
    rows = party.known(*(100 + k for k in range(len(KEYS)))).rows
    heads = (done(100 + k, key, row=rows[UUID(int=100 + k)]) for k, key in enumerate(KEYS))
    party.record(*heads, stream=TIER)


@dataclass
class Asked(Answers):
    """Answers that remember what was asked."""

    asked: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> object:
        self.asked.append(request)
        return super().__call__(request)


def drained(
    party: Party, answers: Answers, *, woken: bool = True, keys: Sequence[str] = HASHES
) -> tuple[Many, dict[str, Drained]]:
    of = {key: followers(app()) for key in keys}
    how = Attempt(jitter=lambda: 0.0, clock=lambda: 0.0, time=1.0)
    many = Many(followers=of.__getitem__, mine=lambda handler: True, how=how, into=Followed())
    finished, called = ([], keys) if woken else (keys, [])
    return many, driven(drain_many(finished, called, many), answers)


def answers(party: Party, script: Script | None = None) -> Asked:
    return Asked(party, script or Script(), stream=TIER)


def keys_of(party: Party) -> dict[str, Any]:
    return dict(party.fetch("SELECT key_hash, head_id FROM packhorse.parked_key"))


@pytest.mark.case("T-03")
@pytest.mark.parametrize("woken", [True, False])
def test_keys_with_one_follower_are_drained_and_let_go_in_one_transaction(one: Party, *, woken: bool) -> None:
    """Fails when each key takes a claim, a transaction or a release of its own: a hundred thousand would take a quarter of an hour."""
    finished_heads(one, 1)
    asked = answers(one)
    many, found = drained(one, asked, woken=woken)
    assert (many.each, found, keys_of(one)) == ({}, {}, {})
    assert sorted(one.effects()) == [1000 + k for k in range(20)]
    assert [type(one) for one in asked.asked if isinstance(one, Begin | Write | CommitTransaction)] == [
        Begin,
        Write,
        CommitTransaction,
    ]
    assert len(many.into.results) == 20
    assert one.fetch("SELECT count(*) FROM packhorse.parked_message") == [(0,)]


def test_followers_of_each_key_run_in_order_round_after_round(one: Party) -> None:
    """Fails when a round takes another follower than the first."""
    finished_heads(one, 3, 1, 2)
    one.connection.execute('UPDATE packhorse.parked_message SET "offset" = 100000 + "offset"')
    many, _ = drained(one, answers(one))
    assert (many.each, keys_of(one)) == ({}, {})
    effects = one.effects()
    for k in range(20):
        assert [n // 1000 for n in effects if n % 1000 == k] == [1, 2, 3]


@pytest.mark.case("T-01")
def test_a_follower_that_fails_becomes_the_head_and_holds_up_no_other_key(one: Party) -> None:
    """Fails when the whole transaction counts as failed, or the key of the failed one is let go."""
    finished_heads(one, 1, 2)
    script = Script(n1003=[FAILS] * 9)
    asked = answers(one, script)
    many, _ = drained(one, asked)
    assert keys_of(one) == {HASHES[3]: UUID(int=1003)}
    assert one.row(1003).outcome is Outcome.RETRY
    assert one.row(1003).copied
    assert [(copy.id.int, copy.attempt) for copy in asked.topic] == [(1003, 2)]
    assert one.row(2003).outcome is Outcome.PARKED
    assert script.runs.count(1003) == 1, "it alone is charged, and not run again"
    assert sorted(one.effects()) == sorted(1000 * n + k for n in (1, 2) for k in range(20) if k != 3)
    assert many.each == {}


@pytest.mark.case("T-20")
def test_when_one_token_has_moved_nothing_is_recorded_of_any(one: Party) -> None:
    """Fails when the tokens of all keys are not asked for: a drainer that was frozen would run what another has run."""
    finished_heads(one, 1)

    class Robbed(Asked):
        def __call__(self, request: Request) -> object:
            if isinstance(request, Write):
                one.connection.execute(
                    "UPDATE packhorse.parked_key SET token = token + 1 WHERE key_hash = %s", (HASHES[7],)
                )
            return super().__call__(request)

    robbed = Robbed(one, Script(), stream=TIER)
    many, _ = drained(one, robbed)
    assert one.effects() == []
    assert len(keys_of(one)) == 20
    assert many.each.keys() == set(HASHES), "each is tried by itself"


def test_a_follower_that_was_added_meanwhile_is_run_before_its_key_is_let_go(one: Party) -> None:
    """Fails when what waits is looked at before the key is locked."""
    finished_heads(one, 1)

    class Late(Asked):
        def __call__(self, request: Request) -> object:
            if isinstance(request, Begin) and not one.effects():
                one.record(parked(2005, KEYS[5]))
            return super().__call__(request)

    late = Late(one, Script(), stream=TIER)
    many, _ = drained(one, late)
    assert sorted(one.effects()) == [1000 + k for k in range(20)]
    assert list(keys_of(one)) == list(many.each) == [HASHES[5]], "a single key is drained by itself"
    assert many.each[HASHES[5]] is not None


def test_a_key_that_another_drains_is_busy_and_one_that_waits_for_its_head_stays(one: Party) -> None:
    finished_heads(one, 1)
    assert one.run(STORE.claim(TOPIC, HASHES[1], "other")).claim is not None
    one.record(failed(500, b"waits"))
    many, found = drained(one, answers(one), keys=[*HASHES, key_hash(b"waits")])
    assert [(key, it.ended) for key, it in found.items()] == [(HASHES[1], Ending.BUSY)]
    assert keys_of(one).keys() == {HASHES[1], key_hash(b"waits")}
    assert many.each == {}


def test_a_follower_that_no_order_binds_is_left_to_be_drained_by_itself(one: Party) -> None:
    """Fails when it is looked for by its own key, which it has not: the stand-in that it waits under is another's."""
    finished_heads(one, 1)
    one.connection.execute("UPDATE packhorse.parked_message SET key = NULL WHERE key_hash = %s", (HASHES[4],))
    many, _ = drained(one, answers(one))
    assert list(keys_of(one)) == list(many.each) == [HASHES[4]]
    assert len(one.effects()) == 19


def test_paused_keys_are_left_alone(one: Party) -> None:
    finished_heads(one, 1)
    one.connection.execute("UPDATE packhorse.parked_key SET paused = true WHERE key_hash = %s", (HASHES[2],))
    many, found = drained(one, answers(one))
    assert (list(keys_of(one)), many.each, found) == ([HASHES[2]], {}, {})
    assert len(one.effects()) == 19


@pytest.mark.case("T-06")
def test_while_the_broker_is_away_no_claim_is_kept(one: Party) -> None:
    """Fails when claims are left to run out: half a minute in which nobody may drain those keys."""
    finished_heads(one, 1, 2)

    class Away(Asked):
        def __call__(self, request: Request) -> object:
            if isinstance(request, SendKept):
                raise BrokerUnavailable("away")
            return super().__call__(request)

    away = Away(one, Script(n1003=[FAILS]), stream=TIER)
    with pytest.raises(BrokerUnavailable):
        drained(one, away)
    assert isinstance(away.asked[-1], LeaveKeys)
    leased = one.fetch("SELECT count(*) FROM packhorse.parked_key WHERE lease_until > clock_timestamp()")
    assert leased == [(0,)]
    assert len(keys_of(one)) == 20
