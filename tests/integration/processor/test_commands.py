"""`packhorse topics`, `offsets` and `processor`, as a person types them."""

from pathlib import Path

import psycopg
import pytest
from tests.support.cli import packhorse
from tests.support.processing import GROUP, Ground, noting
from tests.support.wait import eventually

from packhorse.console.acting.person import hash_of

MODULE = """
from tests.support.processing import noting
app = noting({namespace!r})
nothing = 1
"""


@pytest.fixture
def figures(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Provide a module with a processor, in the working directory."""
    name = f"figures_{ground.namespace}"
    (tmp_path / f"{name}.py").write_text(MODULE.format(namespace=ground.namespace))
    monkeypatch.syspath_prepend(str(tmp_path))
    return f"{name}:app"


def test_topics_are_planned_then_made_then_as_they_must_be(ground: Ground, figures: str) -> None:
    planned = packhorse(
        "topics", "plan", figures, "--partitions", "2", "--replication", "1", **ground.environ
    )
    assert planned.code == 1
    own = ("retry.0s", "retry.100ms", "quarantine")
    names = [ground.topic, *(f"{ground.topic}.{GROUP}.{name}" for name in own)]
    assert [line.split(":")[0] for line in planned.out.splitlines()] == [f"create {name}" for name in names]
    made = packhorse(
        "topics", "apply", figures, "--partitions", "2", "--replication", "1", "--json", **ground.environ
    )
    assert made.code == 0
    assert made.json()["done"]
    again = packhorse("topics", "plan", figures, **ground.environ)
    assert (again.code, again.out) == (0, "4 topics are as they must be\n")
    refused = packhorse("topics", "apply", figures, "--partitions", "4", **ground.environ)
    assert refused.code == 1
    assert "partitions are never added in place" in refused.out


@pytest.mark.parametrize(
    ("target", "about"),
    [
        ("figures", "names no processor; write module:app"),
        ("no_such_module:app", "can't be imported"),
        ("{module}:nothing", "is int; a Processor is needed; processors there: app"),
        ("{module}:other", "does not exist; a Processor is needed"),
    ],
)
def test_a_wrong_target_is_named(ground: Ground, figures: str, target: str, about: str) -> None:
    given = target.format(module=figures.partition(":")[0])
    for command in (("processor", "run"), ("topics", "plan")):
        ran = packhorse(*command, given, **ground.environ)
        assert ran.code == 2
        assert about in ran.err
        assert "Traceback" not in ran.err


def test_offsets_are_shown_and_a_stopped_groups_reset_is_on_the_record(ground: Ground, figures: str) -> None:
    app = noting(ground.namespace)
    ground.make_topics(app)
    for n in range(3):
        ground.send(n)
    place = ("--group", GROUP, "--topic", ground.topic)
    reset = ("offsets", "reset", *place, "--to", "earliest", "--why", "test", "--yes")
    with ground.processing(app):
        ground.until_results(0, 1, 2)
        busy = packhorse(*reset, **ground.environ)
        assert busy.code == 5
        assert "stop its processors" in busy.err
        status = packhorse("processor", "status", "--group", GROUP, "--json", **ground.environ).json()
        assert status["members"] == 1
    eventually(
        lambda: (
            packhorse("offsets", "show", *place, "--json", **ground.environ).json()["partitions"]
            == [{"partition": 0, "watermark": 3, "committed": 3, "first": 0, "next": 3, "lag": 0}]
        ),
        what="the offsets are shown",
    )
    done = packhorse(*reset, **ground.environ)
    assert done.code == 0, done.err
    assert "watermark 3, committed 3 → 0" in done.out
    audit = ground.rows("SELECT act, group_id, topic, why, detail->'partitions' FROM packhorse.audit")
    told = [{"partition": 0, "watermark": 3, "committed": 3, "to": 0}]
    assert audit == [("offsets-reset", GROUP, ground.topic, "test", told)]
    with ground.processing(app):
        eventually(lambda: ground.committed() == 3, what="all is read again")
    assert ground.results() == [0, 1, 2]
    assert {row[0] for row in ground.rows("SELECT deliveries FROM packhorse.inbox")} == {2}


def test_a_reset_to_a_time_says_what_it_skips_and_only_an_admin_may(ground: Ground, figures: str) -> None:
    """Fails when undone messages are passed over without a word, or an operator's token moves a watermark."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    for n in range(3):
        ground.send(n)
    with ground.processing(app):
        eventually(lambda: ground.watermark() == 3, what="all is done")
    for n in range(3, 5):
        ground.send(n)
    reset = ("offsets", "reset", "--group", GROUP, "--topic", ground.topic, "--why", "test")
    token = "phk_of-an-operator"
    with psycopg.connect(ground.database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO packhorse.operator (kind, name, role, token_hash, made_by) VALUES ('token', 'op', 'operator', %s, 'test')",
            (hash_of(token),),
        )
    operator = {**ground.environ, "PACKHORSE_CONSOLE_TOKEN": token}
    ran = packhorse(*reset, "--to", "2020-01-01T00:00Z", "--yes", **operator)
    assert (ran.code, "may not reset offsets" in ran.err) == (8, True), ran.err
    assert (ground.watermark(), ground.committed()) == (3, 3)
    forwards = packhorse(*reset, "--to", "2100-01-01T00:00Z", "--yes", "--json", **ground.environ).json()
    told = {"partition": 0, "watermark": 3, "committed": 3, "to": 5, "skips": 2, "repeats": 0}
    assert forwards["partitions"] == [told]
    backwards = packhorse(*reset, "--to", "2020-01-01T00:00Z", "--yes", **ground.environ)
    assert "→ 0; 5 offsets are delivered again" in backwards.out
    assert packhorse(*reset, "--to", "tomorrow", "--yes", **ground.environ).code == 2
    assert packhorse(*reset, "--to", "latest", "--json", **ground.environ).code == 2


def test_a_group_that_nobody_knows_is_named(ground: Ground) -> None:
    ran = packhorse("processor", "status", "--group", "nobody-knows", **ground.environ)
    assert ran.code == 2
    assert "known neither to this database nor to the broker" in ran.err


def test_copies_and_redrives_that_nobody_sent_are_sent_by_the_watchdog(ground: Ground) -> None:
    app = noting(ground.namespace)
    ground.make_topics(app)
    junk = ground.send(payload=b"junk")
    with ground.processing(app):
        ground.until_outcome(junk, "quarantine")
        ground.stood(f"{ground.topic}.{GROUP}.quarantine", 1)
        ground.rows(
            "UPDATE packhorse.quarantined_message SET copy_offset = NULL, "
            "quarantined_at = now() - interval '1 hour' RETURNING 1"
        )
        eventually(
            lambda: ground.rows("SELECT copy_offset FROM packhorse.quarantined_message") == [(1,)],
            what="the copy was sent again",
        )
