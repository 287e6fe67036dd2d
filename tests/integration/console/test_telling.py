"""From a handler that fails to a signed webhook: through quarantine, counts, outbox, relay, Kafka and the notices' own group."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.road import Road
from tests.support.wait import eventually

from packhorse.console.telling.app import GROUP, app_for
from packhorse.console.telling.contacts import contacts_of
from packhorse.console.telling.http import WebhookAway, post
from packhorse.local.settings import Endpoints
from packhorse.processor import Context, Processor, Retry
from packhorse.processor.clients import admin_properties
from packhorse.processor.compose import Composed
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.settings import ProcessorSettings
from packhorse.processor.topics.plan import plan, wanted_by

SECRET = b"0123456789abcdef"


class Receiver(ThreadingHTTPServer):
    """A webhook's other end: answers what it is told to, in turn, then 200."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[int] = []
        self.got: list[tuple[dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook?x=1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Receiver)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.got.append((dict(self.headers), body))
        self.send_response(server.answers.pop(0) if server.answers else 200)
        self.send_header("Location", server.url)
        self.end_headers()

    def log_message(self, *given: Any) -> None:
        del given


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def road(tmp_path: Path, database: str, stack: Endpoints, topic_prefix: str) -> Road:
    return Road(tmp_path, database=database, endpoints=stack, prefix=topic_prefix)


def make_topics(road: Road, app: Processor) -> None:
    broker = BrokerQuestions(admin_properties(ProcessorSettings.load({}, environ=road.environ)))
    wanted = wanted_by([app], list(app.topics), partitions=1, replication=1)
    broker.apply(plan(wanted, broker.standing(wanted), default_max_bytes=1_048_588))


@contextmanager
def running(road: Road, app: Processor) -> Iterator[None]:
    environ = road.environ | {"PACKHORSE_PROCESSOR_CONCURRENCY": "1"}
    settings = ProcessorSettings.load({}, environ=environ)
    composed = Composed(app, settings)
    stop = threading.Event()
    thread = threading.Thread(target=composed.run, args=(stop,), name="notices")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(40)


@pytest.mark.case("O-09")
@pytest.mark.timeout(180)
def test_a_contact_is_told_by_a_signed_webhook_of_what_needs_a_person(
    road: Road, receiver: Receiver, tmp_path: Path
) -> None:
    """Fails when the notice is not written, not sent, sent unsigned, given up at a 503, or names a key or a text of an error."""
    again = road.run("schemas", "register", "--avro-dir", road.avro, "--notices", road.prefix)
    assert again.code == 0, again.err
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "contacts.toml").write_text(
        f'[oncall]\nurl = "{receiver.url}"\nsecret_file = "{tmp_path / "secret"}"\n'
    )

    @road.app.handler(road.moved, retry=Retry(attempts=1), safe=(ValueError,), contact="oncall")
    def moved(message: Any, ctx: Context) -> None:
        del message, ctx
        raise ValueError("ann@example.org")

    receiver.answers = [503]
    road.emit(7, key="key-of-ann")
    notices = app_for(contacts_of(tmp_path / "contacts.toml"), road.prefix)
    road.make_topics()
    make_topics(road, notices)
    with road.relay(), road.processor(), running(road, notices):
        eventually(lambda: len(receiver.got) == 2, what="it was sent, refused and sent again", timeout=120)
    (_, first), (headers, body) = receiver.got
    stamp, _, digest = headers["Packhorse-Signature"].partition(",")
    signed = stamp.removeprefix("t=").encode() + b"." + body
    assert digest == f"v1={hmac.new(SECRET, signed, hashlib.sha256).hexdigest()}"
    assert first == body
    told = json.loads(body)
    assert (told["group"], told["contact"], told["quarantined"]) == (road.group, "oncall", 1)
    assert told["id"] == headers["Packhorse-Id"]
    assert b"ann" not in body
    with psycopg.connect(road.database) as connection:
        query = "SELECT outcome FROM packhorse.inbox WHERE message_id = %s AND group_id = %s"
        assert connection.execute(query, (told["id"], GROUP)).fetchone() == ("done",)
        contacts = "SELECT contact FROM packhorse.failure_group"
        assert connection.execute(contacts).fetchone() == ("oncall",)
    shown = road.run("quarantine", "group", told["failure"], "--json").json()
    assert shown["known"]["contact"] == "oncall"


def test_a_redirect_is_not_followed_and_silence_is_bounded(receiver: Receiver) -> None:
    """Fails when a receiver can send notices elsewhere, or hold up the group."""
    receiver.answers = [302]
    assert post(receiver.url, b"{}", {}, timeout=5) == 302
    assert len(receiver.got) == 1
    with pytest.raises(WebhookAway):
        post("http://127.0.0.1:1/", b"{}", {}, timeout=1)


@pytest.mark.case("X-11")
def test_without_contacts_the_application_does_not_start_and_names_the_setting(road: Road) -> None:
    """Fails when the application starts and skips every notice."""
    found = road.run("processor", "run", "packhorse.console.telling.app:app")
    assert found.code in {2, 3}
    assert "PACKHORSE_CONSOLE_CONTACTS is not set" in found.err


def test_the_doctor_warns_of_contacts_that_no_notice_reaches(road: Road) -> None:
    """Fails when a handler's contact is never told and nobody says so, or the warning stays once notices are registered."""
    with psycopg.connect(road.database) as connection:
        connection.execute(
            "INSERT INTO packhorse.processor_member (group_id, member, host, pid, started_at, status)"
            " VALUES ('movers', gen_random_uuid(), 'h', 1, now(), '{\"contacts\": {\"a.B\": \"oncall\"}}')"
        )
    assert "handlers name 1 contacts" in road.run("doctor").out
    assert road.run("schemas", "register", "--avro-dir", road.avro, "--notices", road.prefix).code == 0
    assert "handlers name" not in road.run("doctor").out
