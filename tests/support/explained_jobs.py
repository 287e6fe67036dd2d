"""Standings of jobs, from facts, for tests/support/explained.py."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.support.console_facts import ID, NOON, act, facts, inbox_row, job, outbox_row, quarantined

from packhorse.console.facts import Facts, Outcome, State
from packhorse.console.truth.around import Around, Crew, Fate, Retry
from packhorse.console.truth.jobs import Effect, JobFacts
from packhorse.console.truth.status import NOT_ASKED, Search

GROUP, TOPIC = "reports", "reports.requests"
PAIR: dict[str, Any] = {"group": GROUP, "topic": TOPIC}
NOW = NOON + timedelta(hours=1)
MINUTE = timedelta(minutes=1)
OTHER = UUID("019b76da-a800-7000-8000-000000000001")
WORKING = Crew(group=GROUP, alive=2, seen_at=NOW)
GONE = Crew(group=GROUP, alive=0, seen_at=NOW - 10 * MINUTE)


def effect(key: str = "charge", **given: Any) -> Effect:
    """Return an effect in doubt."""
    values: dict[str, Any] = {
        "key": key,
        "idempotency_key": f"{ID}:{key}",
        "state": "uncertain",
        "attempt": 1,
        "calls": 1,
        "intended_at": NOON,
        "timeout": 30.0,
        "changed_at": NOON,
        "changed_by": "worker",
        "why": None,
        "answer_bytes": None,
    }
    return Effect(**{**values, **given})


def of_job(known: dict[str, Any] | None = None, *, crew: Crew = WORKING, **given: Any) -> Facts:
    """Return facts of a job whose row is as *given*; *known* is what is known besides of the job or its message."""
    besides, whole = dict(known or {}), {}
    for name in ("effects", "due_at", "runs_instead", "contact", "declared_by", "step_count", "message_lost"):
        if name in besides:
            whole[name] = besides.pop(name)
    around = Around(now=NOW, rows=1, topics=(TOPIC,), crews=(crew,), **besides.pop("around", {}))
    values = {"recorded": outbox_row(published=True, type="reports.ReportRequest"), "around": around}
    return facts(**{**values, "job": JobFacts(job=job(**given), **whole), **besides})


def stopped(reason: str, **known: Any) -> dict[str, Any]:
    """Return what is known of a message in quarantine with *reason*."""
    row = inbox_row(**PAIR, outcome=Outcome.QUARANTINE, reason=reason)
    held = quarantined(**PAIR, key=None, attempts=1, reason=reason)
    return {"inbox": (row,), "quarantined": (held,), **known}


_RUNNING: dict[str, Any] = {
    "state": "running",
    "attempt": 1,
    "started_at": NOON,
    "worker": OTHER,
    "lease_until": NOW + timedelta(seconds=29),
}
_RETRY = inbox_row(**PAIR, outcome=Outcome.RETRY, attempt=2, due_at=NOW + 4 * MINUTE, reason="failed")
JOBS: Mapping[str, tuple[Facts, Search]] = {
    name: (known, NOT_ASKED)
    for name, known in {
        "job: waits for its time": of_job(
            {"due_at": NOW + 60 * MINUTE, "recorded": None}, not_before=NOW + 60 * MINUTE
        ),
        "job: its time has come, nobody works": of_job(
            {"due_at": NOW - MINUTE, "recorded": None}, crew=GONE, not_before=NOW - MINUTE
        ),
        "job: accepted, not published yet": of_job(
            {"recorded": outbox_row(type="reports.ReportRequest")}, expires_at=NOW + 5 * MINUTE
        ),
        "job: accepted, no processor has ever run": of_job(group=None),
        "job: accepted, nobody works": of_job(crew=GONE),
        "job: accepted, workers are busy": of_job({"declared_by": GROUP}, group=None),
        "job: accepted, another of its name runs": of_job({"runs_instead": OTHER}, one_running="nightly"),
        "job: accepted, its message is lost": of_job({"message_lost": True, "recorded": None}),
        "job: running": of_job(
            {"step_count": 2},
            **_RUNNING,
            progress_done=3,
            progress_total=10,
            progress_text="pages",
            progress_at=NOW - MINUTE,
        ),
        "job: running, a call has begun, asked to stop": of_job(
            {"effects": (effect(state="intended"),)},
            **_RUNNING,
            cancel_asked_at=NOW - MINUTE,
            cancel_asked_by="ann (role ops)",
            cancel_why="not needed",
        ),
        "job: running, its lease is over": of_job(crew=GONE, **(_RUNNING | {"lease_until": NOW - MINUTE})),
        "job: retrying": of_job(
            {
                "inbox": (_RETRY,),
                "around": {"retries": (Retry(**PAIR, attempt=2, tier="5m", due_at=NOW + 4 * MINUTE),)},
            },
            state="retrying",
            attempt=1,
            reason="failed",
            error="ValueError at reports.py:12",
        ),
        "job: redriven": of_job(
            {
                "inbox": (_RETRY,),
                "quarantined": (quarantined(**PAIR, key=None, state=State.REDRIVEN, redrives=1),),
                "acts": (act(**PAIR, at=NOW - MINUTE, detail={"attempt": 2}),),
            },
            state="retrying",
            attempt=1,
            reason="redriven",
            changed_by="ann (role ops)",
        ),
        "job: quarantined": of_job(
            stopped("attempts-exhausted", contact="reports-oncall"),
            state="quarantined",
            attempt=5,
            reason="attempts-exhausted",
            error="ValueError at reports.py:12",
        ),
        "job: uncertain": of_job(
            stopped("uncertain", effects=(effect(),)), state="uncertain", attempt=1, reason="uncertain"
        ),
        "job: uncertain, many effects": of_job(
            stopped("uncertain", effects=tuple(effect(f"mail-{n}") for n in range(7))),
            state="uncertain",
            attempt=1,
            reason="uncertain",
        ),
        "job: succeeded": of_job(
            {"inbox": (inbox_row(**PAIR),)}, state="succeeded", attempt=1, finished_at=NOON, result_bytes=17
        ),
        "job: succeeded, its result erased": of_job(
            {"inbox": (inbox_row(**PAIR),)}, state="succeeded", finished_at=NOON, purged_at=NOW
        ),
        "job: cancelled": of_job(
            state="cancelled",
            finished_at=NOON,
            cancel_asked_at=NOON,
            cancel_asked_by="ann (role ops)",
            cancel_why="not needed",
        ),
        "job: expired": of_job(state="expired", finished_at=NOON, expires_at=NOON),
        "job: discarded, an effect in doubt": of_job(
            {
                "inbox": (inbox_row(**PAIR, outcome=Outcome.DISCARDED),),
                "quarantined": (quarantined(**PAIR, key=None, state=State.DISCARDED),),
                "acts": (act(**PAIR, act="discard", why="a test"),),
                "effects": (effect(),),
                "around": {"fates": (Fate(**PAIR, discarded_at=NOON),)},
            },
            state="discarded",
            finished_at=NOON,
        ),
    }.items()
}
