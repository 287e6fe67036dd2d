"""The console as a process: settings to server."""

from ipaddress import ip_address

from packhorse.console.acting.postgres import Database
from packhorse.console.api import sql
from packhorse.console.api.fastapi.app import application
from packhorse.console.api.hosting import Looks, hosted
from packhorse.console.api.postgres import pooled
from packhorse.console.api.uvicorn import listening, serve
from packhorse.console.compose import services_of
from packhorse.console.redriving.compose import background_runner as redrives
from packhorse.console.replaying.foreground import background_runner as replays
from packhorse.console.settings import ConsoleSettings
from packhorse.core import logs
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.errors import PackhorseError

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
        app = application(services, database.standing, ready=Readiness(database))
        where = sock.getsockname()[:2]
        with hosted(_runners(database, settings), patience=settings.drain_timeout):
            serve(app, sock, settings, begun=lambda: _tell_where(where, settings))
    _log.info("stopped")


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


def _tell_where(address: tuple[str, int], settings: ConsoleSettings) -> None:
    host, port = address
    _log.info(
        "listening", url=f"http://{f'[{host}]' if ':' in host else host}:{port}", runner=settings.runner
    )
    if not ip_address(host.partition("%")[0]).is_loopback:
        _log.warning(
            "other machines can connect, and this port has no TLS: tokens go over the wire as they are, unless a proxy with "
            "TLS stands before it; see docs/how-to/run-the-console.md"
        )
