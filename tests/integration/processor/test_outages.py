"""What is underneath goes away and comes back: the processor waits and goes on by itself, and charges nobody."""

from typing import Any

import psycopg
import pytest
from tests.support.bad_registry import Behaviour, answer, bad_registry, hang_up, say_nothing
from tests.support.processing import GROUP, Ground, note, noting
from tests.support.stack import PrivateBroker, PrivateDatabase
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints
from packhorse.processor import Context, Processor, Retry


def uncharged(ground: Ground) -> None:
    """Nothing was counted against a message, nothing is in quarantine."""
    assert ground.rows("SELECT * FROM packhorse.failed_attempt") == []
    assert ground.rows("SELECT * FROM packhorse.quarantined_message") == []
    assert {row[0] for row in ground.rows("SELECT attempt FROM packhorse.inbox")} <= {1}


def away(running: Any) -> bool:
    """Return whether a partition says that something is away."""
    return any(state.phase.value == "away" for state in running.composed.loop.states.values())


@pytest.mark.case("P-26")
def test_a_database_that_goes_away_is_waited_for(
    stack: Endpoints, private_database: PrivateDatabase, topic_prefix: str
) -> None:
    """Killed and cut off, while messages arrive. Fails when a lost connection counts as the handler's failure."""
    direct = Ground(stack, private_database.direct_url, topic_prefix)
    app = noting(topic_prefix)
    direct.make_topics(app)
    through = Ground(stack, private_database.url, topic_prefix)
    direct.send(0)
    with through.processing(app) as running:
        direct.until_results(0)
        private_database.kill()
        for n in (1, 2):
            direct.send(n)
        eventually(lambda: away(running), what="the outage is noticed")
        private_database.start()
        direct.until_results(0, 1, 2, timeout=40)
        private_database.proxy.cut()
        direct.send(3)
        eventually(lambda: away(running), what="the cut is noticed")
        private_database.proxy.resume()
        direct.until_results(0, 1, 2, 3, timeout=40)
    uncharged(direct)


