"""Who asks for an act or a look, before the database has said what they may do."""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from packhorse.core.acts import Actor
from packhorse.core.errors import UsageError
from packhorse.core.ids import time_of
from packhorse.core.rights import Standing
from packhorse.core.users import system_user

TOKEN_PREFIX = "phk_"  # noqa: S105 the beginning of every token, so that one is known for what it is where it leaks
"""What a token begins with."""
TOKEN_BYTES = 32
"""Random bytes of a token."""
HASH_BYTES = 32
"""Bytes of a token's hash."""
LONGEST_NAME = 63
"""Characters of a name; the database's roles have as many bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """
    Somebody who looks or acts: under the database's role that is connected, as the holder of a token, or as a user.

    Attributes:
        user: The operating system's user of this process; on record beside the role.
        claimed: A name that the user gave; on record as claimed. For the role that is connected alone: the others have names.
        token_hash: SHA-256 of the token of whoever brought one.
        signed_in: The name under which a trusted proxy has signed somebody in. Who makes a Person with it has made sure that the
            proxy said so, and nobody past it; here only its form is checked.
        once: The number of the form that they send, a UUIDv7 of when it was shown: of one number there is one act, however often it
            is sent. None: nothing tells two requests from one that is repeated.

    Raises:
        UsageError: There is more than one name, the hash or the number is none, or nobody may have the name.
    """

    user: str
    claimed: str | None = None
    token_hash: bytes | None = None
    signed_in: str | None = None
    once: UUID | None = None

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.claimed, self.token_hash, self.signed_in)) > 1:
            raise UsageError("a person claims a name, holds a token or is signed in: one of them, or none")
        if self.token_hash is not None and len(self.token_hash) != HASH_BYTES:
            raise UsageError(f"a token's hash of {len(self.token_hash)} bytes; SHA-256 has {HASH_BYTES}")
        if self.signed_in is not None:
            checked_name(self.signed_in)
        if self.once is not None and time_of(self.once) is None:
            raise UsageError(f"the number {self.once} is no form's; load the page again")

    @property
    def is_role(self) -> bool:
        """Return whether the role acts that is connected; else it lends its rights, and its ownership of the tables, to nobody."""
        return self.token_hash is None and self.signed_in is None

    def actor(self, standing: Standing) -> str:
        """Return who acts, as the audit shows it."""
        if self.token_hash is not None:
            return f"{standing.name} (token)"
        if self.signed_in is not None:
            return f"{standing.name} (signed in)"
        return Actor(user=self.user, role=standing.name, claimed=self.claimed).text


def checked_name(name: str) -> str:
    """
    Return *name* when somebody may be called so.

    >>> checked_name("ann@example.org")
    'ann@example.org'

    Raises:
        UsageError: It is empty, too long, begins or ends with a blank, or has characters that can't be seen.
    """
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise UsageError(
            f"the name {name[:LONGEST_NAME]!r} is not allowed: 1 to {LONGEST_NAME} printable characters, no blank at its ends"
        )
    return name


def hash_of(token: str) -> bytes:
    """
    Return what the tables keep of *token*: it has 256 random bits, so a plain hash can't be guessed back.

    >>> hash_of("phk_x").hex()[:8]
    '32911951'
    """
    return sha256(token.encode()).digest()


def token_of(drawn: bytes) -> str:
    """
    Return the token of TOKEN_BYTES random bytes, as its holder has it.

    >>> token_of(bytes(32))
    'phk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    """
    return TOKEN_PREFIX + urlsafe_b64encode(drawn).decode().rstrip("=")


def this_process(*, claimed: str | None = None, token: str | None = None) -> Person:
    """Return who acts through a command of this process: the holder of *token* if there is one, else the database's role."""
    return Person(
        user=system_user(),
        claimed=None if token is not None else claimed,
        token_hash=None if token is None else hash_of(token),
    )
