"""By which names the API may be asked for; for the pages see test_pages_gate.py."""

from typing import Any

import pytest
from pydantic import SecretStr, ValidationError
from tests.support.asgi import answer_of

from packhorse.console.api.fastapi.app import application
from packhorse.console.api.hosts import Hosts
from packhorse.console.api.problem import Refused
from packhorse.console.settings import ConsoleSettings
from packhorse.console.top.flowing import Flow
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import NotSignedIn, SettingsError


def takes(hosts: Hosts, asked: str) -> bool:
    try:
        hosts.check([(b"accept", b"*/*"), (b"host", asked.encode("latin-1"))])
    except Refused:
        return False
    return True


@pytest.mark.parametrize("listening", ["127.0.0.1", "localhost", "::1", "10.0.0.5", "0.0.0.0", "::"])
@pytest.mark.parametrize(
    "asked", ["127.0.0.1:8400", "localhost", "LOCALHOST.:80", "a.localhost:1", "[::1]:8400", "127.8.8.8"]
)
def test_the_machine_s_own_names_lead_here(listening: str, asked: str) -> None:
    """Fails when a tunnel to the console can't be used."""
    assert takes(Hosts(listening, ""), asked)


@pytest.mark.parametrize(
    "asked",
    [
        *(
            "evil.example",
            "evil.example:8400",
            "localhost.evil.example",
            "notlocalhost",
            "127.0.0.1.evil.example",
        ),
        *(
            "127.0.0.1@evil.example",
            "evil.example#localhost",
            "",
            ":8400",
            "a b",
            "[::1",
            "0.0.0.0:8400",
            "10.0.0.5",
        ),
    ],
)
def test_a_console_of_this_machine_alone_has_no_other_name(asked: str) -> None:
    """Fails when a page whose name was made to lead to 127.0.0.1 is answered."""
    assert not takes(Hosts("127.0.0.1", ""), asked)


def test_names_are_those_that_are_set_and_the_address_that_it_listens_on() -> None:
    hosts = Hosts("10.0.0.5", "packhorse.example.org, Other.example")
    assert takes(hosts, "packhorse.example.org:8443")
    assert takes(hosts, "OTHER.example.")
    assert takes(hosts, "10.0.0.5:8400")
    assert not takes(hosts, "10.0.0.6:8400")
    assert not takes(hosts, "x.packhorse.example.org")


def test_a_console_on_all_addresses_is_asked_for_by_any_and_by_no_other_name() -> None:
    for listening in ("0.0.0.0", "::"):
        assert takes(Hosts(listening, ""), "192.0.2.7:8400")
        assert takes(Hosts(listening, ""), "[2001:db8::7]:8400")
        assert not takes(Hosts(listening, ""), "evil.example")


@pytest.mark.parametrize("names", ["https://a.example", "a.example:443", "*", "a b", "*.example.org"])
def test_what_is_no_name_is_named(names: str) -> None:
    with pytest.raises(SettingsError, match="PACKHORSE_CONSOLE_HOSTS"):
        Hosts("127.0.0.1", names)
    with pytest.raises(ValidationError, match="PACKHORSE_CONSOLE_HOSTS"):
        ConsoleSettings(database_url=SecretStr("postgresql://x/y"), hosts=names)


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [
        ("/api/v1/top", b"evil.example", 421),
        ("/nothing", b"evil.example", 421),
        ("/api/v1/top", b"localhost:8400", 401),
        ("/health/live", b"evil.example", 200),
    ],
)
def test_the_api_answers_to_its_own_names_and_health_to_all(path: str, host: bytes, status: int) -> None:
    """Fails when the API can be asked by a page whose name leads here, or a probe has to know the names."""

    def nobody(_: Any) -> Any:
        raise NotSignedIn("nobody is known here")

    app = application(
        nobody, nobody, hosts=Hosts("127.0.0.1", ""), looks=Flow(SYSTEM_CLOCK), ready=lambda: True
    )
    answer = answer_of(app, "GET", path, (b"host", host))
    assert answer.status == status
    assert ("PACKHORSE_CONSOLE_HOSTS" in answer.body) is (status == 421)
    assert answer.headers[b"x-content-type-options"] == b"nosniff"
