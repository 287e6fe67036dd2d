"""Draining parked keys on a real database: in order, once, and from wherever somebody stopped."""

from collections.abc import Callable
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
    delivery,
    done,
    driven,
    failed,
    followers,
    parked,
)

from packhorse.core.errors import BrokerUnavailable, RegistryUnavailable, Undecodable
from packhorse.processor import Processor
from packhorse.processor.outcomes import Outcome
from packhorse.processor.parking.draining import MOST_CONFLICTS, Drain, Drained, Ending, drain, release
from packhorse.processor.record import Delivery, key_hash
from packhorse.processor.running.endings import Contention, Probed
from packhorse.processor.running.requests import (
    Begin,
    CommitTransaction,
    Decode,
    LeaveKey,
    ReleaseKeys,
    Request,
    RunHandler,
    SendKept,
    Write,
)
from packhorse.processor.running.tallying import MOST_FAILED, tallies_of_followers
from packhorse.processor.running.verdict import Attempt
from packhorse.processor.running.work import (
    RETURNED,
    Failure,
    Ran,
)

K = key_hash(b"k")


def finished_head(party: Party, *behind: int) -> None:
    party.record(failed(1), *(parked(n) for n in behind))
    party.record(done(1, row=party.row(1)), stream=TIER)


def drained(
    party: Party, script: Callable[[Delivery], Ran] | None = None, **more: Any
) -> tuple[Drained, Answers]:
    answers = Answers(party, script or Script())
    how = {name: more.pop(name) for name in ("shut", "probing") if name in more}
    found = driven(drain(K, followers(more.pop("app", None) or app(), **how), **more), answers)
    return found, answers


def parked_keys(party: Party) -> list[Any]:
    return [row[0] for row in party.fetch("SELECT head_id FROM packhorse.parked_key")]


def test_followers_are_run_in_order_and_the_key_is_let_go(one: Party) -> None:
    finished_head(one, *range(2, 240))
    found, _ = drained(one)
    assert (found.ended, len(found.results)) == (Ending.DONE, 238)
    assert one.effects() == list(range(2, 240))
    assert parked_keys(one) == []
    assert one.row(239)[:2] == (Outcome.DONE, 1)
    assert one.fetch("SELECT count(*) FROM packhorse.parked_message") == [(0,)]
    assert one.fetch(
        "SELECT DISTINCT deliveries FROM packhorse.inbox WHERE message_id <> %s", UUID(int=1)
    ) == [(1,)]


@pytest.mark.case("T-01")
def test_a_follower_that_fails_is_the_head_and_those_behind_it_wait(one: Party) -> None:
    """Fails when Followers goes on behind one that failed."""
    finished_head(one, 2, 3, 4, 5)
    script = Script(n4=[FAILS] * 9)
    found, answers = drained(one, script)
    assert found.ended is Ending.DONE
    assert script.runs == [2, 3, 4, 2, 3]
    assert one.effects() == [2, 3]
    assert parked_keys(one) == [UUID(int=4)]
    assert [(copy.id.int, copy.attempt) for copy in answers.topic] == [(4, 2)]
    assert (one.row(4).outcome, one.row(4).copied, one.row(5).outcome) == (
        Outcome.RETRY,
        True,
        Outcome.PARKED,
    )
    assert drained(one)[0].results == []


@pytest.mark.parametrize(("after", "ran"), [("continue", [2, 4]), ("park", [2])])
def test_behind_quarantine_followers_go_on_where_the_handler_says_so(
    one: Party, after: str, ran: list[int]
) -> None:
    finished_head(one, 2, 3, 4)
    stops = Ran(Failure.PERMANENT, "permanent", "E")
    _, answers = drained(one, Script(n3=[stops]), app=app(after))
    assert one.effects() == ran
    assert one.row(3)[:2] == (Outcome.QUARANTINE, 1)
    assert [copy.topic.rpartition(".")[2] for copy in answers.topic] == ["quarantine"]
    assert parked_keys(one) == ([] if after == "continue" else [UUID(int=3)])


def test_a_follower_that_skips_is_undone_alone(one: Party) -> None:
    finished_head(one, 2, 3, 4)
    drained(one, Script(n3=[Ran(Failure.SKIP, "", "no")]))
    assert one.effects() == [2, 4]
    assert one.row(3).outcome is Outcome.SKIPPED


def test_what_can_not_be_decoded_stops_without_a_run(one: Party) -> None:
    finished_head(one, 2)
    answers = Answers(one, Script())

    def undecodable(request: Request) -> object:
        return Undecodable("no Avro") if isinstance(request, Decode) else answers(request)

    driven(drain(K, followers(app())), undecodable)
    assert one.row(2).outcome is Outcome.QUARANTINE
    assert one.effects() == []


