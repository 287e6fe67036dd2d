"""What a person may pause: what is known, unless they say that it comes yet."""

from datetime import datetime

import pytest

from packhorse.console.acting.person import Person
from packhorse.console.pausing.known import Known, unknown
from packhorse.console.pausing.service import Paused, Pausing, Resumed
from packhorse.core.errors import SettingsError, UnknownId, UsageError
from packhorse.core.partitions import partition_of
from packhorse.processor.pausing.pauses import Scope

TABLES = Known(group=True, places=frozenset({("a.b", 0), ("a.b", 1), ("a.b.g.retry.5s", 0)}))
BROKER = Known(group=True, counts={"a.b": 3})
PERSON = Person(user="ann")


@pytest.mark.parametrize(
    ("scope", "known", "said"),
    [
        (Scope(), TABLES, None),
        (Scope(), Known(group=False), "no group g is known"),
        (Scope(topic="a.b"), Known(group=False, counts={}), "no group g is known"),
        (Scope(topic="a.b"), TABLES, None),
        (Scope(topic="a.b.g.retry.5s"), TABLES, None),
        (Scope(topic="a.c"), TABLES, "no topic a.c is known to group g"),
        (Scope(topic="a.c"), BROKER, "no topic a.c is known to group g"),
        (Scope(topic="a.b", partition=1), TABLES, None),
        (Scope(topic="a.b", partition=2), TABLES, "no partition 2 that is known"),
        (Scope(topic="a.b", partition=2), BROKER, None),
        (Scope(topic="a.b", partition=3), BROKER, "3 are, counted from 0"),
        (Scope(topic="a.b", key=b"k"), TABLES, None),
        (Scope(topic="a.c", key=b"k"), TABLES, "no topic a.c"),
    ],
)
def test_what_nothing_is_known_of_is_refused(scope: Scope, known: Known, said: str | None) -> None:
    refusal = unknown("g", scope, known)
    if said is None:
        assert refusal is None
    else:
        assert said in str(refusal)
        assert "--anyway" in str(refusal)


def test_who_has_no_broker_is_told_so() -> None:
    for counts, told in ((None, True), ({}, False)):
        text = str(unknown("g", Scope(topic="x"), Known(group=True, counts=counts)))
        assert ("PACKHORSE_KAFKA_BOOTSTRAP_SERVERS is not set" in text) == told


class Tables:
    """What the tables know, and what was asked for."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self.paused_at: list[int] = []

    def known(self, person: Person, group: str, *, places: bool = True) -> Known:
        return self._known

    def paused(self, person: Person, group: str) -> Paused:
        return Paused(pauses=(), keys=())

    def groups(self, person: Person) -> list[str]:
        return []

    def pause(self, person: Person, group: str, scope: Scope, *, key_partition: int, why: str) -> bool:
        self.paused_at.append(key_partition)
        return True

    def resume(
        self, person: Person, group: str, scope: Scope, *, why: str, since: datetime | None = None
    ) -> Resumed:
        return Resumed(done=False, left=())


class Broker:
    """A broker with one topic."""

    def __init__(self) -> None:
        self.asked = 0

    def knows(self, group: str) -> bool:
        self.asked += 1
        return group == "g"

    def partitions(self, topic: str) -> int | None:
        self.asked += 1
        return 3 if topic == "a.b" else None


def test_the_broker_is_asked_only_about_what_the_tables_do_not_know() -> None:
    """Fails when a broker that is away keeps people from pausing what the tables know."""
    tables, broker = Tables(TABLES), Broker()
    pausing = Pausing(tables, PERSON, broker=broker)
    assert pausing.pause("g", Scope(topic="a.b", partition=1), why="test")
    assert broker.asked == 0
    assert pausing.pause("g", Scope(topic="a.b", partition=2), why="test")
    for scope in (Scope(topic="a.b", partition=3), Scope(topic="a.c")):
        with pytest.raises(UnknownId):
            pausing.pause("g", scope, why="test")
        assert pausing.pause("g", scope, why="test", anyway=True)
    assert tables.paused_at == [-1] * 4


def test_a_group_that_only_the_broker_knows_is_known() -> None:
    tables = Tables(Known(group=False))
    assert Pausing(tables, PERSON, broker=Broker()).pause("g", Scope(topic="a.b"), why="test")
    for broker in (None, Broker()):
        with pytest.raises(UnknownId, match="no group h"):
            Pausing(tables, PERSON, broker=broker).pause("h", Scope(), why="test")
    with pytest.raises(UnknownId, match="no group h"):
        Pausing(tables, PERSON).paused("h")


def test_a_key_is_paused_in_its_partition_and_by_itself() -> None:
    tables = Tables(TABLES)
    pausing = Pausing(tables, PERSON, broker=Broker())
    assert pausing.pause("g", Scope(topic="a.b", key=b"k"), why="test")
    assert tables.paused_at == [partition_of(b"k", 3)]
    with pytest.raises(UsageError, match="is paused by --key"):
        pausing.pause("g", Scope(topic="a.b", key_hash="00"), why="test")
    with pytest.raises(SettingsError, match="asked of the broker"):
        Pausing(tables, PERSON).pause("g", Scope(topic="a.b", key=b"k"), why="test")
    with pytest.raises(UnknownId, match="does not exist"):
        pausing.pause("g", Scope(topic="a.c", key=b"k"), why="test", anyway=True)
