"""Settings of `packhorse schemas`."""

from pathlib import Path
from typing import ClassVar

from packhorse.schemas.direction import Direction
from packhorse.schemas.settings import PartSettings
from packhorse.schemas.systems import DatabaseSettings, RegistrySettings


class SchemasSettings(PartSettings):
    """
    Say where an application's schemas are.

    Attributes:
        avro_dir: Folder of `<subject>/v<N>.avsc`.
        messages_file: Python file that `generate` writes.
        compatibility: Which way versions of a subject must be readable.
    """

    section: ClassVar[str] = "schemas"

    avro_dir: Path = Path("schemas/avro")
    messages_file: Path | None = None
    compatibility: Direction = Direction.BACKWARD


class RegisterSettings(SchemasSettings, DatabaseSettings, RegistrySettings):
    """Say besides which registry and which database get the schemas."""


class ListSettings(SchemasSettings, DatabaseSettings):
    """Say besides which database holds the ids."""
