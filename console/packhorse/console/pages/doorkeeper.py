"""Who may come in, and who is in: the one place that opens, keeps and ends sessions. No I/O but what it is handed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from packhorse.console.api.problem import Refused, too_many
from packhorse.console.api.signing import ASK_FOR_ONE, SignIns, token_in
from packhorse.console.pages.itsdangerous import Seal
from packhorse.console.pages.links import Links
from packhorse.console.pages.origins import Trusted
from packhorse.console.pages.sessions import Ended, How, Session
from packhorse.core.clock import Clock, Secrets
from packhorse.core.errors import NotSignedIn
from packhorse.core.ids import uuid7_from
from packhorse.core.person import TOKEN_PREFIX, Person, hash_of
from packhorse.core.rights import Standing

_WORD_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A session that goes on, and the cookie that its answer carries if it has to be made anew."""

    now: Session
    cookie: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """
    The ways in.

    Attributes:
        user_header: The header, in small letters, in which a trusted proxy names who is there; None: none does.
        links: Whether links that sign in once may be made; those who use one act as the console's own role.
    """

    user_header: str | None = None
    links: bool = True


class Doorkeeper:
    """
    Open, keep and end the sessions of one console.

    Args:
        standing: Says what somebody may do now; blocks. Raises what `Database.standing` does.
        trusted: Whose headers are believed.
        user: The operating system's user that the console runs as.
        tell_link: Hears of each link that is made, by its path; it goes to the terminal and nowhere else.
    """

    def __init__(
        self,
        standing: Callable[[Person], Standing],
        *,
        seal: Seal,
        trusted: Trusted,
        ways: Ways,
        user: str,
        clock: Clock,
        secrets: Secrets,
        sign_ins: SignIns,
        tell_link: Callable[[str], None],
    ) -> None:
        self._standing = standing
        self._seal = seal
        self._trusted = trusted
        self.ways = ways
        self._user = user
        self._clock = clock
        self._secrets = secrets
        self._sign_ins = sign_ins
        self._tell_link = tell_link
        self._links = Links()
        self._here = secrets.secret(16).hex()
        self._ended = Ended()

    def session_of(
        self, cookie: str | None, named: Sequence[str], *, peer: str, is_live: bool
    ) -> Kept | None:
        """
        Return the session that a request is of; None: nobody is signed in.

        Args:
            cookie: The cookie that it brings.
            named: What the header of the proxy says.
            peer: The address that is connected; what it says is believed if it is a trusted proxy's.
            is_live: The page asks by itself: that keeps no session alive.
        """
        now = self._now()
        found = None if cookie is None else self._seal.session(cookie)
        if found is not None and (found.is_over(now) or self._ended.has(found) or self._is_elsewhere(found)):
            found = None
        name = self._name_of(named, peer)
        if name is not None:
            if found is None or (found.how, found.who) != (How.PROXY, name):
                return self._opened(How.PROXY, name)
        elif found is not None and found.how is How.PROXY:
            return None  # the proxy speaks for nobody any more
        if found is None:
            return None
        used = found if is_live else found.used(now)
        return Kept(now=used, cookie=None if used is found else self._seal.cookie(used))

    def person(self, session: Session) -> Person:
        """Return who looks and acts in *session*."""
        return session.person(self._user)

    def standing(self, session: Session) -> Standing:
        """Return what the person of *session* may do now; raises what `Database.standing` does."""
        return self._standing(self.person(session))

    def mark(self, session: Session) -> str:
        """Return what the forms of *session* carry."""
        return self._seal.mark(session)

    def is_mark(self, mark: str, session: Session) -> bool:
        """Return whether a form of *session* would carry *mark*."""
        return self._seal.is_mark(mark, session)

    def number(self) -> UUID:
        """Return the number of a form that is shown now: of one number there is one act."""
        return uuid7_from(self._clock.now(), self._secrets.secret(10))

    def by_token(self, token: str, *, address: str) -> Kept:
        """
        Sign in whoever holds *token*.

        Raises:
            NotSignedIn: Nobody does, or not any more.
            Refused: The *address* has brought too many of those.
        """
        try:
            hashed = hash_of(token_in(f"Bearer {token.strip()}"))
        except NotSignedIn:
            raise NotSignedIn(
                f"that is no token: one begins with {TOKEN_PREFIX}; {ASK_FOR_ONE}"
            ) from None  # what was typed may be a secret of something else
        self._may_try(address, hashed)
        try:
            self._standing(Person(user="page", token_hash=hashed))
        except NotSignedIn:
            self._sign_ins.refused(address, hashed, now=self._clock.monotonic())
            raise
        self._sign_ins.known(hashed)
        return self._opened(How.TOKEN, hashed.hex())

    def by_link(self, word: str, *, address: str) -> Kept:
        """
        Sign in whoever has the link of *word*, once, whatever else came from the *address*: a stranger may share it.

        Raises:
            NotSignedIn: It was used, is too old, or none of ours.
            Refused: The same, and the *address* has brought too many of those.
        """
        now = self._clock.monotonic()
        if self.ways.links and self._links.use(word, now=now):
            return self._opened(How.LINK, self._here)
        hashed = hash_of(word)
        self._may_try(address, hashed)
        self._sign_ins.refused(address, hashed, now=now)
        raise NotSignedIn("the link was used already, or is too old; nobody was signed in")

    def make_link(self) -> bool:
        """Make a link and tell of it; return False where none may be made, or one was told of a moment ago, which is as good."""
        word = self._secrets.secret(_WORD_BYTES).hex()
        if not self.ways.links or not self._links.keep(word, now=self._clock.monotonic()):
            return False
        self._tell_link(f"/sign-in/link?word={word}")
        return True

    def end(self, session: Session) -> None:
        """Let *session* count no more."""
        self._ended.end(session)

    def _is_elsewhere(self, session: Session) -> bool:
        """Return whether a link of another process opened *session*: it lends that one's role, and not what we connect under."""
        return session.how is How.LINK and (session.who != self._here or not self.ways.links)

    def _name_of(self, named: Sequence[str], peer: str) -> str | None:
        """Return whom a trusted proxy names; a header that is there twice may be somebody else's, and names nobody."""
        if self.ways.user_header is None or len(named) != 1 or not self._trusted.has(peer):
            return None
        name = named[0].strip()
        return name if 1 <= len(name) <= 63 and name.isprintable() else None

    def _opened(self, how: How, who: str) -> Kept:
        now = self._now()
        made = Session(id=self._secrets.secret(16).hex(), how=how, who=who, made_at=now, used_at=now)
        return Kept(now=made, cookie=self._seal.cookie(made))

    def _may_try(self, address: str, hashed: bytes) -> None:
        if (seconds := self._sign_ins.wait(address, hashed, now=self._clock.monotonic())) > 0:
            raise Refused(too_many(seconds))

    def _now(self) -> float:
        return self._clock.now().timestamp()
