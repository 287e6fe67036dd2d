"""The cookie of a session and the mark of its forms: signed, so that nobody can make one of their own."""

from collections.abc import Sequence
from dataclasses import asdict

from itsdangerous import BadData, URLSafeSerializer
from itsdangerous.signer import Signer

from packhorse.console.pages.sessions import How, Session

KEY_BYTES = 32


class Seal:
    """
    Sign with the last of *keys*, and believe what any of them has signed: so a key can be changed while sessions last.

    Args:
        keys: Each of at least KEY_BYTES bytes, the newest last.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._cookies = URLSafeSerializer(list(keys), salt="packhorse.session")
        self._forms = Signer(list(keys), salt="packhorse.form")

    def cookie(self, session: Session) -> str:
        """Return the cookie of *session*."""
        made = self._cookies.dumps(asdict(session))
        return made if isinstance(made, str) else made.decode()

    def session(self, cookie: str) -> Session | None:
        """Return the session of *cookie*; None when it is none of ours, or of another version."""
        try:
            found = self._cookies.loads(cookie)
            return Session(**{**found, "how": How(found["how"])})
        except (BadData, TypeError, KeyError, ValueError):
            return None

    def mark(self, session: Session) -> str:
        """Return what every form of *session* carries, and no other page can know."""
        return self._forms.get_signature(session.id).decode()

    def is_mark(self, mark: str, session: Session) -> bool:
        """Return whether *mark* is of *session*; the time it takes tells nothing."""
        return mark.isascii() and self._forms.verify_signature(session.id.encode(), mark.encode())
