"""The doctor's judgement, apart from any server, and its patience."""

import threading
from datetime import date, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from packhorse.console.doctor.findings import Finding, Verdict, all_well, ok, skipped, warning
from packhorse.console.doctor.judge_broker import (
    Broker,
    Topic,
    judge_broker,
    judge_plan,
    judge_topics,
    topics_of,
)
from packhorse.console.doctor.judge_database import (
    GroupState,
    Server,
    Tables,
    judge_groups,
    judge_server,
    judge_tables,
)
from packhorse.console.doctor.judge_processors import Standing, judge_processors
from packhorse.console.doctor.judge_relay import Relay, Slot, judge_relay, judge_slots
from packhorse.console.doctor.judge_settings import judge_settings
from packhorse.console.doctor.runner import Check, run_checks
from packhorse.core.errors import BrokerUnavailable, SettingsError
from packhorse.schemas.settings import PartSettings
from packhorse.schemas.systems import DatabaseSettings

TODAY = date(2026, 8, 1)


class BillingSettings(DatabaseSettings, PartSettings):
    section: ClassVar[str] = "billing"
    batch: int = 5


def verdicts(findings: Any) -> dict[str, Verdict]:
    return {finding.check: finding.verdict for finding in findings}


def server(**given: Any) -> Server:
    values = {
        "version": 150018,
        "standby": False,
        "skew": 0.0,
        "uncertainty": 0.01,
        "oldest_transaction": None,
    }
    return Server(**{**values, **given})


def tables(**given: Any) -> Tables:
    values = {
        "current": "0001",
        "head": "0001",
        "pending": (),
        "sequence_cache": 1,
        "partitions_until": date(2026, 8, 14),
        "today": TODAY,
    }
    return Tables(**{**values, **given})


def relay(**given: Any) -> Relay:
    values = {
        "epoch": 3,
        "owner": "host:12",
        "owned": True,
        "lease_age": None,
        "trouble": None,
        "trouble_since": None,
        "waiting": False,
        "oldest": None,
    }
    return Relay(**{**values, **given})


def topic(name: str, **given: Any) -> Topic:
    values = {"name": name, "partitions": 6, "leaderless": 0, "settings": None}
    return Topic(**{**values, **given})


def test_a_good_database_is_well() -> None:
    findings = [*judge_server(server()), *judge_tables(tables()), *judge_relay(relay())]
    assert set(verdicts(findings).values()) == {Verdict.OK}


@pytest.mark.parametrize(
    ("given", "check", "verdict"),
    [
        ({"version": 140011}, "database version", Verdict.FAILED),
        ({"standby": True}, "database role", Verdict.FAILED),
        ({"skew": -3.0}, "clock", Verdict.WARNING),
        ({"skew": 3.0, "uncertainty": 2.5}, "clock", Verdict.OK),
        ({"skew": 90.0}, "clock", Verdict.FAILED),
        ({"oldest_transaction": timedelta(hours=2)}, "transactions", Verdict.WARNING),
    ],
)
def test_a_server_is_judged(given: dict[str, Any], check: str, verdict: Verdict) -> None:
    assert verdicts(judge_server(server(**given)))[check] is verdict


@pytest.mark.parametrize(
    ("given", "check", "verdict"),
    [
        ({"pending": ("0002",)}, "migrations", Verdict.FAILED),
        ({"current": None, "pending": ("0001",)}, "outbox", Verdict.SKIPPED),
        ({"sequence_cache": 32}, "sequence", Verdict.FAILED),
        ({"sequence_cache": None}, "sequence", Verdict.FAILED),
        ({"without_trigger": ("outbox_20260801",)}, "triggers", Verdict.FAILED),
        ({"missing": ("audit", "inbox")}, "tables", Verdict.FAILED),
        ({"partitions_until": date(2026, 8, 2)}, "partitions", Verdict.WARNING),
        ({"partitions_until": None}, "partitions", Verdict.WARNING),
        ({"default_rows": True}, "partitions", Verdict.WARNING),
    ],
)
def test_tables_are_judged(given: dict[str, Any], check: str, verdict: Verdict) -> None:
    assert verdicts(judge_tables(tables(**given)))[check] is verdict


