"""The statements on parked keys, retries and watermarks, on a real database; races with two connections."""

from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.contract.processor.parties import (
    GROUP,
    ODD_HEADERS,
    STORE,
    STREAM,
    TIER,
    TOPIC,
    Beside,
    Party,
    delivery,
    done,
    failed,
    parked,
    stopped,
    waits,
)

from packhorse.processor.copies import copy_of
from packhorse.processor.outcomes import Outcome
from packhorse.processor.pausing.table import PauseTable
from packhorse.processor.record import Stream, delivery_of, digest_of, key_hash, original_headers
from packhorse.processor.running.work import Claim, Released
from packhorse.processor.storing.rows import texts
from packhorse.processor.storing.store import HeldKey, Move, Place, Steps

K = key_hash(b"k")


def keys_of(party: Party) -> list[tuple[str, UUID | None]]:
    return party.fetch("SELECT key_hash, head_id FROM packhorse.parked_key ORDER BY 1")


# What is written, and what is known of it.


@pytest.mark.case("T-19", "T-23")
def test_a_failed_head_parks_its_key_and_waits_for_its_copy(one: Party) -> None:
    """T-23 fails when CONFIRM_RETRIES leaves out the attempt; T-19 when UPSERT_RETRY takes the record's place, not the origin."""
    assert one.record(failed(1))
    row = one.row(1)
    assert (row.outcome, row.attempt, row.tier, row.spent, row.copied) == (
        Outcome.RETRY,
        2,
        "1m",
        61.5,
        False,
    )
    assert 55 < row.due_in <= 60
    assert one.known(keys=[b"k", b"other"]).parked == {K: UUID(int=1)}
    (waiting,) = one.run(STORE.uncopied(TOPIC, [UUID(int=1)]))
    copy = copy_of(waiting, GROUP)
    assert (copy.topic, copy.partition, copy.key, copy.attempt) == (f"{TOPIC}.{GROUP}.retry.1m", 0, b"k", 2)
    one.run(STORE.confirm_copies(TOPIC, [Place(UUID(int=1), 0, 7, 1, "1m")]))
    assert not one.row(1).copied
    one.run(STORE.confirm_copies(TOPIC, [Place(UUID(int=1), 0, 7, 2, "1m")]))
    assert one.row(1).copied
    assert one.run(STORE.uncopied(TOPIC, [UUID(int=1)])) == []


@pytest.mark.case("T-12", "T-19")
@pytest.mark.parametrize("payload", [None, b"", b"\x00\x01\xff"])
def test_bytes_come_out_as_they_went_in_through_tiers_parking_and_quarantine(
    one: Party, payload: bytes | None
) -> None:
    """T-12 fails when a null payload is stored as an empty one; T-19 when headers are kept as a mapping."""
    key = b"\xff\x00k"
    first = delivery(1, key, payload=payload, headers=ODD_HEADERS)
    second = delivery(2, key, payload=payload, headers=ODD_HEADERS)
    hashed = key_hash(key)
    one.record(
        failed(1)._replace(delivery=first, key=hashed), parked(2)._replace(delivery=second, key=hashed)
    )
    (waiting,) = one.run(STORE.uncopied(TOPIC, [first.id]))
    copied = copy_of(waiting, GROUP)
    arrived = delivery_of(
        first.record._replace(
            topic=TIER.topic, offset=99, key=copied.key, value=copied.value, headers=copied.headers
        ),
        TIER,
    )
    assert (arrived.record.value, arrived.record.key) == (payload, key)
    assert original_headers(arrived) == first.record.headers
    assert (arrived.id, arrived.origin, arrived.attempt) == (first.id, first.origin, 2)
    final = stopped(1, row=one.row(1), attempt=2)._replace(delivery=arrived, key=hashed)
    assert one.record(final, stream=TIER)
    (rests,) = one.run(STORE.uncopied(TOPIC, [first.id]))
    assert (rests.tier, rests.payload, rests.key, rests.headers) == (None, payload, key, first.record.headers)
    assert (rests.topic_id, rests.partition, rests.offset) == first.origin[1:]
    one.connection.execute(
        "UPDATE packhorse.inbox SET outcome = 'discarded' WHERE message_id = %s", (first.id,)
    )
    claimed = one.run(STORE.claim(TOPIC, hashed, "test"))
    ((follower, row),) = claimed.followers
    assert follower == second
    assert (row.outcome, row.attempt) == (Outcome.PARKED, 1)


