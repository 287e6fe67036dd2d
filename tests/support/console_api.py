"""The console as a server in a thread, on a real database and a real port, and people who ask it."""

import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

import httpx
import jsonschema_rs
import psycopg
import uvicorn
from pydantic import SecretStr

from packhorse.console.acting.person import TOKEN_PREFIX, Person, hash_of
from packhorse.console.api.fastapi.app import application
from packhorse.console.api.hosts import Hosts
from packhorse.console.api.signing import SignIns
from packhorse.console.compose import services_of
from packhorse.console.serving.daemon import Readiness, ServedPages, pages_of
from packhorse.console.serving.front import Front
from packhorse.console.serving.postgres import pooled
from packhorse.console.serving.uvicorn import behind_proxies, listening
from packhorse.console.settings import ConsoleSettings
from packhorse.console.top.flowing import Flow
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK


def token_for(
    connection: psycopg.Connection[Any],
    role: str = "operator",
    *,
    name: str | None = None,
    personal: bool = False,
    edit: bool = False,
    expires: str | None = None,
) -> str:
    """Give somebody a token, good until *expires* (SQL, e.g. "now() - interval '1 s'"), and return it."""
    token = TOKEN_PREFIX + SYSTEM_CHANCE.token().hex * 2
    connection.execute(
        "INSERT INTO packhorse.operator (kind, name, role, personal, edit, token_hash, made_by, expires_at)"
        f" VALUES ('token', %s, %s, %s, %s, %s, 'a test', {expires or 'NULL'})",
        (name or f"{role}-{token[-6:]}", role, personal, edit, hash_of(token)),
    )
    return token


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """
    A console that answers.

    Attributes:
        url: Where, without a path.
        links: Ways to sign in once, that its terminal was told.
        served: Its pages.
    """

    url: str
    links: list[str]
    served: ServedPages | None

    @property
    def document(self) -> dict[str, Any]:
        """The API's own document, which its answers are held to."""
        return _document()

    def link(self) -> str:
        """Return the address of a new link that signs in once."""
        assert self.served is not None
        self.served.keeper.make_link()
        return self.url + self.links[-1]

    def asked_by(self, token: str | None) -> httpx.Client:
        """Return a client that brings *token*, and holds each answer to the document; whoever takes it closes it."""
        return httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            timeout=20,
            trust_env=False,
            event_hooks={"response": [self._check]},
        )

    def _check(self, answer: httpx.Response) -> None:
        """Fail when the answer is not as the document says."""
        found = self._operation(answer.request)
        if found is None:
            return
        answer.read()
        kind = answer.headers["content-type"]
        schema = found["responses"][str(answer.status_code)]["content"][kind]["schema"]
        whole = {**schema, "components": self.document["components"]}
        jsonschema_rs.validator_for(whole, validate_formats=True).validate(answer.json())

    def _operation(self, request: httpx.Request) -> dict[str, Any] | None:
        for path, methods in self.document["paths"].items():
            pattern = re.sub(r"\{\w+\}", "[^/]+", path)
            if request.method.lower() in methods and re.fullmatch(pattern, request.url.path):
                operation: dict[str, Any] = methods[request.method.lower()]
                return operation
        return None


@cache
def _document() -> dict[str, Any]:
    """Make the document once, which takes a second: it is made of the routes alone, and those are the same on every database."""

    def nobody(person: Person) -> NoReturn:
        raise AssertionError(person)

    app = application(
        nobody, nobody, hosts=Hosts("127.0.0.1", ""), looks=Flow(SYSTEM_CLOCK), ready=lambda: False
    )
    return app.document()


@contextlib.contextmanager
def console_on(database_url: str, *, sign_ins: SignIns | None = None, **settings: Any) -> Iterator[Console]:
    """Serve the console on *database_url* meanwhile, in this process."""
    made = ConsoleSettings(database_url=SecretStr(database_url), port=0, **{"links": True, **settings})
    with (
        pooled(made) as database,
        services_of(made, database) as services,
        listening(made) as sock,
    ):
        flow, hosts = Flow(SYSTEM_CLOCK), Hosts(made.host, made.hosts)
        app = application(
            services,
            database.standing,
            hosts=hosts,
            looks=flow,
            ready=Readiness(database),
            sign_ins=sign_ins,
        )
        links: list[str] = []
        served = pages_of(
            services, database, made, hosts=hosts, flow=flow, tell_link=links.append, sign_ins=sign_ins
        )
        front = behind_proxies(Front(app, None if served is None else served.app), made.proxies)
        server = uvicorn.Server(
            uvicorn.Config(
                front,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
            )
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, name="console", daemon=True)
        thread.start()
        try:
            yield Console(
                url=f"http://127.0.0.1:{sock.getsockname()[1]}",
                links=links,
                served=served,
            )
        finally:
            server.should_exit = True
            thread.join(timeout=20)
            assert not thread.is_alive()