def test_a_follower_without_a_handler_stops(one: Party) -> None:
    finished_head(one)
    one.connection.execute("UPDATE packhorse.inbox SET outcome = 'retry'")
    strange = delivery(2)
    strange = strange._replace(
        record=strange.record._replace(headers=(("id", str(strange.id).encode()),)), type=None
    )
    one.record(parked(2)._replace(delivery=strange))
    one.connection.execute("UPDATE packhorse.inbox SET outcome = 'done' WHERE outcome = 'retry'")
    drained(one)
    assert one.row(2).outcome is Outcome.QUARANTINE


@pytest.mark.case("T-23")
def test_whoever_stops_anywhere_leaves_a_state_from_which_the_next_goes_on(two: list[Party]) -> None:
    """
    Let a drainer die after each of its requests, whatever is open then; another one goes on behind its lease.

    Fails when the copy of a follower that failed is not sent by who finds it as the head.
    """
    _, other = two
    steps = 0
    while True:
        with parties_again(other) as one:
            finished_head(one, 2, 3, 4, 5)
            answers, script = Answers(one), Script(n4=[FAILS] * 9)
            answers.ran = script
            died = not _dies_after(steps, drain(K, followers(app())), answers)
        other.expire()
        final = Answers(other, script)
        driven(release([K]), final)
        assert driven(drain(K, followers(app())), final).ended is Ending.DONE
        assert other.effects() == [2, 3], f"died after {steps} requests"
        assert other.row(4).outcome is Outcome.RETRY
        copies = [copy.id.int for copy in (*answers.topic, *final.topic)]
        assert copies in ([4], [4, 4]), f"died after {steps} requests"
        assert other.row(4).copied
        assert other.record(done(4, row=other.row(4)), stream=TIER)
        driven(drain(K, followers(app())), final)
        assert (other.effects(), parked_keys(other)) == ([2, 3, 5], [])
        if not died:
            break
        steps += 1
    assert steps > 12


class parties_again:  # noqa: N801 reads like the function
    """Another party on the tables of *other*, emptied; it dies at the end."""

    def __init__(self, other: Party) -> None:
        self._other = other

    def __enter__(self) -> Party:
        for table in ("inbox", "failed_attempt", "retry_message", "parked_key", "parked_message"):
            self._other.connection.execute(f"DELETE FROM packhorse.{table}".encode())
        self._other.connection.execute("DELETE FROM effect")
        self._party = Party(self._other.connection.info.dsn)
        return self._party

    def __exit__(self, *error: object) -> None:
        self._party.close()


def _dies_after(count: int, steps: Drain, answers: Answers) -> bool:
    """Answer *count* requests and no more; return whether the drain has ended before."""
    try:
        request = next(steps)
        for _ in range(count):
            request = steps.send(answers(request))
    except StopIteration:
        return True
    return False


@pytest.mark.case("T-03")
@pytest.mark.parametrize("at", [Begin, RunHandler, Write])
def test_a_drainer_that_was_frozen_does_nothing_twice(two: list[Party], at: type) -> None:
    """Fails when KEEP_CLAIM leaves out the token and UPDATE_RESULTS the outcome."""
    one, other = two
    finished_head(one, 2, 3, 4)
    frozen = Answers(one)
    woken = False

    def freezes(request: Request) -> object:
        nonlocal woken
        if isinstance(request, at) and not woken:
            woken = True
            other.expire()
            drained(other, most=1)
            other.expire()
        return frozen(request)

    assert driven(drain(K, followers(app())), freezes).ended is Ending.DONE
    assert one.effects() == [2, 3, 4]
    assert parked_keys(one) == []


def test_who_finds_another_draining_is_told_how_long_to_wait(two: list[Party]) -> None:
    one, other = two
    finished_head(one, 2)
    one.run(STORE.claim(TOPIC, K, "one"))
    found, _ = drained(other)
    assert found.ended is Ending.BUSY
    assert 25 < found.wait <= 30
    assert list(driven(release([K]), Answers(other)).busy) == [K]


def test_a_follower_of_another_kind_of_lane_is_left_to_it(one: Party) -> None:
    finished_head(one, 2)
    found, _ = drained(one, mine=lambda handler: False)
    assert found.ended is Ending.OTHER
    assert found.handler is not None
    assert drained(one)[0].ended is Ending.DONE
    assert one.effects() == [2]


def gate_of(found: Processor) -> str:
    return next(iter(found.handlers.values())).name


@pytest.mark.case("T-21")
def test_a_follower_of_a_stopped_handler_waits(one: Party) -> None:
    """Fails when a drain asks for no gate: all followers are charged after a bad deploy."""
    finished_head(one, 2, 3)
    script, gate = Script(), gate_of(app())
    found, _ = drained(one, script, shut={gate})
    assert (found.ended, script.runs) == (Ending.SHUT, [])
    assert found.handler is not None
    assert found.handler.name == gate
    assert drained(one)[0].ended is Ending.DONE
    assert one.effects() == [2, 3]