@pytest.mark.case("P-26")
@pytest.mark.case("P-09")
def test_a_broker_that_goes_away_is_waited_for(
    stack: Endpoints,
    database: str,
    private_kafka: PrivateBroker,
    topic_prefix: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A quarantine copy, an offset commit and the fetch meet the outage; all is made good when the broker is back."""
    ground = Ground(stack, database, topic_prefix, kafka=private_kafka.bootstrap)
    direct = Ground(stack, database, topic_prefix, kafka=private_kafka.direct_bootstrap)
    app = noting(topic_prefix)
    direct.make_topics(app)
    direct.send(0)
    with ground.processing(app, kafka_properties={"reconnect.backoff.max.ms": 500}):
        direct.until_results(0)
        eventually(lambda: direct.committed() == 1, what="the offset follows")
        private_kafka.proxy.cut()
        junk = direct.send(payload=b"junk", key=b"another")
        direct.send(2)
        eventually(lambda: "trouble with the broker" in caplog.text, what="the outage is noticed", timeout=30)
        assert direct.results() == [0]
        private_kafka.proxy.resume()
        direct.until_results(0, 2, timeout=60)
        eventually(lambda: direct.committed() == 3, what="the offset follows again", timeout=40)
    assert direct.outcome(junk)[:2] == ("quarantine", 0)  # type: ignore[index]
    assert direct.rows("SELECT copy_offset IS NOT NULL FROM packhorse.quarantined_message") == [(True,)]


@pytest.mark.case("S-09")
@pytest.mark.parametrize(
    "behaviour",
    [answer("503 Service Unavailable"), say_nothing, hang_up],
    ids=["503", "silent", "hangs up"],
)
def test_a_registry_that_is_away_pauses_and_charges_nobody(ground: Ground, behaviour: Behaviour) -> None:
    """Fails when a RegistryUnavailable is taken for undecodable."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    ground.send(0)
    with bad_registry(behaviour) as registry:
        with ground.processing(app, registry_url=registry.url, registry_timeout=0.3) as running:
            eventually(lambda: away(running), what="the outage is noticed")
            assert ground.results() == []
        assert ground.rows("SELECT * FROM packhorse.inbox") == []
    with ground.processing(app):
        ground.until_results(0)
    uncharged(ground)


def test_a_message_that_ends_its_connection_again_and_again_is_charged_alone(ground: Ground) -> None:
    """The database is well each time, so after a few uncharged runs it is the message's fault; its neighbours are done."""
    app = Processor(GROUP)

    @app.handler(ground.message, retry=Retry(attempts=2, delays=["50ms"]))
    def handle(message: Any, ctx: Context) -> None:
        note(message, ctx)
        if message.what == "cuts":
            ctx.connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    ground.make_topics(app)
    ground.send(0)
    bad = ground.send(1, "cuts")
    ground.send(2, key=b"another")
    with ground.processing(app):
        ground.until_results(0, 2, timeout=40, any_order=True)
        ground.until_outcome(bad, "quarantine", timeout=40)
    assert ground.outcome(bad)[:2] == ("quarantine", 2)  # type: ignore[index]
    assert ground.rows("SELECT DISTINCT message_id, reason FROM packhorse.failed_attempt") == [
        (bad, "connection-lost")
    ]


def test_deadlocks_and_serialization_failures_run_again_uncharged(ground: Ground) -> None:
    """Five times alone, then charged."""
    losing = [4, 100]
    app = Processor(GROUP)

    @app.handler(ground.message, retry=Retry(attempts=1))
    def handle(message: Any, ctx: Context) -> None:
        note(message, ctx)
        if message.n in {1, 2} and losing[message.n - 1] > 0:
            losing[message.n - 1] -= 1
            raise psycopg.errors.DeadlockDetected

    ground.make_topics(app)
    sent = [ground.send(n, key=b"another" if n == 3 else b"k") for n in range(4)]
    with ground.processing(app):
        ground.until_results(0, 1, 3, timeout=40, any_order=True)
        ground.until_outcome(sent[2], "quarantine", timeout=40)
    assert ground.outcome(sent[1]) == ("done", 1, None, 1)
    assert ground.rows("SELECT message_id, reason FROM packhorse.failed_attempt") == [(sent[2], "contention")]


def test_a_handler_that_ends_its_transaction_is_found_out_and_refused_by_name(ground: Ground) -> None:
    app = Processor(GROUP)

    @app.handler(ground.message, retry=Retry(attempts=1))
    def handle(message: Any, ctx: Context) -> None:
        note(message, ctx)
        match message.what:
            case "commits":
                ctx.connection.commit()
            case "executes":
                ctx.connection.execute("/* now */ COMMIT")
            case "breaks out":
                ctx.connection.pgconn.exec_(b"COMMIT")
            case "breaks out and hides it":
                ctx.connection.pgconn.exec_(b"ROLLBACK")
            case "swallows":
                try:
                    ctx.connection.execute("SELECT 1/0")
                except psycopg.Error:
                    return
            case "saves":
                with ctx.connection.transaction():
                    ctx.connection.execute("SELECT 1")

    ground.make_topics(app)
    deeds = ["", "commits", "executes", "breaks out", "breaks out and hides it", "swallows", "saves"]
    sent = [ground.send(n, deed, key=b"%d" % n) for n, deed in enumerate(deeds)]
    with ground.processing(app):
        ground.until_outcome(sent[-1], "done")
        eventually(lambda: ground.watermark() == len(deeds), what="all are dealt with")
    outcomes = [ground.outcome(one)[:3] for one in sent]  # type: ignore[index]
    assert outcomes[0] == ("done", 1, None)
    assert outcomes[1] == outcomes[2] == outcomes[5] == ("quarantine", 1, "attempts-exhausted")
    assert outcomes[3] == outcomes[4] == ("quarantine", 1, "broken-transaction")
    assert outcomes[6] == ("done", 1, None)
    assert sorted(ground.results()) == [0, 3, 6]
    errors = [
        row[0] for row in ground.rows('SELECT error FROM packhorse.quarantined_message ORDER BY "offset"')
    ]
    assert "commit() is refused" in errors[0]
    assert "COMMIT is refused" in errors[1]
    assert "SwallowedError" in errors[4]


def test_what_is_no_ordinary_error_stops_the_process_and_commits_nothing(ground: Ground) -> None:
    app = Processor(GROUP)

    @app.handler(ground.message)
    def handle(message: Any, ctx: Context) -> None:
        note(message, ctx)
        if message.what == "exits":
            raise SystemExit(3)
        if message.what == "recurses":
            raise RecursionError

    ground.make_topics(app)
    sent = ground.send(0, "exits")
    with ground.processing(app) as running:
        running.taken = True
        eventually(lambda: running.error is not None, what="the processor stops")
    assert "SystemExit" in str(running.error)
    assert ground.outcome(sent) is None
    assert ground.watermark() == 0
