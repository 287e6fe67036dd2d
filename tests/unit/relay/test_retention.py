"""What retention decides, what it calls overdue, how it tells that, and the thread that runs it."""

import logging
from collections.abc import Callable, Iterator
from datetime import date, timedelta

import pytest

from packhorse.core.errors import DatabaseUnavailable, NotReady, SettingsError
from packhorse.core.telemetry import Attributes, Metric, NoTelemetry
from packhorse.relay.errors import StatementFailed
from packhorse.relay.retention.decide import LEFT_OVER, LONG, next_step, overdue
from packhorse.relay.retention.keeper import RetentionKeeper
from packhorse.relay.retention.model import (
    Blocker,
    Code,
    Drop,
    Empty,
    Facts,
    KeptRow,
    LastRun,
    Make,
    Outcome,
    Partition,
    Report,
    Rules,
    Step,
)
from packhorse.relay.retention.shell import run_once
from packhorse.relay.retention.tell import told
from packhorse.relay.settings import RelaySettings, RetentionSettings

TODAY = date(2026, 8, 15)
KEEP = date(2026, 8, 13)
RULES = Rules(keep_days=2, ahead=1)
ROW = KeptRow(id="an-id", aggregatetype="orders", seq=7, created_at="2026-08-01 00:00:00", shard=0)


def day(ago: int, size: int = 8192) -> Partition:
    """Return the partition of the day *ago* days before today."""
    first = TODAY - timedelta(days=ago)
    return Partition(name=f"outbox_{first:%Y%m%d}", day=first, size=size)


def net(size: int = 0) -> Partition:
    return Partition(name="outbox_default", day=None, size=size)


def facts(*partitions: Partition) -> Facts:
    return Facts(today=TODAY, partitions=partitions)


def steps(
    found: Facts, rules: Rules = RULES, answer: Callable[[Step], Code] | None = None
) -> list[tuple[str, str]]:
    """Return all steps of a run in which each ends as *answer* says, or well."""
    well = {Make: Code.MADE, Empty: Code.EMPTIED, Drop: Code.DROPPED}
    done: list[Outcome] = []
    while (step := next_step(found, rules, done)) is not None:
        done.append(Outcome(step=step, code=answer(step) if answer else well[type(step)]))
    return [(type(outcome.step).__name__, outcome.step.name) for outcome in done]


def test_days_to_come_are_made_first_then_the_oldest_go_and_the_empty_ones_last() -> None:
    found = facts(net(8192), day(3), day(0), day(4, 0), day(5), day(2))
    assert steps(found) == [
        ("Make", "outbox_20260816"),
        ("Empty", "outbox_20260810"),
        ("Empty", "outbox_20260812"),
        ("Empty", "outbox_default"),
        ("Drop", "outbox_20260810"),
        ("Drop", "outbox_20260811"),
        ("Drop", "outbox_20260812"),
    ]


def test_the_days_kept_and_today_stay_whatever_their_size() -> None:
    """Fails when a day is counted short: `keep_days` whole days are kept beside today."""
    assert steps(facts(day(2), day(1, 0), day(0, 0), day(-1, 0), net())) == []
    assert steps(facts(day(3, 0), day(0), day(-1), net())) == [("Drop", "outbox_20260812")]


def test_without_a_limit_partitions_are_made_and_nothing_goes() -> None:
    assert steps(facts(day(400), day(0), net(8192)), Rules(keep_days=None, ahead=1)) == [
        ("Make", "outbox_20260816")
    ]


def test_what_stays_is_not_dropped() -> None:
    """Fails when a drop does not wait for the emptying: a partition with rows would be asked for."""
    found = facts(day(4), day(3), day(0), day(-1))
    stays = "outbox_20260811"

    def answer(step: Step) -> Code:
        if step == Empty(name=stays, keep=KEEP):
            return Code.UNPUBLISHED
        return Code.EMPTIED if isinstance(step, Empty) else Code.DROPPED

    assert ("Drop", stays) not in steps(found, answer=answer)


@pytest.mark.case("B-09")
def test_a_drop_that_gave_way_ends_the_drops_of_a_run() -> None:
    """Fails when each empty partition makes the writers wait again for the same transaction."""
    found = facts(day(4, 0), day(3, 0), day(0), day(-1))
    assert steps(found, answer=lambda step: Code.BUSY) == [("Drop", "outbox_20260811")]


@pytest.mark.case("B-11")
def test_who_finds_another_process_at_it_leaves_the_rest_to_that() -> None:
    """Fails when a second process goes on with the next step beside the first."""
    found = facts(day(4), day(3), day(0), day(-1))
    assert steps(found, answer=lambda step: Code.ELSEWHERE) == [("Empty", "outbox_20260811")]


EMPTY = Empty(name="outbox_20260801", keep=KEEP)
DROP = Drop(name="outbox_20260801", keep=KEEP)
NEXT = Make(day=TODAY + timedelta(days=1))
LATER = Make(day=TODAY + timedelta(days=9))


