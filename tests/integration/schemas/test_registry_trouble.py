"""The registry's client against registries that misbehave on real sockets: an error in time, and nothing kept of it."""

import json
import socket
import threading
from typing import Any
from uuid import UUID

import pytest
from pydantic import SecretStr
from tests.support import bad_registry as bad
from tests.support import shop
from tests.support.bad_registry import Behaviour, answer, bad_registry

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import PackhorseError, RegistryUnavailable, Undecodable, UnknownSchema
from packhorse.schemas import Decoder, Registry, encode_message
from packhorse.schemas.systems import RegistrySettings

TIMEOUT = 0.25
BOUND = 2.0
"""Twice the time-out is promised; the rest is for a busy machine."""

STORED = json.dumps({"schema": shop.OrderCancelled.__packhorse__.schema}).encode()
CANCELLED = shop.OrderCancelled(order_id=UUID(int=1), at=SYSTEM_CLOCK.now())


def client(url: str, **more: Any) -> Registry:
    return Registry(RegistrySettings(registry_url=url, registry_timeout=TIMEOUT, **more))


def trouble_of(registry: Registry) -> PackhorseError:
    """Return the error of one look-up, which must come within the bound."""
    begun = SYSTEM_CLOCK.monotonic()
    with pytest.raises(PackhorseError) as caught:
        registry.schema_of(7)
    assert SYSTEM_CLOCK.monotonic() - begun < BOUND
    return caught.value


MISBEHAVIOUR: dict[str, Behaviour] = {
    "says nothing": bad.say_nothing,
    "hangs up": bad.hang_up,
    "resets": bad.reset,
    "speaks another protocol": bad.speak_another_protocol,
    "drips headers": bad.drip_headers,
    "drips its body": bad.drip_body,
    "cuts its body": bad.cut_body,
    "500": answer("500 Oops", b'{"error_code": 50001}'),
    "503": answer("503 Busy"),
    "429": answer("429 Slow Down"),
    "401": answer("401 Who Are You"),
    "403": answer("403 No"),
    "bare 404": answer("404 Not Found", b'{"message": "no such page"}'),
    "redirect": answer("302 Found", b"", "Location: http://127.0.0.1:1/"),
    "rubbish": answer("200 OK", b"<html>"),
    "rubbish of the right form": answer("200 OK", b'{"schema": 5}'),
    "rubbish said to be packed": answer("200 OK", b"rubbish", "Content-Encoding: gzip"),
}


@pytest.mark.case("S-09")
@pytest.mark.parametrize("behaviour", MISBEHAVIOUR.values(), ids=list(MISBEHAVIOUR))
def test_trouble_is_an_error_in_time_and_goes_away_with_its_cause(behaviour: Behaviour) -> None:
    """
    Fails when the transport's deadline is taken out (a registry that drips holds the caller for ever), when any of these
    gets another class than RegistryUnavailable, or when a failure is kept.
    """
    with bad_registry(behaviour) as server, client(server.url) as registry:
        assert type(trouble_of(registry)) is RegistryUnavailable
        server.behaviour = answer("200 OK", STORED)
        decoder = Decoder(registry)
        assert decoder.decode(encode_message(CANCELLED, 7), shop.OrderCancelled) == CANCELLED


@pytest.mark.case("S-09")
def test_a_registry_that_refuses_or_has_no_name_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with client(f"http://127.0.0.1:{port}") as registry:
        assert "is it running, and is PACKHORSE_REGISTRY_URL right?" in str(trouble_of(registry))
    with client("http://registry.invalid:8081") as registry:
        assert isinstance(trouble_of(registry), RegistryUnavailable)


@pytest.mark.case("S-09")
def test_a_registry_that_is_full_and_accepts_nobody_is_unavailable() -> None:
    """The backlog is full, so that connecting itself takes for ever."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        with client("http://{}:{}".format(*listener.getsockname())) as registry:
            assert isinstance(trouble_of(registry), RegistryUnavailable)
        for one in waiting:
            one.close()


@pytest.mark.case("S-10")
def test_a_clear_no_is_the_messages_fault_and_is_asked_again() -> None:
    no = answer("404 Not Found", b'{"error_code": 40403, "message": "no"}')
    with bad_registry(no) as server, client(server.url) as registry:
        assert type(trouble_of(registry)) is UnknownSchema
        server.behaviour = answer("200 OK", STORED)
        assert registry.schema_of(7)


def test_no_connection_is_kept_that_may_be_closed_meanwhile() -> None:
    with bad_registry(answer("200 OK", STORED, keep=True)) as server, client(server.url) as registry:
        assert [registry.schema_of(number) for number in (7, 8, 9)]
        assert server.connections == 3


def test_a_schema_of_another_kind_is_undecodable() -> None:
    body = b'{"schema": "syntax = \\"proto3\\";", "schemaType": "PROTOBUF"}'
    with bad_registry(answer("200 OK", body)) as server, client(server.url) as registry:
        assert type(trouble_of(registry)) is Undecodable


def test_references_that_go_in_a_circle_end() -> None:
    body = json.dumps(
        {"schema": '"int"', "references": [{"name": "a.B", "subject": "a.B", "version": 1}]}
    ).encode()
    with bad_registry(answer("200 OK", body)) as server, client(server.url) as registry:
        assert "references go deeper than" in str(trouble_of(registry))


def test_a_schema_is_fetched_once_by_many_threads_and_kept() -> None:
    with bad_registry(answer("200 OK", STORED)) as server, client(server.url) as registry:
        found: list[str] = []
        threads = [threading.Thread(target=lambda: found.append(registry.schema_of(7))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.behaviour = bad.hang_up
        assert set(found) == {registry.schema_of(7)}
        assert len(found) == 8


@pytest.mark.case("X-08")
def test_no_credential_is_in_an_error_or_a_repr() -> None:
    """Fails when the credentials become part of the address that errors name."""
    with bad_registry(answer("401 Who Are You")) as server:
        registry = client(server.url, registry_user="reader", registry_password=SecretStr("s3cr3t-w0rd"))
        with registry:
            error = trouble_of(registry)
        assert "PACKHORSE_REGISTRY_PASSWORD" in str(error)
        told = repr(error) + str(error) + repr(error.__cause__) + repr(registry)
        assert "s3cr3t-w0rd" not in told


def test_credentials_are_sent_as_basic_authentication() -> None:
    seen: list[bytes] = []

    def behave(connection: socket.socket, stopped: threading.Event) -> None:
        seen.append(connection.recv(65_536))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(STORED), STORED))

    with (
        bad_registry(behave) as server,
        client(server.url, registry_user="a", registry_password=SecretStr("b")) as registry,
    ):
        registry.schema_of(7)
    assert b"authorization: basic ytpi" in seen[0].lower()
