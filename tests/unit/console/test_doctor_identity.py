"""What the doctor says of the server that the relay's position was saved on."""

from dataclasses import replace

import pytest

from packhorse.console.doctor.findings import Verdict
from packhorse.console.doctor.judge_identity import TOLD_FOR, judge_identity
from packhorse.relay.identity.facts import Facts
from packhorse.relay.identity.judge import judge

HERE, BEFORE, OTHER = "7/00000002", "7/00000001", "8/00000001"
FACTS = Facts(
    shard=0, saved=HERE, here=HERE, horizon="9:9:", counter=9, reached=True, epoch=1, published=4, saved_at=None
)  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "horizon", "server"),
    [
        (FACTS, Verdict.OK, Verdict.OK),
        (replace(FACTS, before=BEFORE, moved_age=60.0), Verdict.OK, Verdict.WARNING),
        (replace(FACTS, before=BEFORE, moved_age=TOLD_FOR + 1), Verdict.OK, Verdict.OK),
        (replace(FACTS, before=OTHER, moved_age=60.0), Verdict.OK, Verdict.OK),
        (replace(FACTS, saved=OTHER, reached=False), Verdict.FAILED, Verdict.OK),
    ],
)
def test_a_move_of_the_database_is_judged(facts: Facts, horizon: Verdict, server: Verdict) -> None:
    found = {finding.check: finding for finding in judge_identity(facts, judge(facts, None))}
    assert (found["horizon"].verdict, found["server"].verdict) == (horizon, server)
    told = " ".join(str(finding) for finding in found.values())
    assert (horizon is Verdict.OK and server is Verdict.OK) or "docs/runbooks/database-restored.md" in told
