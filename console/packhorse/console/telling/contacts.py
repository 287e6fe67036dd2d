"""Contacts and their webhooks, as a file in TOML names them."""

import ipaddress
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from packhorse.core.errors import SettingsError

DEFAULT = "default"
"""Stands in the file for every contact that it does not name, and for notices without one."""
_KNOWN = frozenset({"url", "secret_file", "timeout"})
LEAST_SECRET = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """
    Where notices for one contact go.

    Attributes:
        url: HTTPS; plain HTTP only to this machine.
        secret: Signs what is sent; at least 16 bytes.
        timeout: Seconds for connect, and for each read.
    """

    url: str
    secret: bytes = field(repr=False)
    timeout: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contacts:
    """The webhooks by contact."""

    webhooks: dict[str, Webhook]

    def of(self, contact: str | None) -> Webhook | None:
        """Return the webhook for *contact*, or the default one; None: there is neither."""
        found = None if contact is None else self.webhooks.get(contact)
        return found or self.webhooks.get(DEFAULT)


def contacts_of(path: Path) -> Contacts:
    """
    Read the contacts of *path*, in TOML.

        [payments-oncall]
        url = "https://hooks.example.org/packhorse"
        secret_file = "/run/secrets/payments-hook"

    Raises:
        SettingsError: The file or a secret's can't be read, or something in it is not allowed; names it, and no secret.
    """
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"PACKHORSE_CONSOLE_CONTACTS {path}: {_short(error)}") from None
    return Contacts(webhooks={name: _webhook(path, name, table) for name, table in tables.items()})


def _webhook(path: Path, name: str, table: object) -> Webhook:
    what = f"{path}: [{name}]"
    if not isinstance(table, dict) or set(table) - _KNOWN:
        raise SettingsError(f"{what} has url, secret_file and timeout, and nothing else")
    url, secret_file, timeout = table.get("url"), table.get("secret_file"), table.get("timeout", 10.0)
    if not isinstance(url, str) or not isinstance(secret_file, str):
        raise SettingsError(f"{what} needs url and secret_file")
    if not isinstance(timeout, int | float) or not 0 < timeout <= 60:
        raise SettingsError(f"{what}: timeout {timeout!r} is not allowed: more than 0 and up to 60 seconds")
    _check_url(what, url)
    try:
        secret = Path(secret_file).read_bytes().strip()
    except OSError as error:
        raise SettingsError(f"{what}: secret_file {secret_file}: {_short(error)}") from None
    if len(secret) < LEAST_SECRET:
        raise SettingsError(
            f"{what}: the secret in {secret_file} has {len(secret)} bytes, at least {LEAST_SECRET} are needed"
        )
    return Webhook(url=url, secret=secret, timeout=float(timeout))


def _check_url(what: str, url: str) -> None:
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise SettingsError(f"{what}: no user or password in the url; the signature says who sends")
    secure = parts.scheme == "https" or (parts.scheme == "http" and _here(parts.hostname or ""))
    if not secure or not parts.hostname or not url.isascii() or not url.isprintable() or " " in url:
        raise SettingsError(f"{what}: the url must be https://… in ASCII (http:// to this machine alone)")


def _here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _short(error: Exception) -> str:
    return error.strerror or "can't be read" if isinstance(error, OSError) else str(error)