@pytest.mark.case("T-21")
def test_one_follower_tries_a_stopped_handler_and_is_not_charged(one: Party) -> None:
    """Fails when nothing but a message of its own can open the gate that followers wait behind, or a try is charged."""
    finished_head(one, 2, 3)
    gate = gate_of(app())
    tries = [Attempt(jitter=lambda: 0.0, clock=lambda: 0.0, time=0.0, probe=gate) for _ in range(2)]
    with pytest.raises(Probed):
        drained(one, Script(n2=[FAILS]), shut={gate}, probing=tries[0])
    assert tries[0].ran == FAILS
    assert one.row(2)[:2] == (Outcome.PARKED, 1)

    found, _ = drained(one, shut={gate}, probing=tries[1])
    assert (found.ended, tries[1].ran) == (Ending.SHUT, RETURNED)
    assert one.effects() == [2]


@pytest.mark.case("T-21")
def test_a_drain_in_which_most_fail_is_cut(one: Party) -> None:
    """Fails when a drain runs to its end whatever fails: behind `continue` all followers end in quarantine at once."""
    finished_head(one, *range(2, 120))
    stops = Ran(Failure.PERMANENT, "permanent", "E")
    found, answers = drained(one, lambda delivery: stops, app=app("continue"))
    assert found.ended is Ending.MORE
    assert len(answers.topic) == MOST_FAILED
    assert sum(seen.failed.bit_count() for seen in tallies_of_followers(found.results, app()).values()) == 30


def test_draining_stops_after_so_many_transactions(one: Party) -> None:
    finished_head(one, *range(2, 240))
    assert drained(one, most=1)[0].ended is Ending.MORE
    assert len(one.effects()) == 100
    drained(one)
    assert one.effects() == list(range(2, 240))


def test_one_that_keeps_losing_to_other_transactions_is_charged(one: Party) -> None:
    finished_head(one, 2, 3)
    loses = [Ran(Failure.CONTENTION, "contention", "40001")] * 6
    drained(one, Script(n2=loses))
    assert (one.row(2).outcome, one.effects()) == (Outcome.RETRY, [])
    assert one.fetch("SELECT reason FROM packhorse.failed_attempt WHERE message_id = %s", UUID(int=2)) == [
        ("contention",)
    ]


def test_one_whose_commit_is_refused_is_charged_when_it_is_alone(one: Party) -> None:
    finished_head(one, 2)
    answers, refused = Answers(one), 0

    def refuses(request: Request) -> object:
        nonlocal refused
        if isinstance(request, CommitTransaction) and refused < MOST_CONFLICTS + 1:
            refused += 1
            raise Contention("the commit was refused")
        return answers(request)

    driven(drain(K, followers(app())), refuses)
    assert one.row(2).outcome is Outcome.RETRY


def test_a_handler_that_begins_another_transaction_is_stopped(one: Party) -> None:
    """Fails when INSERT_RESULTS and UPDATE_RESULTS do not ask for the transaction that was begun."""
    finished_head(one, 2)

    def ends(delivery: Delivery) -> Ran:
        del delivery
        one.connection.pgconn.exec_(b"COMMIT; BEGIN")
        return RETURNED

    drained(one, ends)
    assert one.row(2).outcome is Outcome.QUARANTINE


@pytest.mark.parametrize("committed", [True, False])
def test_a_handler_that_ends_the_transaction_is_stopped_and_those_before_it_count_once(
    one: Party, *, committed: bool
) -> None:
    finished_head(one, 2, 3, 4)

    def ends(delivery: Delivery) -> Ran:
        if delivery.id.int != 3:
            return RETURNED
        one.connection.pgconn.exec_(b"COMMIT" if committed else b"ROLLBACK")
        return Ran(Failure.BROKEN, "broken-transaction", "E", committed=committed)

    drained(one, ends)
    assert one.effects() == ([2, 3] if committed else [2])
    assert [one.row(n).outcome for n in (2, 3, 4)] == [Outcome.DONE, Outcome.QUARANTINE, Outcome.PARKED]


@pytest.mark.parametrize(
    ("at", "error"), [(SendKept, BrokerUnavailable("away")), (Decode, RegistryUnavailable("away"))]
)
def test_trouble_ends_a_drain_and_its_claim(one: Party, at: type, error: Exception) -> None:
    finished_head(one, 2, 3)
    answers = Answers(one, Script(n2=[FAILS]))
    asked: list[Request] = []

    def away(request: Request) -> object:
        asked.append(request)
        if isinstance(request, at):
            raise error
        return answers(request)

    with pytest.raises(type(error)):
        driven(drain(K, followers(app())), away)
    assert isinstance(asked[-1], LeaveKey)
    driven(drain(K, followers(app())), Answers(one))
    assert not isinstance(asked[-1], ReleaseKeys)
