"""Who may do what: looked at by those who may see, changed by admins, on the record."""

from dataclasses import dataclass
from typing import Protocol

from packhorse.console.acting.person import TOKEN_BYTES, Person, checked_name, hash_of, token_of
from packhorse.console.operators.model import Change, Kind, Me, Operator, Wanted
from packhorse.core.acts import checked_why
from packhorse.core.clock import SYSTEM_CHANCE, Secrets


class OperatorSource(Protocol):
    """Read and change who has rights; promises and raises what `OperatorTables` does."""

    def all(self, person: Person) -> list[Operator]:
        """Return all who have rights."""

    def me(self, person: Person) -> Me:
        """Return who *person* is to the installation."""

    def put(
        self, person: Person, wanted: Wanted, *, token_hash: bytes | None, renew: bool, why: str | None
    ) -> Change:
        """Give *wanted*, on the record with what was there before."""

    def remove(self, person: Person, kind: Kind, name: str, *, why: str | None) -> Change:
        """Take all rights of *name* away, on the record."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Made:
    """
    A token that was made.

    Attributes:
        token: The only time that it is seen; its representation leaves it out.
    """

    token: str
    change: Change


class Operators:
    """Those who have rights, for one person; *secrets* draws tokens."""

    def __init__(self, tables: OperatorSource, person: Person, *, secrets: Secrets = SYSTEM_CHANCE) -> None:
        self._tables = tables
        self._person = person
        self._secrets = secrets

    def list(self) -> list[Operator]:
        """Return all who have rights, by kind and name."""
        return self._tables.all(self._person)

    def me(self) -> Me:
        """Return who the person who asks is, what they may do, and by what."""
        return self._tables.me(self._person)

    def add(self, wanted: Wanted, *, why: str | None = None) -> Change:
        """Give rights to a role of the database or a user, instead of those that they had; raises what `OperatorTables.put` does."""
        assert wanted.kind is not Kind.TOKEN
        return self._tables.put(self._person, wanted, token_hash=None, renew=False, why=_why(why))

    def token(self, wanted: Wanted, *, renew: bool = False, why: str | None = None) -> Made:
        """
        Make a token; only its hash is kept. With *renew* it takes the place of the one before, which is void at once.

        Raises:
            UsageError: The name has a token, and *renew* is not said.
        """
        assert wanted.kind is Kind.TOKEN
        token = token_of(self._secrets.secret(TOKEN_BYTES))
        change = self._tables.put(self._person, wanted, token_hash=hash_of(token), renew=renew, why=_why(why))
        return Made(token=token, change=change)

    def remove(self, kind: Kind, name: str, *, why: str | None = None) -> Change:
        """Take all rights away; raises what `OperatorTables.remove` does."""
        return self._tables.remove(self._person, kind, checked_name(name), why=_why(why))


def _why(why: str | None) -> str | None:
    return None if why is None else checked_why(why)
