"""Settings of `packhorse migrate`."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator

from packhorse.core.errors import SettingsError
from packhorse.core.naming import checked_identifier
from packhorse.schemas.settings import PartSettings
from packhorse.schemas.systems import DatabaseSettings


def _identifier(value: str) -> str:
    try:
        return checked_identifier(value, what="database schema")
    except SettingsError as error:
        raise ValueError(str(error)) from None


class MigrateSettings(DatabaseSettings, PartSettings):
    """Say which database gets the tables."""

    section: ClassVar[str] = "migrate"


class SqlSettings(PartSettings):
    """Say for which database schema SQL is printed; no database is asked."""

    section: ClassVar[str] = "migrate"
    database_schema: Annotated[str, AfterValidator(_identifier)] = "packhorse"