@pytest.mark.parametrize(
    ("given", "check", "verdict"),
    [
        ({"trouble": "topic x is missing"}, "relay", Verdict.FAILED),
        ({"owned": False, "waiting": True, "lease_age": timedelta(minutes=5)}, "relay", Verdict.FAILED),
        ({"owned": False, "owner": None, "epoch": 0, "waiting": True}, "relay", Verdict.WARNING),
        ({"owned": False, "owner": None, "epoch": 0}, "relay", Verdict.OK),
        ({"waiting": True, "oldest": timedelta(minutes=5)}, "relay", Verdict.WARNING),
        ({"waiting": True, "oldest": timedelta(seconds=5)}, "relay", Verdict.OK),
        ({"waiting": True, "shards_wanted": 3}, "relay", Verdict.FAILED),
        ({"owned": False, "owner": None, "shards_wanted": 3}, "relay", Verdict.WARNING),
        ({"people": [7], "oldest_hold": timedelta(hours=3)}, "holds", Verdict.FAILED),
        ({"heal": 1, "oldest_hold": timedelta(hours=3)}, "holds", Verdict.WARNING),
        ({}, "holds", Verdict.OK),
        ({"mode_cause": "over_budget", "mode_age": timedelta(hours=1)}, "mode", Verdict.WARNING),
        ({"mode_cause": "release"}, "mode", Verdict.OK),
        ({"mode": "cdc", "mode_cause": "caught_up"}, "mode", Verdict.OK),
        ({"shard": 1, "shards": 2, "people": range(7)}, "holds of shard 1", Verdict.FAILED),
    ],
)
def test_a_relay_is_judged(given: dict[str, Any], check: str, verdict: Verdict) -> None:
    assert verdicts(judge_relay(relay(**given)))[check] is verdict


def test_the_doctor_names_what_is_held() -> None:
    (found,) = [each for each in judge_relay(relay(heal=1, what=["missing orders"])) if each.check == "holds"]
    assert "(missing orders)" in found.found


def test_a_missing_row_of_the_relay_fails() -> None:
    assert verdicts(judge_relay(None)) == {"relay": Verdict.FAILED}


@pytest.mark.case("C-08")
@pytest.mark.parametrize(
    ("given", "verdict", "said"),
    [
        ({}, Verdict.OK, "1 MiB"),
        ({"ours": False, "active": False}, Verdict.FAILED, "belongs to no shard"),
        ({"ours": False, "active": True}, Verdict.WARNING, "somebody reads it"),
        ({"active": False, "held": 5 << 30}, Verdict.FAILED, "5,120 MiB"),
        ({"lost": True}, Verdict.WARNING, "lost"),
        ({"bounded": False}, Verdict.WARNING, "1 MiB"),
        ({"held": 3 << 30}, Verdict.WARNING, "3,072 MiB"),
    ],
)
def test_a_slot_is_named_with_the_bytes_that_it_holds(
    given: dict[str, Any], verdict: Verdict, said: str
) -> None:
    """Fails when a slot that nobody reads or owns counts as good, or its bytes are not told."""
    slot: dict[str, Any] = {
        "name": "packhorse_packhorse_0_5", "ours": True, "active": True, "held": 1 << 20, "lost": False, "bounded": True
    }  # fmt: skip
    (found,) = judge_slots([Slot(**{**slot, **given})])
    assert (found.check, found.verdict) == ("slot packhorse_packhorse_0_5", verdict)
    assert said in found.found


