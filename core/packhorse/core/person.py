"""Who asks for an act or a look, before the database has said what they may do."""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256

from packhorse.core.acts import Actor
from packhorse.core.rights import Standing
from packhorse.core.users import system_user

TOKEN_PREFIX = "phk_"  # noqa: S105 the beginning of every token, so that one is known for what it is where it leaks
"""What a token begins with."""
TOKEN_BYTES = 32
"""Random bytes of a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """
    Somebody who looks or acts: under the database's role that is connected, or as the holder of a token.

    Attributes:
        user: The operating system's user of this process; on record beside the role.
        claimed: A name that the user gave; on record as claimed. Not with a token, which names its holder.
        token_hash: SHA-256 of the token; None: the role that is connected acts.
    """

    user: str
    claimed: str | None = None
    token_hash: bytes | None = None

    def actor(self, standing: Standing) -> str:
        """Return who acts, as the audit shows it."""
        if self.token_hash is not None:
            return f"{standing.name} (token)"
        return Actor(user=self.user, role=standing.name, claimed=self.claimed).text


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
