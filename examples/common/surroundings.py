"""Where an example runs: a stack of its own or the one that the environment names, and a fresh database on it."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql as composing

from examples.common.children import Children
from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import DatabaseUnavailable, SettingsError
from packhorse.local.places import cache_folder
from packhorse.local.progress import Progress
from packhorse.local.settings import DATABASE_VARIABLE, KAFKA_VARIABLE, REGISTRY_VARIABLE, StackSettings
from packhorse.local.stack import Stack
from packhorse.local.state import locked

NAMESPACE_VARIABLE = "PACKHORSE_NAMESPACE"
SERVICES = (DATABASE_VARIABLE, KAFKA_VARIABLE, REGISTRY_VARIABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """
    What the parts of Packhorse are told through the environment.

    Attributes:
        own: The services were made for the example, and are empty.
        database_url: The example's own database.
        variables: The environment variables, the database's included.
    """

    own: bool
    database_url: str
    variables: Mapping[str, str]


@contextmanager
def surroundings(
    folder: Path, progress: Progress, *, name: str, namespace: str, keep: bool
) -> Iterator[Surroundings]:
    """
    Provide services and an empty database for the block; *name* is the example's, *namespace* that of its topics.

    The services that PACKHORSE_DATABASE_URL, …_KAFKA_BOOTSTRAP_SERVERS and …_REGISTRY_URL name are used; with none of
    the three set, a stack in *folder* is made anew. With the block the stack stops, or on named services the database
    is dropped; *keep* leaves the database, and the stack if the block ended well.

    Raises:
        SettingsError: Some of the three are set and some are not.
        StackFailed: A service did not start, or another run uses the folder.
        DatabaseUnavailable: The database can't be made.
    """
    if named := {name: os.environ[name] for name in SERVICES if os.environ.get(name)}:
        if missing := [name for name in SERVICES if name not in named]:
            raise SettingsError(
                f"{', '.join(named)} set and {', '.join(missing)} not: set all three, or none"
            )
        around = _on(named, name, namespace, own=False)
        try:
            yield around
        finally:
            if not keep:
                _drop_database(named[DATABASE_VARIABLE], around.database_url)
        return
    folder.mkdir(parents=True, exist_ok=True)
    settings = StackSettings(
        folder=folder,
        cache=cache_folder(os.environ, Path.home()),
        postgres={"track_commit_timestamp": "on"},  # so that a latency can be told from commit to commit
    )
    with locked(folder / f"{name}.lock", what=f"the example {name}", within=1.0):
        stack = Stack(settings, progress=progress)
        stack.reset()
        stack.up(hold=not keep)
        try:
            yield _on(stack.endpoints.variables(), name, namespace, own=True)
        except BaseException:
            stack.down()
            raise
        if not keep:
            stack.down()


def _on(services: Mapping[str, str], name: str, namespace: str, *, own: bool) -> Surroundings:
    server = services[DATABASE_VARIABLE]
    database = f"{name}_{SYSTEM_CHANCE.token().hex[:12]}"
    _execute(server, composing.SQL("CREATE DATABASE {}").format(composing.Identifier(database)))
    url = urlsplit(server)._replace(path=f"/{database}").geturl()
    return Surroundings(
        own=own,
        database_url=url,
        variables={**services, DATABASE_VARIABLE: url, NAMESPACE_VARIABLE: namespace},
    )


def _drop_database(server: str, database_url: str) -> None:
    name = urlsplit(database_url).path.removeprefix("/")
    _execute(server, composing.SQL("DROP DATABASE {} WITH (FORCE)").format(composing.Identifier(name)))


def _execute(server: str, statement: composing.Composed) -> None:
    try:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(statement)
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"the database server refuses or is away: {error}") from error


def refuse_topics_in_use(around: Surroundings, children: Children, app: str, source: str) -> None:
    """
    Check that nothing is on the topic *source* yet: what an earlier run has left there is not of this run's database.

    Raises:
        SettingsError: The broker, which is not our own, has the topic.
    """
    if around.own:
        return
    planned = json.loads(children.answer("topics", "plan", app, "--json") or '{"steps": []}')
    if source not in {step["topic"] for step in planned["steps"] if step["act"] == "create"}:
        raise SettingsError(
            f"the broker has the topic {source} already, and the example counts on it from its first message on; remove it "
            f"and {source}.*, or unset {', '.join(SERVICES)}: then the example starts a stack of its own"
        )