def test_processors_and_pauses_are_judged() -> None:
    seen = [timedelta(seconds=3)]
    standings = [
        Standing(group="dead", seen=[timedelta(minutes=5)]),
        Standing(group="ill", seen=seen, wrong=["process 1 on a: loop has not turned for 40 s"]),
        Standing(group="paused", seen=seen, pauses=["the group paused by ann: why"]),
        Standing(group="slow", seen=seen, stalls=["a.b[3] does not move for 70 s: handler"]),
        Standing(group="well", seen=seen, paused_keys=1),
    ]
    assert verdicts(judge_processors(standings)) == {
        "processors of dead": Verdict.WARNING,
        "processors of ill": Verdict.FAILED,
        "processors of paused": Verdict.OK,
        "pauses of paused": Verdict.WARNING,
        "processors of slow": Verdict.WARNING,
        "processors of well": Verdict.OK,
        "pauses of well": Verdict.WARNING,
    }


def test_groups_are_judged() -> None:
    states = [
        GroupState(group="late", quarantined=0, overdue=timedelta(minutes=5)),
        GroupState(group="sick", quarantined=2, overdue=timedelta(seconds=1)),
        GroupState(group="well", quarantined=0, overdue=None),
    ]
    assert verdicts(judge_groups(states)) == {
        "group late": Verdict.FAILED,
        "group sick": Verdict.WARNING,
        "group well": Verdict.OK,
    }


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (None, {"broker version": Verdict.SKIPPED}),
        ({"zookeeper.connect": None}, {"broker version": Verdict.FAILED}),
        ({"auto.create.topics.enable": "false"}, {"broker version": Verdict.OK}),
        (
            {"auto.create.topics.enable": "true"},
            {"broker version": Verdict.OK, "auto create": Verdict.WARNING},
        ),
    ],
)
def test_a_broker_is_judged(settings: dict[str, str | None] | None, expected: dict[str, Verdict]) -> None:
    found = verdicts(judge_broker(Broker(cluster="c", nodes=1, settings=settings)))
    assert found == {"broker": Verdict.OK, **expected}


KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


@pytest.mark.parametrize(
    ("name", "found", "verdict"),
    [
        ("a.b", None, Verdict.FAILED),
        ("a.b", topic("a.b", leaderless=1), Verdict.FAILED),
        ("a.b", topic("a.b", settings={"message.timestamp.type": "CreateTime"}), Verdict.WARNING),
        ("a.b", topic("a.b", settings={"max.message.bytes": "1000"}), Verdict.WARNING),
        ("a.b", topic("a.b", settings={"message.timestamp.type": "LogAppendTime"}), Verdict.OK),
        ("a.b.g.quarantine", None, Verdict.FAILED),
        ("a.b.g.quarantine", topic("a.b.g.quarantine", partitions=5), Verdict.FAILED),
        ("a.b.g.quarantine", topic("", settings={**KEPT, "retention.ms": "604800000"}), Verdict.FAILED),
        ("a.b.g.quarantine", topic("", settings={**KEPT, "cleanup.policy": "compact"}), Verdict.FAILED),
        ("a.b.g.quarantine", topic("", settings=KEPT), Verdict.OK),
        ("a.b.g.retry.0s", topic("", settings=None), Verdict.OK),
    ],
)
def test_topics_are_judged(name: str, found: Topic | None, verdict: Verdict) -> None:
    groups = [("g", "a.b", 6)]
    there = {each: topic(each) for each in topics_of(["a.b"], groups)}
    there = {each: value for each, value in {**there, name: found}.items() if value is not None}
    assert verdicts(judge_topics(["a.b"], groups, there))[f"topic {name}"] is verdict


@pytest.mark.case("T-16")
def test_a_tier_that_would_lose_what_waits_is_found_whatever_its_delay() -> None:
    """Fails when the doctor looks at the tier of no delay alone."""
    groups = [("g", "a.b", 4)]
    names = topics_of([], groups, ["a.b.g.retry.5s", "a.b.h.retry.5s", "a.b.g.retry.soon"])
    assert names == {"a.b", "a.b.g.retry.0s", "a.b.g.retry.5s", "a.b.g.quarantine"}
    short = topic("a.b.g.retry.5s", settings={**KEPT, "retention.ms": "604800000"})
    there = {**{each: topic(each) for each in names}, "a.b.g.retry.5s": short}
    assert verdicts(judge_topics([], groups, there))["topic a.b.g.retry.5s"] is Verdict.FAILED


