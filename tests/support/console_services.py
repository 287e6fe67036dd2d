"""The console on real tables as the commands have it, without a broker and a registry."""

from typing import Any

from pydantic import SecretStr

from packhorse.console.acting.person import Person, this_process
from packhorse.console.acting.postgres import Database
from packhorse.console.compose import rooms
from packhorse.console.service import Service
from packhorse.console.settings import ConsoleSettings


def service_over(database: Database, person: Person | None = None, **settings: Any) -> Service:
    """Return the rooms over *database*; it is asked by *person*, or else by who runs the tests."""
    made = ConsoleSettings(database_url=SecretStr("postgresql://unused"), **settings)
    return rooms(database, person or this_process(), made, topics=None, payloads=None)