def blocker(
    *, pid: int | None = 7, gid: str | None = None, seconds: int | None = 0, wrote: bool = False
) -> Blocker:
    return Blocker(pid=pid, gid=gid, application="billing", seconds=seconds, wrote=wrote)


@pytest.mark.case("B-10")
@pytest.mark.parametrize(
    ("outcome", "late"),
    [
        (Outcome(step=EMPTY, code=Code.UNPUBLISHED, row=ROW), True),
        (Outcome(step=EMPTY, code=Code.HELD, row=ROW), True),
        (Outcome(step=EMPTY, code=Code.NO_HORIZON), True),
        (Outcome(step=EMPTY, code=Code.FAILED, text="t"), True),
        (Outcome(step=EMPTY, code=Code.EMPTIED), False),
        (Outcome(step=EMPTY, code=Code.YOUNG), False),
        (Outcome(step=EMPTY, code=Code.CHANGED), False),
        (Outcome(step=EMPTY, code=Code.BUSY), False),
        (Outcome(step=EMPTY, code=Code.BUSY, blocker=blocker()), False),
        (Outcome(step=EMPTY, code=Code.BUSY, blocker=blocker(seconds=None)), False),
        (Outcome(step=EMPTY, code=Code.BUSY, blocker=blocker(wrote=True)), True),
        (Outcome(step=EMPTY, code=Code.BUSY, blocker=blocker(pid=None, gid="g")), True),
        (Outcome(step=EMPTY, code=Code.BUSY, blocker=blocker(seconds=LONG)), True),
        (Outcome(step=DROP, code=Code.BUSY), False),
        (Outcome(step=DROP, code=Code.DEPENDED, text="t"), True),
        (Outcome(step=NEXT, code=Code.LARGE), True),
        (Outcome(step=NEXT, code=Code.BUSY), True),
        (Outcome(step=NEXT, code=Code.NET), False),
        (Outcome(step=LATER, code=Code.LARGE), False),
    ],
)
def test_what_somebody_should_look_at(outcome: Outcome, late: bool) -> None:
    """Fails when a partition that stays for a row is kept in silence, or a lock of a moment wakes somebody."""
    found = list(overdue(facts(net()), RULES, [outcome]))
    assert [each.name for each in found] == ([outcome.step.name] if late else [])
    if late and outcome.row is not None:
        assert (found[0].message_id, found[0].aggregatetype) == ("an-id", "orders")
        assert found[0].told == told(outcome)


def test_empty_partitions_that_can_t_be_dropped_for_days_are_told() -> None:
    busy = Outcome(step=Drop(name=day(20).name, keep=KEEP), code=Code.BUSY, blocker=blocker(seconds=9))
    few = facts(*(day(20 - n, 0) for n in range(LEFT_OVER)))
    many = facts(*(day(20 - n, 0) for n in range(LEFT_OVER + 1)))
    assert list(overdue(few, RULES, [busy])) == []
    (found,) = overdue(many, RULES, [busy])
    assert "pid 7 (billing), open for 9 s, has a lock" in found.told


def test_each_outcome_is_a_sentence_that_names_its_row_hold_or_transaction() -> None:
    held = KeptRow(id="an-id", aggregatetype="orders", seq=7, created_at="then", hold=3)
    assert "row an-id of orders (seq 7, written 2026-08-01 00:00:00 UTC) is not published by shard 0" in told(
        Outcome(step=EMPTY, code=Code.UNPUBLISHED, row=ROW)
    )
    assert "waits in hold 3; see `packhorse relay holds`" in told(
        Outcome(step=EMPTY, code=Code.HELD, row=held)
    )
    prepared = blocker(pid=None, gid="ship-17", seconds=None, wrote=True)
    assert "prepared transaction 'ship-17' (billing) wrote rows" in told(
        Outcome(step=EMPTY, code=Code.BUSY, blocker=prepared)
    )
    assert told(Outcome(step=EMPTY, code=Code.EMPTIED, size=3 * 1024**2)) == "emptied, 3.0 MiB free"


@pytest.mark.parametrize(("keep_days", "ahead"), [(0, 1), (-1, 1), (1, -1), (1, 401)])
def test_rules_that_would_remove_today_or_make_no_sense_are_refused(keep_days: int, ahead: int) -> None:
    with pytest.raises(SettingsError, match="is not allowed"):
        Rules(keep_days=keep_days, ahead=ahead)


def test_settings_say_what_is_kept_for_the_relay_and_for_the_command(tmp_path: object) -> None:
    variables = {
        "PACKHORSE_DATABASE_URL": "postgresql://db/app",
        "PACKHORSE_RELAY_RETENTION_DAYS": "0",
        "PACKHORSE_RELAY_PARTITIONS_AHEAD": "3",
    }
    assert RetentionSettings.load(environ=variables).rules == Rules(keep_days=None, ahead=3)
    assert RetentionSettings.load({"retention_days": 5}, environ=variables).rules == Rules(
        keep_days=5, ahead=3
    )
    more = {"PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": "b:1", "PACKHORSE_NAMESPACE": "n"}
    assert RelaySettings.load(environ={**variables, **more}).retention_every == 300
    with pytest.raises(SettingsError, match="PACKHORSE_RELAY_RETENTION_DAYS"):
        RetentionSettings.load(environ={**variables, "PACKHORSE_RELAY_RETENTION_DAYS": "-1"})


