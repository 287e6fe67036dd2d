"""The console as a process: settings to server."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Database
from packhorse.console.api.fastapi.app import application
from packhorse.console.api.hosts import Hosts
from packhorse.console.api.signing import SignIns
from packhorse.console.compose import services_of
from packhorse.console.pages.doorkeeper import Doorkeeper, Ways
from packhorse.console.pages.fastapi.app import pages
from packhorse.console.pages.fastapi.gate import PagesGate
from packhorse.console.pages.itsdangerous import KEY_BYTES, Seal
from packhorse.console.pages.origins import Trusted
from packhorse.console.quarantine.groups.folding import Folding
from packhorse.console.quarantine.groups.postgres import GroupTables
from packhorse.console.redriving.compose import background_runner as redrives
from packhorse.console.replaying.foreground import background_runner as replays
from packhorse.console.service import Service
from packhorse.console.serving import sql
from packhorse.console.serving.front import Front
from packhorse.console.serving.hosting import Looks, hosted
from packhorse.console.serving.postgres import pooled
from packhorse.console.serving.uvicorn import leave, listening, serve
from packhorse.console.settings import ConsoleSettings
from packhorse.console.top.flowing import Flow, Watching
from packhorse.core import logs
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK, Clock
from packhorse.core.errors import PackhorseError, SettingsError
from packhorse.core.users import system_user

_ANSWER_KEPT = 1.0
"""Seconds that an answer about readiness holds, so that probes can't keep the database busy."""
_log = logs.logger("console")


def run(settings: ConsoleSettings) -> None:
    """
    Serve until SIGTERM or SIGINT.

    Raises:
        SettingsError: A setting is not allowed, or the port can't be had.
        DatabaseUnavailable, NotReady: The database does not answer, or the tables are not there.
    """
    logs.set_up(secrets=settings.secrets())
    with (
        pooled(settings) as database,
        services_of(settings, database) as services,
        listening(settings) as sock,
    ):
        _tell_of_tokens(database)
        where = sock.getsockname()[:2]
        runners = [Folding(GroupTables(database), SYSTEM_CLOCK), *_runners(database, settings)]
        hosts = Hosts(settings.host, settings.hosts)
        flow = Flow(SYSTEM_CLOCK)
        api = application(services, database.standing, hosts=hosts, looks=flow, ready=Readiness(database))
        tell_link = partial(_tell_link, where)
        served = pages_of(services, database, settings, hosts=hosts, flow=flow, tell_link=tell_link)
        if served is not None:
            runners.append(served.watching)
        app = Front(api, None if served is None else served.app)
        with hosted(runners, patience=settings.drain_timeout):
            serve(app, sock, settings, begun=lambda: _tell_begun(where, settings, served))
    _log.info("stopped")
    leave()


class Readiness:
    """Say whether the database answers and has the tables."""

    def __init__(self, database: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        self._database = database
        self._clock = clock
        self._until = 0.0
        self._well = False

    def __call__(self) -> bool:
        """Return the answer, at most a second old; blocks as long as the database's time-out allows."""
        if self._clock.monotonic() >= self._until:
            self._well = self._asked()
            self._until = self._clock.monotonic() + _ANSWER_KEPT
        return self._well

    def _asked(self) -> bool:
        try:
            with self._database.working() as rows:
                return rows.first(sql.READY) is not None
        except PackhorseError:
            return False


def _runners(database: Database, settings: ConsoleSettings) -> list[Looks]:
    """Return what goes on with runs here: redrives always, replays where there is a broker to read from."""
    if not settings.runner:
        return []
    found: list[Looks] = [redrives(database, log=_log.info)]
    if settings.kafka() is not None:
        found.append(replays(database, settings, log=_log.info))
    return found


def _tell_of_tokens(database: Database) -> None:
    """Say how the first token is made while there is none; also finds out whether the tables are there."""
    with database.working() as rows:
        found = rows.first(sql.HELD)
    if found is None or not found["any"]:
        _log.warning(
            "nobody holds a token, so every request is refused; make the first one: "
            "packhorse operators token NAME --role operator --expires 90d"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPages:
    """The web page: what answers, who knows who is signed in, and what looks every now and then."""

    app: PagesGate
    keeper: Doorkeeper
    watching: Watching


def pages_of(
    services: Callable[[Person], Service],
    database: Database,
    settings: ConsoleSettings,
    *,
    hosts: Hosts,
    flow: Flow,
    tell_link: Callable[[str], None],
    sign_ins: SignIns | None = None,
) -> ServedPages | None:
    """
    Return the web page; None where it is not to be served.

    Raises:
        SettingsError: Some header is to say who is there, and no proxy is named that may.
    """
    if not settings.pages:
        return None
    trusted = Trusted(settings.proxies)
    if settings.user_header is not None and (trusted.everybody or not settings.proxies):
        raise SettingsError(
            f"PACKHORSE_CONSOLE_USER_HEADER={settings.user_header} needs PACKHORSE_CONSOLE_PROXIES with the addresses of the "
            "proxies that set it, and not *: else anybody could say who they are"
        )
    given = settings.session_key
    keys = [SYSTEM_CHANCE.secret(KEY_BYTES)] if given is None else given.get_secret_value().encode().split()
    keeper = Doorkeeper(
        database.standing,
        seal=Seal(keys),
        trusted=trusted,
        ways=Ways(
            user_header=settings.user_header and settings.user_header.lower(),
            links=sys.stderr.isatty() if settings.links is None else settings.links,
        ),
        user=system_user(),
        clock=SYSTEM_CLOCK,
        secrets=SYSTEM_CHANCE,
        sign_ins=sign_ins or SignIns(),
        tell_link=tell_link,
    )
    watching = Watching(flow, lambda: services(Person(user=system_user())).top, SYSTEM_CLOCK)
    served = pages(services, keeper, flow, hosts=hosts)
    return ServedPages(app=served, keeper=keeper, watching=watching)


def _tell_begun(address: tuple[str, int], settings: ConsoleSettings, served: ServedPages | None) -> None:
    _tell_where(address, settings)
    if served is not None and served.keeper.ways.links:
        served.keeper.make_link()


def _tell_link(address: tuple[str, int], path: str) -> None:
    """Show a link on the terminal, and not in the log, which others keep."""
    host = "127.0.0.1" if address[0] in {"0.0.0.0", "::"} else address[0]  # noqa: S104 it is compared with
    sys.stderr.write(
        f"\nOpen the console, once and within 15 minutes: {url_of((host, address[1]))}{path}\n\n"
    )
    sys.stderr.flush()


def url_of(address: tuple[str, int]) -> str:
    """
    Return the address of a server in a browser.

    >>> url_of(("::1", 8400))
    'http://[::1]:8400'
    """
    host, port = address
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _tell_where(address: tuple[str, int], settings: ConsoleSettings) -> None:
    host = address[0]
    _log.info("listening", url=url_of(address), runner=settings.runner, pages=settings.pages)
    if not ip_address(host.partition("%")[0]).is_loopback:
        _log.warning(
            "other machines can connect, and this port has no TLS: tokens go over the wire as they are, unless a proxy with "
            "TLS stands before it; see docs/how-to/run-the-console.md"
        )