def test_what_leaves_retry_leaves_its_bytes(one: Party) -> None:
    one.record(failed(1))
    assert one.record(done(1, row=one.row(1)), stream=TIER)
    assert one.fetch("SELECT count(*) FROM packhorse.retry_message") == [(0,)]
    assert one.row(1)[:2] == (Outcome.DONE, 2)


def test_quarantine_tells_its_key_and_its_history(one: Party) -> None:
    one.record(failed(1))
    assert one.record(stopped(1, row=one.row(1), attempt=2), stream=TIER)
    ((hashed, history),) = one.fetch("SELECT key_hash, history FROM packhorse.quarantined_message")
    assert hashed == K
    assert [(h["attempt"], h["reason"]) for h in history] == [(1, "failed"), (2, "permanent")]
    assert keys_of(one) == [(K, UUID(int=1))]


def test_a_digest_is_kept_from_the_first_result_on(one: Party) -> None:
    one.record(failed(1))
    one.record(done(1, row=one.row(1))._replace(digest="other"), stream=TIER)
    assert one.row(1).digest == failed(1).digest


def test_a_tombstone_leaves_a_mark_where_a_payload_leaves_a_digest(one: Party) -> None:
    """Fails when NULL is written, which says that nothing is known."""
    gone = digest_of(None)
    one.record(done(1)._replace(digest=gone), failed(2)._replace(digest=gone))
    assert [one.row(n).digest for n in (1, 2)] == [gone, gone]


def test_a_redriven_message_is_uncopied_from_its_due_time_on(one: Party) -> None:
    one.record(stopped(1))
    one.run(STORE.confirm_copies(TOPIC, [Place(UUID(int=1), 0, 7, 1)]))
    assert one.row(1).copied
    one.connection.execute("UPDATE packhorse.quarantined_message SET state = 'redriven'")
    redrive = "UPDATE packhorse.inbox SET outcome = 'retry', attempt = 2, due_at = clock_timestamp() + %s * interval '1 s'"
    one.connection.execute(redrive, (60,))
    assert one.row(1).copied
    assert one.run(STORE.uncopied(TOPIC, [UUID(int=1)])) == []
    one.connection.execute(redrive, (0,))
    row = one.row(1)
    assert (row.copied, row.tier, row.state) == (False, "0s", "redriven")
    (waiting,) = one.run(STORE.due_redrives([TOPIC]))
    assert one.run(STORE.uncopied(TOPIC, [UUID(int=1)])) == [waiting]
    one.run(STORE.confirm_copies(TOPIC, [Place(UUID(int=1), 0, 8, 2, "0s")]))
    assert one.row(1).copied
    assert one.run(STORE.due_redrives([TOPIC])) == []


# Who is first.


@pytest.mark.case("T-01")
def test_a_follower_is_taken_while_its_key_is_parked_and_refused_when_it_is_not(one: Party) -> None:
    """Fails when a follower's key is not locked and looked for."""
    assert not one.record(parked(2))
    one.record(failed(1))
    assert one.record(parked(2), parked(3))
    assert one.row(2)[:2] == (Outcome.PARKED, 1)


@pytest.mark.case("T-01")
def test_a_key_is_parked_in_every_partition(one: Party) -> None:
    """
    Fails when parked keys are looked for in their partition alone: another client's partitioner, or partitions that were added,
    put the same key elsewhere. There it would overtake what waits, and once it fails, which can't be recorded, be blamed for it.
    """
    one.record(failed(1))
    one.run(STORE.first_watermark(STREAM, 1, 0))
    for partition in (0, 1):
        known = one.run(STORE.look_up(STREAM, partition, [UUID(int=2)], [K]))
        assert known.parked == {K: UUID(int=1)}


def test_a_head_and_its_followers_are_written_together(one: Party) -> None:
    assert one.record(failed(1), parked(2), done(9, b"other"), failed(4, b"x"), parked(5, b"x"))
    assert keys_of(one) == sorted([(K, UUID(int=1)), (key_hash(b"x"), UUID(int=4))])


