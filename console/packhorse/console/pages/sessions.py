"""
Who is signed in, in a browser: what a session is, and when it is over. Pure: no I/O, no clock.

A session names who it is and holds no right: what that person may do is asked of the database at every request, and once more in
the transaction of every act. So a right that is withdrawn is gone at once, whatever cookie somebody still has.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from enum import StrEnum

from packhorse.core.person import Person

LASTS = 12 * 3600.0
"""Seconds after which one has to sign in again, whatever was done meanwhile."""
IDLE = 2 * 3600.0
"""Seconds without a request after which a session is over."""
RENEW = 300.0
"""Seconds after which a request makes the cookie anew, so that not every answer carries one."""
_ENDED = 10_000


class How(StrEnum):
    """By what somebody has signed in."""

    LINK = "link"
    TOKEN = "token"  # noqa: S105 the word, not a secret
    PROXY = "proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """
    One browser that somebody has signed in with.

    Attributes:
        id: Drawn at random; forms are bound to it.
        who: The hash of the token in hex, or the name that the proxy gave; of a link the process that made it, whose own role acts.
        made_at, used_at: Seconds since the epoch.
    """

    id: str
    how: How
    who: str
    made_at: float
    used_at: float

    def is_over(self, now: float) -> bool:
        """Return whether it counts no more at *now*."""
        return not (self.made_at <= now + 60 and now < self.made_at + LASTS and now < self.used_at + IDLE)

    def used(self, now: float) -> "Session":
        """Return it as it is after a request at *now*: the same, unless its cookie has to be made anew."""
        return replace(self, used_at=now) if now - self.used_at >= RENEW else self

    def person(self, user: str) -> Person:
        """Return who looks and acts; *user* is the operating system's user that the console runs as."""
        match self.how:
            case How.LINK:
                return Person(user=user)
            case How.TOKEN:
                return Person(user="page", token_hash=bytes.fromhex(self.who))
            case How.PROXY:
                return Person(user="page", signed_in=self.who)


class Ended:
    """Sessions that were signed out before their time, in bounded memory."""

    def __init__(self) -> None:
        self._until: OrderedDict[str, float] = OrderedDict()

    def end(self, session: Session) -> None:
        """Take note that *session* counts no more."""
        self._until[session.id] = session.made_at + LASTS
        while len(self._until) > _ENDED:
            self._until.popitem(last=False)

    def has(self, session: Session) -> bool:
        """Return whether *session* was signed out."""
        return session.id in self._until