def test_no_known_topic_is_said_so() -> None:
    assert verdicts(judge_topics([], [], {})) == {"topics": Verdict.SKIPPED}


@pytest.mark.parametrize(
    ("environ", "verdict", "text"),
    [
        ({}, Verdict.OK, "no setting"),
        ({"PACKHORSE_BILLING_BATCH": "7"}, Verdict.OK, "no setting"),
        ({"PACKHORSE_BILLING_BATCH": "x"}, Verdict.FAILED, "PACKHORSE_BILLING_BATCH"),
        (
            {"PACKHORSE_CACHE_DIR": "/c", "PACKHORSE_DEV_DIR": "/d", "PACKHORSE_APP": "a:b"},
            Verdict.OK,
            "no setting",
        ),
        ({"PACKHORSE_BILING_BATCH": "7"}, Verdict.WARNING, "no part reads it"),
        ({"PACKHORSE_BILLING_BACH": "7"}, Verdict.FAILED, "did you mean PACKHORSE_BILLING_BATCH?"),
        (
            {"PACKHORSE_DATABASE_URL": "postgresql://h/d", "PACKHORSE_DATABASE_URL_FILE": "/dev/null"},
            Verdict.FAILED,
            "both",
        ),
        ({"PACKHORSE_DATABASE_SCHEMA": "Upper", "OTHER": "x"}, Verdict.FAILED, "Upper"),
    ],
)
def test_settings_are_judged(environ: dict[str, str], verdict: Verdict, text: str, tmp_path: Path) -> None:
    file = tmp_path / "packhorse.toml"
    file.write_text("")
    found = list(judge_settings([BillingSettings], environ, file=file))
    assert [finding.verdict for finding in found] == [verdict]
    assert text in found[0].found


def test_what_a_part_checks_further_counts_too() -> None:
    def refuse(settings: Any) -> None:
        raise SettingsError(f"kafka_properties sets acks; batch is {settings.batch}")

    found = list(judge_settings([BillingSettings], {}, further={BillingSettings: refuse}))
    assert [(finding.verdict, finding.found) for finding in found] == [
        (Verdict.FAILED, "kafka_properties sets acks; batch is 5")
    ]


def test_an_applications_plan_is_judged() -> None:
    assert verdicts(judge_plan("a:b", 3, [])) == {"application": Verdict.OK}
    (found,) = judge_plan("a:b", 3, ["create x"])
    assert (found.verdict, found.next_step) == (Verdict.FAILED, "packhorse topics apply a:b")


def test_one_check_that_fails_or_hangs_hides_none_of_the_others() -> None:
    gate = threading.Event()

    def breaks() -> list[Finding]:
        raise BrokerUnavailable("broker x: refused")

    def is_a_bug() -> list[Finding]:
        raise ZeroDivisionError

    def hangs() -> list[Finding]:
        gate.wait(30)
        return []

    made = [
        Check(name=name, run=run, cause="c", next_step="n")
        for name, run in {
            "breaks": breaks,
            "hangs": hangs,
            "bug": is_a_bug,
            "fine": lambda: [ok("fine", "yes"), skipped("more", "no")],
        }.items()
    ]
    found = run_checks(made, seconds=0.3)
    gate.set()
    assert [(finding.check, finding.verdict.value) for finding in found] == [
        ("breaks", "failed"),
        ("hangs", "failed"),
        ("bug", "failed"),
        ("fine", "ok"),
        ("more", "skipped"),
    ]
    assert "within 0.3 s" in found[1].found
    assert not all_well(found)
    assert all_well([ok("a", "b"), warning("a", "b", cause="c", next_step="n")])


def test_a_long_lag_is_told_in_a_fitting_unit() -> None:
    late = relay(owned=False, waiting=True, lease_age=timedelta(days=3), oldest=timedelta(hours=5))
    found = next(iter(judge_relay(late)))
    assert "since 3 d" in found.found
    assert "5 h" in found.found