def test_the_second_head_of_a_key_is_refused(two: list[Party]) -> None:
    first, second = two
    first.record(failed(1))
    assert not second.record(failed(2))
    assert second.record(parked(2))


def test_two_heads_of_one_key_at_a_moment_are_one(two: list[Party]) -> None:
    first, second = two
    first.begin()
    assert first.write(failed(1))
    second.begin()
    late = Beside(lambda: second.write(failed(2)))
    waits(first, second)
    first.commit()
    assert late.get() is False


@pytest.mark.case("T-23")
def test_a_zombies_result_of_an_older_attempt_is_refused(two: list[Party]) -> None:
    """Fails when UPDATE_RESULTS leaves out the attempt."""
    first, zombie = two
    first.record(failed(1))
    stale = zombie.row(1)
    assert first.record(failed(1, row=first.row(1), attempt=2), stream=TIER)
    assert not zombie.record(done(1, row=stale), stream=TIER)
    assert first.row(1)[:2] == (Outcome.RETRY, 3)
    assert keys_of(first) == [(K, UUID(int=1))]


def test_a_head_whose_key_is_anothers_is_refused(one: Party) -> None:
    """A redriven message of a handler that went on behind quarantine meets a key with another head: it becomes a follower."""
    one.record(failed(1))
    one.connection.execute("UPDATE packhorse.parked_key SET head_id = %s", (UUID(int=5),))
    assert not one.record(failed(1, row=one.row(1), attempt=2), stream=TIER)
    assert one.record(parked(1, row=one.row(1)), stream=TIER)
    assert one.row(1)[:2] == (Outcome.PARKED, 2)
    assert one.fetch("SELECT count(*) FROM packhorse.retry_message") == [(0,)]


@pytest.mark.case("T-03")
def test_a_follower_that_is_being_added_keeps_its_key(two: list[Party]) -> None:
    """Fails when RELEASE_KEYS looks for followers in the statement that takes the lock."""
    first, second = two
    first.record(failed(1))
    first.record(done(1, row=first.row(1)), stream=TIER)
    first.begin()
    assert first.write(parked(2))
    late = Beside(lambda: second.run(STORE.release(TOPIC, [K])))
    waits(first, second)
    first.commit()
    assert late.get() == Released([K], {}, [])
    assert keys_of(first) == [(K, UUID(int=1))]


@pytest.mark.case("T-03")
def test_a_follower_that_comes_while_its_key_is_let_go_is_run(two: list[Party]) -> None:
    """Fails when a follower's key is looked for without a lock: the message would lie behind no key for ever."""
    first, second = two
    first.record(failed(1))
    first.record(done(1, row=first.row(1)), stream=TIER)
    second.begin()
    releasing = STORE.release(TOPIC, [K])
    _until_commit(second, releasing)
    first.begin()
    late = Beside(lambda: first.write(parked(2)))
    waits(second, first)
    second.commit()
    assert late.get() is False
    first.roll_back()
    assert keys_of(first) == []
    assert first.record(done(2))


def _until_commit(party: Party, steps: Steps[Any]) -> None:
    """Execute *steps* but for the statements that begin and end its transaction."""

    def inner() -> Steps[None]:
        next(steps)
        statement = steps.send(None)  # type: ignore[arg-type]
        while statement.text != b"COMMIT":
            answer = yield statement
            statement = steps.send(answer)

    party.run(inner())


def test_a_thousand_keys_at_once_wait_for_each_other_in_no_ring(two: list[Party]) -> None:
    """Fails when LOCK_KEYS or LOCK_RELEASABLE does not sort."""
    first, second = two
    keys = [b"%d" % n for n in range(1_000)]
    heads = [failed(n, keys[n]) for n in range(1_000)]
    assert first.record(*heads)
    rows = first.known(*range(1_000)).rows
    ended = [done(n, keys[n], rows[UUID(int=n)]) for n in range(0, 1_000, 2)]
    assert first.record(*ended, stream=TIER)
    some = [parked(2_000 + n, keys[n]) for n in range(1_000)]
    more = [parked(4_000 + n, keys[n]) for n in reversed(range(1_000))]
    beside = Beside(lambda: second.record(*some))
    assert first.record(*more)
    assert beside.get() is True
    hashes = [key_hash(key) for key in keys]
    beside = Beside(lambda: second.run(STORE.release(TOPIC, hashes)))
    mine = first.run(STORE.release(TOPIC, list(reversed(hashes))))
    assert sorted(mine.waiting) == sorted(beside.get().waiting) == sorted(hashes[::2])
    assert len(mine.heads) == 500


