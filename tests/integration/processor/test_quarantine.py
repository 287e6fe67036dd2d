"""What can't be handled: quarantined at once, byte for byte, and redriven; the next message is served."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.processing import GROUP, Ground, headers_of, names_of, note, noting
from tests.support.wait import eventually

from packhorse.console.compose import service_of
from packhorse.console.quarantine.shell import Request, discard_one, run_redrive
from packhorse.console.settings import ConsoleSettings
from packhorse.processor import Context, Processor, Quarantine, Retry

COPIED = [
    "attempt",
    "first-failed-at",
    "reason",
    "error",
    "source-topic",
    "source-topic-id",
    "source-partition",
]


def quarantine(ground: Ground) -> str:
    return f"{ground.topic}.{GROUP}.quarantine"


@pytest.mark.case("S-05")
@pytest.mark.parametrize(
    ("payload", "about"),
    [
        (b"", "0 bytes"),
        (b"\x00\x00", "2 bytes"),
        (b"{not Avro}", "0x7b"),
        ("cut", "no Avro"),
    ],
)
def test_junk_is_quarantined_at_once_and_the_next_message_is_served(
    ground: Ground, payload: bytes | str, about: str
) -> None:
    """Fails when an undecodable message is retried."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    cut = ground.payload(7, "text")[:-2]
    junk = ground.send(payload=cut if payload == "cut" else payload)
    ground.send(1, key=b"another")
    with ground.processing(app):
        ground.until_results(1)
    assert ground.until_outcome(junk, "quarantine") == ("quarantine", 0, "undecodable", 1)
    assert about in ground.rows("SELECT error FROM packhorse.quarantined_message")[0][0]
    assert ground.rows("SELECT * FROM packhorse.failed_attempt") == []


@pytest.mark.case("S-06")
@pytest.mark.case("T-09")
def test_a_copy_is_the_message_byte_for_byte_with_where_it_came_from(ground: Ground) -> None:
    """Fails when key, payload or a header is encoded again, left out or put in another place."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    odd: dict[str, bytes | None] = {"type": b"tests.Noted", "x": None, "attempt": b"theirs", "y": b"\x00\xff"}
    sent = ground.send(payload=b"\x01junk\xff\x00", key=b"\xff\x00k", headers=odd)
    with ground.processing(app):
        ground.until_outcome(sent, "quarantine")
        (copy,) = ground.stood(quarantine(ground), 1)
    (first,) = ground.stood(ground.topic, 1)
    assert (copy.key, copy.value, copy.partition) == (first.key, first.value, 0)
    assert copy.headers[: len(first.headers)] == first.headers
    added = copy.headers[len(first.headers) :]
    assert [name for name, _ in added] == [*COPIED, "source-offset", "group"]
    told = dict(added)
    assert told["attempt"] == b"0"
    assert told["reason"] == b"undecodable"
    assert told["source-topic"] == ground.topic.encode()
    assert (told["source-partition"], told["source-offset"]) == (b"0", b"0")
    assert told["group"] == GROUP.encode()
    place = ground.rows("SELECT copy_partition, copy_offset FROM packhorse.quarantined_message")
    assert place == [(0, 0)]


@pytest.mark.case("S-06")
def test_a_redriven_message_comes_back_as_it_was_and_can_succeed(ground: Ground) -> None:
    """Fails when the carrier keeps a copy's headers, or a redrive orders nothing."""
    broken = [True]
    app = Processor(GROUP)

    @app.handler(ground.message, retry=Retry(attempts=1))
    def handle(message: Any, ctx: Context) -> None:
        note(message, ctx)
        if broken[0]:
            raise ValueError

    ground.make_topics(app)
    sent = ground.send(5, headers={"x": b"1"})
    with ground.processing(app):
        ground.until_outcome(sent, "quarantine")
        redrive(ground, sent)
        row = eventually(
            lambda: (found := ground.outcome(sent)) and found[0] == "quarantine" and found[1] == 2 and found,
            what="the redriven attempt failed and is back in quarantine",
        )
        assert row == ("quarantine", 2, "attempts-exhausted", 2)
        broken[0] = False
        redrive(ground, sent)
        ground.until_outcome(sent, "done")
        carriers = ground.stood(f"{ground.topic}.{GROUP}.retry.0s", 2)
        copies = ground.stood(quarantine(ground), 2)
    assert ground.results() == [5]
    (first,) = ground.stood(ground.topic, 1)
    for one in (*carriers, *copies):
        assert (one.key, one.value) == (first.key, first.value)
        assert one.headers[: len(first.headers)] == first.headers
        assert len(names_of(one)) == len(set(names_of(one)))
    assert [headers_of(one)["attempt"] for one in carriers] == [b"2", b"3"]


