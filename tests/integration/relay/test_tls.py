"""Writers, relay and commands over TLS, with the server's certificate and name checked."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.support.cli import packhorse
from tests.support.relay import insert, relays
from tests.support.tls import Authority, TlsFront
from tests.support.topics import wait_for

from packhorse.local.settings import Endpoints

PASSWORD = "s3cr3t-pass"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def front(stack: Endpoints, authority: Authority) -> Iterator[TlsFront]:
    """Provide the session's database behind TLS, as a server named localhost."""
    parts = urlsplit(stack.database_url)
    target = (parts.hostname or "127.0.0.1", parts.port or 5432)
    with TlsFront(target, authority.certificate("localhost")) as running:
        yield running


def over_tls(url: str, front: TlsFront, root: Path, *, host: str = "localhost") -> str:
    parts = urlsplit(url)
    netloc = f"{parts.username or 'postgres'}:{parts.password or PASSWORD}@{host}:{front.port}"
    query = f"sslmode=verify-full&sslrootcert={root}"
    return parts._replace(netloc=netloc, query=query).geturl()


def test_the_whole_road_goes_over_tls(
    tmp_path: Path,
    empty_database: str,
    front: TlsFront,
    authority: Authority,
    stack: Endpoints,
    topic_prefix: str,
    topic: str,
) -> None:
    """The front lets nobody in without TLS, so that whatever asks for none fails here."""
    url = over_tls(empty_database, front, authority.root)
    with pytest.raises(psycopg.OperationalError, match="in the clear"):
        psycopg.connect(url.partition("?")[0] + "?sslmode=disable")
    environ = stack.variables() | {"PACKHORSE_DATABASE_URL": url, "PACKHORSE_NAMESPACE": topic_prefix}
    assert packhorse("migrate", "up", **environ).code == 0
    assert packhorse("schemas", "register", "--avro-dir", "tests/support/avro", **environ).code == 0
    with relays(tmp_path, database=url, bootstrap=stack.kafka_bootstrap, namespace=topic_prefix) as group:
        process = group.start()
        with psycopg.connect(url) as writer:
            assert writer.pgconn.ssl_in_use
            id_ = insert(writer, "k")
        assert wait_for(stack.kafka_bootstrap, topic, 1)[0].id == id_
        assert packhorse("relay", "status", "--json", "--sample", "0", **environ).code == 0
        assert packhorse("status", id_, "--json", **environ).code == 0
        assert process.stop() == 0


@pytest.mark.parametrize(
    ("root", "host", "named"),
    [
        ("other/root.crt", "localhost", "sslrootcert"),
        ("root.crt", "127.0.0.1", "the server's certificate names"),
        ("missing.crt", "localhost", "sslrootcert"),
    ],
)
@pytest.mark.parametrize(
    "command", ["relay run", "relay status", "migrate up", "schemas register --avro-dir tests/support/avro"]
)
def test_a_server_that_is_not_the_one_meant_is_refused_with_the_next_step(
    root: str, host: str, named: str, command: str, tmp_path: Path, front: TlsFront, stack: Endpoints
) -> None:
    """Fails when the advice is the same for all, or the password stands in the text."""
    (tmp_path / "other").mkdir()
    Authority(tmp_path / "other")
    url = over_tls(stack.database_url, front, tmp_path / root, host=host)
    done = packhorse(
        *command.split(), **stack.variables() | {"PACKHORSE_DATABASE_URL": url, "PACKHORSE_NAMESPACE": "t"}
    )
    assert done.code == 4, done.err
    assert named in done.err
    assert PASSWORD not in done.out + done.err
    assert "Traceback" not in done.err