# Claims.


def _finished_head(party: Party, *behind: int) -> None:
    party.record(failed(1), *(parked(n) for n in behind))
    party.record(done(1, row=party.row(1)), stream=TIER)


def test_of_two_drainers_one_has_the_key(two: list[Party]) -> None:
    first, second = two
    _finished_head(first, 2, 3)
    claimed = first.run(STORE.claim(TOPIC, K, "first"))
    assert claimed.claim is not None
    assert [d.id for d, _ in claimed.followers] == [UUID(int=2), UUID(int=3)]
    refused = second.run(STORE.claim(TOPIC, K, "second"))
    assert refused.claim is None
    assert 25 < refused.busy <= 30
    released = second.run(STORE.release(TOPIC, [K]))
    assert list(released.busy) == [K]
    again = first.run(STORE.claim(TOPIC, K, "first", claimed.claim))
    assert again.claim == Claim(K, claimed.claim.token + 1)
    first.run(STORE.leave(TOPIC, again.claim))
    assert second.run(STORE.claim(TOPIC, K, "second")).claim == Claim(K, again.claim.token + 1)


def test_a_drainer_whose_token_has_moved_is_refused(two: list[Party]) -> None:
    """Fails when KEEP_CLAIM leaves out the token."""
    first, second = two
    _finished_head(first, 2, 3)
    frozen = first.run(STORE.claim(TOPIC, K, "first", lease=0.0))
    assert frozen.claim is not None
    theirs = second.run(STORE.claim(TOPIC, K, "second"))
    assert theirs.claim is not None
    (two_, row), _ = frozen.followers
    late = done(2, row=row)._replace(delivery=two_)
    assert not first.record(late, claim=frozen.claim)
    assert second.record(late, claim=theirs.claim)
    assert second.fetch("SELECT head_id, lease_until > clock_timestamp() FROM packhorse.parked_key") == [
        (UUID(int=2), True)
    ]
    assert [d.id for d, _ in second.run(STORE.claim(TOPIC, K, "s", theirs.claim)).followers] == [UUID(int=3)]


def test_a_token_of_an_earlier_life_of_the_key_is_refused(one: Party) -> None:
    """Fails when tokens of a key that is parked anew begin at a number of before."""
    _finished_head(one)
    old = one.run(STORE.claim(TOPIC, K, "old")).claim
    assert old is not None
    one.run(STORE.release(TOPIC, [K], [old]))
    assert one.record(failed(5), parked(6))
    one.record(done(5, row=one.row(5)), stream=TIER)
    new = one.run(STORE.claim(TOPIC, K, "new"))
    assert new.claim is not None
    assert new.claim.token > old.token
    assert not one.record(done(6, row=new.followers[0][1]), claim=old)


def test_a_follower_that_fails_becomes_the_head(one: Party) -> None:
    _finished_head(one, 2, 3)
    claimed = one.run(STORE.claim(TOPIC, K, "test"))
    assert claimed.claim is not None
    assert one.record(failed(2, row=claimed.followers[0][1]), claim=claimed.claim)
    assert one.row(2)[:2] == (Outcome.RETRY, 2)
    assert keys_of(one) == [(K, UUID(int=2))]
    refused = one.run(STORE.claim(TOPIC, K, "test"))
    assert (refused.claim, refused.head, refused.busy) == (None, UUID(int=2), 0.0)
    assert one.run(STORE.release(TOPIC, [K])).heads == [UUID(int=2)]


def test_a_head_that_stops_where_later_ones_go_on_lets_its_key_be_drained(one: Party) -> None:
    one.record(failed(1), parked(2))
    assert one.record(stopped(1, row=one.row(1), attempt=2, parks=False), stream=TIER)
    assert keys_of(one) == [(K, None)]
    assert one.run(STORE.release(TOPIC, [K])).waiting == [K]
    assert one.run(STORE.claim(TOPIC, K, "test")).claim is not None


