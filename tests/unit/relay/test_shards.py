"""Who runs which shard, and how their number changes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.relay.crew.duties import Roster, ShardSeen, duties
from packhorse.relay.resharding.model import Standing, Step, next_step, waits_for
from packhorse.relay.shards import shard_of


@given(
    count=st.integers(2, 9),
    members=st.integers(1, 12),
    leased=st.sets(st.integers(0, 8)),
    mine=st.sets(st.integers(0, 8)),
)
@pytest.mark.case("R-13")
def test_no_process_takes_more_than_its_share_or_what_somebody_owns(
    count: int, members: int, leased: set[int], mine: set[int]
) -> None:
    """Fails when a process grabs leased shards, or keeps more than an even share."""
    mine = {shard for shard in mine if shard < count}
    seen = tuple(ShardSeen(shard=shard, leased=shard in leased | mine) for shard in range(count))
    todo = duties(Roster(shards=seen, members=members), running=mine, owned=mine)
    after = (mine - set(todo.stop)) | set(todo.start)
    assert len(after) <= -(-count // members)
    assert not set(todo.start) & (leased | mine)


@given(count=st.integers(2, 9), members=st.integers(1, 5))
def test_free_shards_find_a_process(count: int, members: int) -> None:
    """Fails when the shares do not add up to all shards."""
    owned: dict[int, set[int]] = {member: set() for member in range(members)}
    for mine in owned.values():
        taken = set().union(*owned.values())
        seen = tuple(ShardSeen(shard=shard, leased=shard in taken) for shard in range(count))
        mine.update(duties(Roster(shards=seen, members=members), running=mine, owned=mine).start)
    assert set().union(*owned.values()) == set(range(count))


def test_a_shard_that_somebody_else_took_is_let_go() -> None:
    seen = (ShardSeen(shard=0, leased=True), ShardSeen(shard=1, leased=True))
    assert duties(Roster(shards=seen, members=2), running={0, 1}, owned={0}).stop == (1,)


def test_shards_that_are_gone_are_let_go() -> None:
    todo = duties(Roster(shards=(ShardSeen(shard=0, leased=True),), members=1), running={0, 1}, owned={0, 1})
    assert todo.stop == (1,)


def test_while_the_shards_change_only_what_is_left_to_finish_is_taken() -> None:
    seen = (
        ShardSeen(shard=0, leased=False, takeable=False),
        ShardSeen(shard=1, leased=False, takeable=True),
    )
    assert duties(Roster(shards=seen, members=1), running=set(), owned=set()).start == (1,)


FREE = Standing(shard=0, owner=None, horizon="1:9:", finish=True, wanted=2)


@pytest.mark.parametrize(
    ("shards", "step"),
    [
        ([replace(FREE, finish=False, wanted=None)], Step.ORDER),
        ([FREE], Step.SWITCH),
        ([replace(FREE, owner="host:1")], Step.WAIT),
        ([replace(FREE, target="1:12:")], Step.WAIT),
        ([FREE, replace(FREE, shard=1, horizon="1:7:")], Step.LEVEL),
        ([FREE, replace(FREE, shard=1, finish=False)], Step.ORDER),
        (
            [replace(FREE, finish=False, wanted=None), replace(FREE, shard=1, finish=False, wanted=None)],
            Step.DONE,
        ),
    ],
)
def test_the_next_step_of_a_change(shards: list[Standing], step: Step) -> None:
    """Fails when shards are dealt anew while somebody is at work, or from horizons that differ."""
    assert next_step(shards, 2) is step


def test_a_wait_says_for_whom() -> None:
    assert "0 (host:1)" in waits_for([replace(FREE, owner="host:1")])
    assert "is one running?" in waits_for([replace(FREE, target="1:12:")])


@given(key=st.none() | st.text(), shards=st.integers(1, 64))
def test_every_key_has_one_shard(key: str | None, shards: int) -> None:
    assert 0 <= shard_of(key, shards) < shards
