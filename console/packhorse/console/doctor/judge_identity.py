"""Judge whether the relay's position means on this server what it meant where it was saved. Pure: no I/O, no clock."""

from collections.abc import Iterator

from packhorse.console.doctor.findings import Finding, failed, ok, warning
from packhorse.relay.identity.facts import Facts
from packhorse.relay.identity.judge import Verdict, standing

TOLD_FOR = 7 * 24 * 3600.0
"""Seconds for which a failover or restore is a warning; people should have looked by then."""
RUNBOOK = "docs/runbooks/database-restored.md"


def judge_identity(facts: Facts, verdict: Verdict) -> Iterator[Finding]:
    """Yield whether the horizon can be trusted, and whether the server changed lately."""
    if verdict.refusal is not None:
        yield failed(
            "horizon",
            verdict.refusal,
            cause="the outbox came from another server: a dump that was loaded here, a logical copy",
            next_step=f"stop every relay, then packhorse relay adopt --dry-run; see {RUNBOOK}",
        )
    else:
        yield ok("horizon", "transaction ids mean what they meant when it was saved")
    if facts.moved_age is None or facts.moved_age > TOLD_FOR or not facts.moved_within_system:
        yield ok("server", standing(facts))
    else:
        yield warning(
            "server",
            standing(facts),
            cause="a standby took over or the database was restored: what was published since may be gone from it",
            next_step=f"packhorse relay verify; see {RUNBOOK}",
        )