def test_followers_of_a_topic_made_anew_come_behind(one: Party) -> None:
    """Fails when FOLLOWERS orders by the offset alone."""
    _finished_head(one)
    one.connection.execute("UPDATE packhorse.inbox SET outcome = 'retry'")
    old = Stream(topic=TOPIC, topic_id=UUID(int=76), source=TOPIC)
    assert one.record(parked(50)._replace(delivery=delivery(50, stream=old)), parked(60), topic_age=0)
    assert one.record(parked(5), topic_age=1)
    one.connection.execute("UPDATE packhorse.inbox SET outcome = 'done' WHERE outcome = 'retry'")
    claimed = one.run(STORE.claim(TOPIC, K, "test"))
    assert [d.origin.offset for d, _ in claimed.followers] == [50, 60, 5]


def test_followers_come_in_portions_by_number_and_bytes(one: Party) -> None:
    _finished_head(one, *range(2, 152))
    assert len(one.run(STORE.claim(TOPIC, K, "test", lease=0.0)).followers) == 100
    one.connection.execute(
        "UPDATE packhorse.parked_message SET payload = convert_to(repeat('x', 2000000), 'UTF8') WHERE \"offset\" < 9"
    )
    assert len(one.run(STORE.claim(TOPIC, K, "test")).followers) == 3


def test_a_follower_that_the_inbox_does_not_know_as_parked_is_dropped(one: Party) -> None:
    _finished_head(one, 2, 3)
    one.connection.execute(
        "UPDATE packhorse.inbox SET outcome = 'discarded' WHERE message_id = %s", (UUID(int=2),)
    )
    claimed = one.run(STORE.claim(TOPIC, K, "test"))
    assert [d.id for d, _ in claimed.followers] == [UUID(int=3)]
    assert one.fetch("SELECT message_id FROM packhorse.parked_message") == [(UUID(int=3),)]


def test_renewing_keeps_what_is_ours_and_says_what_is_not(one: Party) -> None:
    _finished_head(one, 2)
    claim = one.run(STORE.claim(TOPIC, K, "test", lease=1.0)).claim
    assert claim is not None
    ours = HeldKey(TOPIC, K, claim.token)
    theirs = HeldKey(TOPIC, key_hash(b"other"), 1)
    assert one.run(STORE.renew([ours, theirs, ours._replace(token=claim.token - 1)])) == {ours}
    assert 25 < one.run(STORE.claim(TOPIC, K, "late")).busy <= 30


@pytest.mark.case("T-02")
def test_a_key_in_quarantine_stays_parked_for_whoever_asks(two: list[Party]) -> None:
    """Fails when FINISHED counts a head in quarantine as finished."""
    first, second = two
    first.record(stopped(1))
    assert second.known(2, keys=[b"k"]).parked == {K: UUID(int=1)}
    assert second.run(STORE.release(TOPIC, [K])).heads == [UUID(int=1)]
    assert second.run(STORE.claim(TOPIC, K, "test")).head == UUID(int=1)
    assert second.record(parked(2))


# What the watchdog finds.


def _age(party: Party, seconds: int) -> None:
    party.connection.execute(
        "UPDATE packhorse.retry_message SET due_at = due_at - %s * interval '1 s'", (seconds,)
    )


@pytest.mark.case("T-23")
def test_an_overdue_copy_is_sent_again_once_and_with_doubling_waits(two: list[Party]) -> None:
    """Fails when OVERDUE_RETRIES writes no time for the next."""
    one, other = two
    one.record(failed(1))
    assert one.run(STORE.overdue_retries([TOPIC])) == []
    _age(one, 75)
    assert [m.id for m in one.run(STORE.overdue_retries([TOPIC]))] == [UUID(int=1)]
    assert other.run(STORE.overdue_retries([TOPIC])) == []
    for wait in (60, 120, 240):
        ((left,),) = one.fetch(
            "SELECT extract(epoch FROM resend_at - clock_timestamp()) FROM packhorse.retry_message"
        )
        assert wait - 10 < left <= wait
        one.connection.execute("UPDATE packhorse.retry_message SET resend_at = clock_timestamp()")
        assert len(one.run(STORE.overdue_retries([TOPIC]))) == 1