class Memory:
    """Partitions that remember what was recorded, and answer as told."""

    def __init__(self, *answers: Code | Exception, found: Facts | Exception | None = None) -> None:
        self.answers = list(answers)
        self.found = found or facts(day(4), day(0), day(-1))
        self.taken: list[Step] = []
        self.looked: list[Step] = []
        self.recorded: list[Report] = []

    def facts(self) -> Facts:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def take(self, step: Step) -> Outcome:
        self.taken.append(step)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Outcome(step=step, code=answer, row=ROW if answer is Code.UNPUBLISHED else None)

    def look(self, step: Step) -> Outcome:
        self.looked.append(step)
        return Outcome(step=step, code=Code.DUE)

    def record(self, report: Report, *, by: str, keep_days: int | None) -> None:
        assert (by, keep_days) == ("me", 2)
        self.recorded.append(report)

    def last(self) -> LastRun:
        raise NotImplementedError

    def cancel(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_statement_that_fails_ends_its_own_step_alone() -> None:
    """Fails when one partition whose look takes too long keeps all others."""
    memory = Memory(
        StatementFailed("canceling statement due to statement timeout"),
        Code.EMPTIED,
        Code.DROPPED,
        found=facts(day(5), day(4), day(0), day(-1)),
    )
    report = run_once(memory, RULES, by="me")
    assert [outcome.code for outcome in report.outcomes] == [Code.FAILED, Code.EMPTIED, Code.DROPPED]
    assert [each.name for each in report.overdue] == [day(5).name]
    assert memory.recorded == [report]


def test_a_look_changes_nothing_and_writes_nothing_down() -> None:
    memory = Memory()
    report = run_once(memory, RULES, by="me", act=False)
    assert report.count(Code.DUE) == len(memory.looked) == 2
    assert (memory.taken, memory.recorded) == ([], [])


class Measured(NoTelemetry):
    """Remember measurements."""

    def __init__(self) -> None:
        self.seen: list[tuple[Metric, float, object]] = []

    def record(self, metric: Metric, value: float, attributes: Attributes | None = None) -> None:
        self.seen.append((metric, value, (attributes or {}).get("outcome")))


@pytest.fixture
def heard() -> Iterator[list[tuple[str, str]]]:
    """Provide level and event of what retention logs; steps aside."""
    found: list[tuple[str, str]] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() != "retention":
                found.append((record.levelname, record.getMessage()))

    logger, ear = logging.getLogger("packhorse.retention"), Ear()
    before = logger.level
    logger.addHandler(ear)
    logger.setLevel(logging.INFO)
    yield found
    logger.removeHandler(ear)
    logger.setLevel(before)


@pytest.mark.case("B-10")
def test_an_alarm_is_told_once_measured_each_time_and_ends(heard: list[tuple[str, str]]) -> None:
    """Fails when the log repeats the same alarm at each turn, or says nothing when what is overdue changes."""
    memory, measured = Memory(Code.UNPUBLISHED, Code.UNPUBLISHED, Code.EMPTIED, Code.DROPPED), Measured()
    keeper = RetentionKeeper(memory, RULES, every=1, by="me", owns=lambda: True, telemetry=measured)
    for _ in range(3):
        keeper.turn()
    assert heard == [("ERROR", "a partition is overdue"), ("INFO", "no partition is overdue any more")]
    gauge = [value for metric, value, _ in measured.seen if metric is Metric.RETENTION_OVERDUE]
    assert gauge == [1, 1, 0]


@pytest.mark.parametrize(
    "trouble", [DatabaseUnavailable("away"), NotReady("no right"), ZeroDivisionError("a bug")], ids=repr
)
def test_whatever_goes_wrong_is_a_warning_and_is_tried_again(
    trouble: Exception, heard: list[tuple[str, str]]
) -> None:
    """Fails when an error leaves the thread: retention would end in silence, or take the relay with it."""
    memory, measured = Memory(found=trouble), Measured()
    keeper = RetentionKeeper(memory, RULES, every=1, by="me", owns=lambda: True, telemetry=measured)
    keeper.turn()
    keeper.turn()
    memory.found = facts(day(0), day(-1))
    keeper.turn()
    assert heard == [
        ("WARNING", "retention did not run; it is tried again"),
        ("INFO", "retention runs again"),
    ]
    runs = [outcome for metric, _, outcome in measured.seen if metric is Metric.RETENTION_RUNS]
    assert runs == ["failed", "failed", "done"]
