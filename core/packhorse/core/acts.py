"""Acts of people: who acts, and why; what every part puts on the record in the same words."""

from dataclasses import dataclass

from packhorse.core.errors import SettingsError, UsageError

MAX_WHY = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """
    Who acts: the operating system's user and the database's role; `claimed` is a name somebody gave, recorded as such.

    >>> Actor(user="ann", role="ops").text, Actor(user="ci", role="ops", claimed="ann").text
    ('ann (role ops)', 'ann (claimed by ci, role ops)')

    Raises:
        SettingsError: The claimed name is empty or too long.
    """

    user: str
    role: str
    claimed: str | None = None

    def __post_init__(self) -> None:
        if self.claimed is not None and not 1 <= len(self.claimed.strip()) <= MAX_WHY:
            raise SettingsError(f"--actor of {len(self.claimed)} characters; 1 to {MAX_WHY} are allowed")

    @property
    def text(self) -> str:
        """Return the actor as the audit shows it."""
        if self.claimed is None:
            return f"{self.user} (role {self.role})"
        return f"{self.claimed} (claimed by {self.user}, role {self.role})"


def checked_why(why: str) -> str:
    """
    Return *why* without blanks around it.

    Raises:
        UsageError: It is empty or too long.
    """
    text = why.strip()
    if not 1 <= len(text) <= MAX_WHY:
        raise UsageError(f"--why has {len(text)} characters; say the reason in 1 to {MAX_WHY}")
    return text