def test_a_tier_that_is_behind_explains_an_overdue_copy(one: Party) -> None:
    one.record(failed(1))
    one.run(STORE.confirm_copies(TOPIC, [Place(UUID(int=1), 0, 7, 2, "1m")]))
    _age(one, 75)
    assert one.run(STORE.overdue_retries([TOPIC])) == []
    _age(one, 60)
    tier = Stream(topic=f"{TOPIC}.{GROUP}.retry.1m", topic_id=UUID(int=5), source=TOPIC)
    one.run(STORE.first_watermark(tier, 0, 7))
    assert one.run(STORE.overdue_retries([TOPIC])) == []
    one.run(STORE.move_watermark(tier, 0, old=7, new=8, leader_epoch=None))
    assert len(one.run(STORE.overdue_retries([TOPIC]))) == 1


@pytest.mark.case("T-03")
def test_a_key_whose_head_was_discarded_is_woken_once_a_minute(two: list[Party]) -> None:
    """Fails when SWEEP_KEYS asks for another outcome than the console writes."""
    one, other = two
    one.record(stopped(1), parked(2), failed(3, b"x"))
    assert one.run(STORE.sweep(("", ""))) == ("", "")
    assert one.run(STORE.due_wakes([TOPIC])) == []
    one.connection.execute(
        "UPDATE packhorse.inbox SET outcome = 'discarded' WHERE message_id = %s", (UUID(int=1),)
    )
    one.run(STORE.sweep(("", "")))
    (wake,) = one.run(STORE.due_wakes([TOPIC]))
    assert wake == (TOPIC, K, b"k", 0, UUID(int=1))
    assert other.run(STORE.due_wakes([TOPIC])) == []
    one.run(STORE.sweep(("", "")))
    assert other.run(STORE.due_wakes([TOPIC])) == []


def test_a_drainer_that_died_leaves_a_key_that_is_woken(one: Party) -> None:
    _finished_head(one, 2)
    one.run(STORE.claim(TOPIC, K, "test"))
    one.connection.execute(
        "UPDATE packhorse.parked_key SET lease_until = lease_until - interval '1 m', wake_at = wake_at - interval '1 m'"
    )
    assert len(one.run(STORE.due_wakes([TOPIC]))) == 1


def test_a_paused_key_takes_followers_and_is_woken_when_it_goes_on(one: Party) -> None:
    assert one.run(STORE.pause_key(TOPIC, K, key=b"k", partition=0, actor="anna", why="deploy"))
    assert not one.run(STORE.pause_key(TOPIC, K, key=b"k", partition=0, actor="bert", why=None))
    assert one.known(keys=[b"k"]).parked == {K: None}
    assert one.record(parked(2))
    assert one.run(STORE.release(TOPIC, [K])) == Released([], {}, [])
    assert one.run(STORE.claim(TOPIC, K, "test")).claim is None
    one.run(STORE.sweep(("", "")))
    assert one.run(STORE.due_wakes([TOPIC])) == []
    (paused,) = one.run(PauseTable(store=STORE).paused_keys())
    assert paused[:6] == (TOPIC, K, 0, 1, "anna", "deploy")
    assert one.run(STORE.resume_key(TOPIC, K))
    assert not one.run(STORE.resume_key(TOPIC, K))
    assert len(one.run(STORE.due_wakes([TOPIC]))) == 1
    assert len(one.run(STORE.claim(TOPIC, K, "test")).followers) == 1


def test_the_head_of_a_paused_key_goes_behind_it_and_is_the_first_when_it_goes_on(one: Party) -> None:
    """Fails when a head that is parked stays the head: its key would wait for it, and it for its key."""
    one.record(failed(1), parked(2))
    one.run(STORE.pause_key(TOPIC, K, key=b"k", partition=0, actor="anna", why="deploy"))
    assert one.known(keys=[b"k"]).parked == {K: None}
    assert one.record(parked(1, row=one.row(1)), stream=TIER)
    assert keys_of(one) == [(K, None)]
    one.run(STORE.resume_key(TOPIC, K))
    claimed = one.run(STORE.claim(TOPIC, K, "test"))
    assert [(d.id.int, row.attempt) for d, row in claimed.followers] == [(1, 2), (2, 1)]


