"""What an explanation is: sentences for people, each of which rests on a fact."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that a person can do: what for, and the command where there is one."""

    what: str
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    One subject of an explanation: the message, or one group.

    Attributes:
        about: The subject.
        stands: Where it stands and why.
        waits: What it waits for.
        next: What comes next, and when.
        can: What a person can do; empty: nothing, for the reason that `nothing` gives.
    """

    about: str
    stands: tuple[str, ...]
    waits: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    can: tuple[Action, ...] = ()
    nothing: str = "nothing: it goes on by itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer in words; `known` is False when nothing is known of the subject."""

    known: bool
    standing: str
    parts: tuple[Part, ...]


@dataclass(slots=True)
class Draft:
    """A part that is being written."""

    about: str
    stands: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    next: list[str] = field(default_factory=list)
    can: list[Action] = field(default_factory=list)
    nothing: str = "nothing: it goes on by itself"

    def part(self) -> Part:
        """Return it as it is now."""
        return Part(
            about=self.about,
            stands=tuple(self.stands),
            waits=tuple(self.waits),
            next=tuple(self.next),
            can=tuple(self.can),
            nothing=self.nothing,
        )