def redrive(ground: Ground, sent: Any) -> None:
    """Do what `packhorse quarantine redrive` does."""
    assert run_redrive(_request(sent), _console(ground)) == 0


def discard(ground: Ground, sent: Any) -> None:
    """Do what `packhorse quarantine discard` does."""
    with service_of(_console(ground)) as service:
        discard_one(service, sent, (GROUP, None), why="a test", asks=False, told=False)


def _request(sent: Any) -> Request:
    return Request(
        message_id=sent,
        why="a test",
        group=GROUP,
        topic=None,
        yes=True,
        wait=0,
        claimed=None,
        as_json=True,
    )


def _console(ground: Ground) -> ConsoleSettings:
    return ConsoleSettings.load({}, environ=ground.environ)


@pytest.mark.case("T-02")
@pytest.mark.case("T-03")
@pytest.mark.parametrize("act", [redrive, discard])
def test_what_waits_behind_a_quarantined_head_goes_on_in_order_when_a_person_has_acted(
    ground: Ground, act: Callable[[Ground, Any], None]
) -> None:
    """Fails when the key is not woken, or what waited is overtaken by what comes just then."""
    broken = [True]
    app = Processor(GROUP)

    @app.handler(ground.message)
    def handle(message: Any, ctx: Context) -> None:
        if message.n == 0 and broken[0]:
            raise Quarantine("not-now")
        note(message, ctx)

    ground.make_topics(app)
    head = ground.send(0)
    behind = [ground.send(n) for n in (1, 2, 3)]
    with ground.processing(app):
        for one in behind:
            ground.until_outcome(one, "parked")
        assert ground.results() == []
        broken[0] = False
        act(ground, head)
        ground.send(4)
        first = [0] if act is redrive else []
        ground.until_results(*first, 1, 2, 3, 4)
        eventually(lambda: not ground.rows("SELECT FROM packhorse.parked_key"), what="the key is let go")
    assert ground.outcome(head)[0] == ("done" if act is redrive else "discarded")  # type: ignore[index]
    assert ground.rows("SELECT FROM packhorse.parked_message") == []


@pytest.mark.case("T-03")
def test_a_redrive_parks_its_key_first_where_later_messages_had_gone_on(ground: Ground) -> None:
    """Fails when what comes during the redrive takes effect before it."""
    broken = [True]
    app = Processor(GROUP)

    @app.handler(ground.message, after_quarantine="continue")
    def handle(message: Any, ctx: Context) -> None:
        if message.n == 0 and broken[0]:
            raise Quarantine("not-now")
        note(message, ctx)

    ground.make_topics(app)
    head = ground.send(0)
    ground.send(1)
    with ground.processing(app):
        ground.until_results(1)
        ground.until_outcome(head, "quarantine")
    redrive(ground, head)
    broken[0] = False
    ground.send(2)
    with ground.processing(app):
        ground.until_results(1, 0, 2)


def test_an_id_that_is_used_for_two_payloads_loses_neither(ground: Ground) -> None:
    """The second is quarantined under an id by its place. Fails when it is taken for a duplicate of the first."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    used = ground.send(1)
    ground.send(2, key=b"another", message_id=used)
    with ground.processing(app):
        row = eventually(
            lambda: ground.rows("SELECT message_id, reason, payload FROM packhorse.quarantined_message"),
            what="the second is in quarantine",
        )
    assert ground.results() == [1]
    assert ground.outcome(used) is not None
    assert row[0][0] != used
    assert row[0][1:] == ("id-reused", ground.payload(2))


@pytest.mark.case("S-07")
def test_an_unknown_type_is_quarantined_with_its_name(ground: Ground) -> None:
    """Fails when a type without handler is dropped."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    unknown = ground.send(headers={"type": b"tests.Other"})
    nameless = ground.send(headers={"type": b"-"}, key=b"third")
    ground.send(1, key=b"another")
    with ground.processing(app):
        ground.until_results(1)
    assert ground.outcome(unknown) == ("quarantine", 0, "unknown-type", 1)
    assert ground.outcome(nameless) == ("quarantine", 0, "unknown-type", 1)
    errors = ground.rows('SELECT error FROM packhorse.quarantined_message ORDER BY "offset"')
    assert errors == [("no handler for tests.Other",), ("no handler for (no usable header type)",)]