def test_what_waits_is_counted_by_partition(one: Party) -> None:
    one.record(failed(1), parked(2), parked(3))
    assert one.run(STORE.parked_standing()) == {(TOPIC, 0): (2, 2)}


# Watermarks, hands and pauses.


def test_many_watermarks_move_at_once_each_by_compare_and_set(one: Party) -> None:
    """Fails when MOVE_WATERMARKS leaves out the old value."""
    for partition in (1, 2):
        one.run(STORE.first_watermark(STREAM, partition, 10))
    spot = STREAM.topic_id
    moves = [
        Move(spot, 2, 10, 30, 4),
        Move(spot, 1, 9, 20, None),
        Move(spot, 0, 0, 5, None),
        Move(spot, 8, 0, 5, 1),
    ]
    assert one.run(STORE.move_watermarks(moves)) == {(spot, 2), (spot, 0)}
    assert [one.run(STORE.read_watermark(STREAM, p))[:2] for p in range(3)] == [
        (5, None),
        (10, None),
        (30, 4),
    ]
    one.connection.execute("UPDATE packhorse.watermark SET incarnation = 'other'")
    assert one.run(STORE.move_watermarks([Move(spot, 2, 30, 31, 4)])) == set()
    assert one.run(STORE.move_watermarks([])) == set()


def test_a_watermark_tells_how_old_its_topic_is(one: Party) -> None:
    for partition in (0, 1):
        assert one.run(STORE.read_watermark(STREAM, partition)).topic_age == 0
    one.run(STORE.first_watermark(STREAM, 1, 0))
    anew = Stream(topic=TOPIC, topic_id=UUID(int=79), source=TOPIC)
    mark = one.run(STORE.read_watermark(anew, 0))
    assert (mark.topic_age, mark.elsewhere) == (1, 2)


def test_hands_are_looked_at_by_partition(one: Party) -> None:
    spot, lane, member = (STREAM.topic_id, 0), UUID(int=1), UUID(int=2)
    one.run(STORE.take_in_hand(lane, member, spot, [4, 5]))
    one.run(STORE.take_in_hand(lane, member, spot, [6], alone=True))
    one.run(STORE.take_in_hand(UUID(int=9), member, (STREAM.topic_id, 1), [7]))
    (found,) = one.run(STORE.look_in_hands([spot, (STREAM.topic_id, 3)]))
    assert found[:6] == (lane, *spot, [6], True, member)
    one.run(STORE.empty_hands([lane]))
    assert one.run(STORE.look_in_hands([spot])) == []
    assert [one.run(STORE.mark_start(spot, 6)) for _ in range(3)] == [1, 2, 3]
    assert [one.run(STORE.mark_start(spot, 6, lived=lived)) for lived in (True, False)] == [3, 4]
    assert one.run(STORE.read_starts(spot, [6, 7])) == {6: 4}
    one.run(STORE.clear_starts(spot, [6]))
    assert one.run(STORE.read_starts(spot, [6])) == {}


def test_what_people_pause_is_read(one: Party) -> None:
    assert one.run(STORE.pause("anna", "deploy"))
    assert not one.run(STORE.pause("bert", None))
    assert one.run(STORE.pause("bert", None, topic=TOPIC, partition=3))
    assert [p[:4] for p in one.run(STORE.read_pauses())] == [
        ("", -1, "anna", "deploy"),
        (TOPIC, 3, "bert", None),
    ]
    assert one.run(STORE.resume())
    assert not one.run(STORE.resume(topic=TOPIC))


def test_texts_of_an_array_arrive_as_they_were(tables: str) -> None:
    """Fails when a message's type, which anybody writes, reads as something else in the array that all types of a chunk share."""
    odd = [
        "shop.Placed",
        None,
        "NULL",
        "",
        'a"b',
        "a\\b",
        '\\"',
        "{a,b}",
        " a ",
        "a\nb",
        "\u00e9\U0001f40e",
        "a",
        "a",
    ]
    with psycopg.connect(tables) as connection:
        row = connection.execute("SELECT %s::text[]", [texts(odd)]).fetchone()
    assert row == (odd,)