@pytest.mark.case("S-07")
def test_an_unknown_type_is_skipped_where_the_settings_say_so(ground: Ground) -> None:
    app = noting(ground.namespace)
    ground.make_topics(app)
    unknown = ground.send(headers={"type": b"tests.Other"})
    ground.send(1, key=b"another")
    with ground.processing(app, unknown_types="skip"):
        ground.until_results(1)
    assert ground.outcome(unknown) == ("skipped", 0, "unknown-type", 1)


@pytest.mark.case("S-10")
def test_an_id_that_the_registry_does_not_know_stops_that_message_alone(ground: Ground) -> None:
    app = noting(ground.namespace)
    ground.make_topics(app)
    unknown = ground.send(payload=b"\x00\x7f\xff\xff\xf0rest")
    ground.send(1, key=b"another")
    with ground.processing(app):
        ground.until_results(1)
    assert ground.outcome(unknown) == ("quarantine", 0, "unknown-schema", 1)


@pytest.mark.case("T-12")
def test_a_tombstone_fails_and_passes_quarantine_and_redrive_with_its_key(ground: Ground) -> None:
    """Fails when a null payload becomes empty bytes on its way."""
    app = noting(ground.namespace)
    tries: list[str | None] = []

    @app.tombstone_handler(ground.message, retry=Retry(attempts=1))
    def gone(ctx: Context) -> None:
        tries.append(ctx.key)
        if len(tries) == 1:
            raise ValueError

    ground.make_topics(app)
    sent = ground.send(payload=None, key=b"plane")
    with ground.processing(app):
        ground.until_outcome(sent, "quarantine")
        (copy,) = ground.stood(quarantine(ground), 1)
        redrive(ground, sent)
        ground.until_outcome(sent, "done")
    assert (copy.key, copy.value) == (b"plane", None)
    assert tries == ["plane", "plane"]


def test_a_tombstone_without_a_handler_of_its_own_is_quarantined(ground: Ground) -> None:
    app = noting(ground.namespace)
    ground.make_topics(app)
    sent = ground.send(payload=None)
    with ground.processing(app):
        ground.until_outcome(sent, "quarantine")
    assert ground.outcome(sent) == ("quarantine", 0, "no-tombstone-handler", 1)


@pytest.mark.case("T-17")
def test_a_groups_quarantine_is_its_own(ground: Ground) -> None:
    """Fails when the quarantine topic or the inbox is shared between groups."""
    failing, healthy = noting(ground.namespace), noting(ground.namespace, "healthy")
    ground.make_topics(failing, healthy)
    junk = ground.send(payload=b"junk")
    with ground.processing(failing):
        ground.until_outcome(junk, "quarantine")
        (copy,) = ground.stood(quarantine(ground), 1)
        with ground.processing(healthy):
            ground.until_outcome(junk, "quarantine", group="healthy")
            (other,) = ground.stood(f"{ground.topic}.healthy.quarantine", 1)
    assert headers_of(copy)["group"] == GROUP.encode()
    assert headers_of(other)["group"] == b"healthy"
    assert ground.outcome(junk) == ("quarantine", 0, "undecodable", 1)


def test_a_record_of_a_foreign_producer_gets_an_id_from_where_it_stands(ground: Ground) -> None:
    app = noting(ground.namespace)
    ground.make_topics(app)
    for bad in (b"-", b"not a uuid", b""):
        ground.send(1, headers={"id": bad, "traceparent": b"\xff", "headers": b"{", "expires-at": b"\xff"})
    with ground.processing(app):
        ground.until_results(1, 1, 1)
        first = {row[0] for row in ground.rows("SELECT message_id FROM packhorse.inbox")}
    assert {one.version for one in first} == {8}
    assert len(first) == 3
    ground.rows('UPDATE packhorse.watermark SET "offset" = 0 RETURNING 1')
    with ground.processing(app):
        eventually(lambda: ground.watermark() == 3, what="they are read again")
    assert {row[0] for row in ground.rows("SELECT message_id FROM packhorse.inbox")} == first
    assert ground.results() == [1, 1, 1]
