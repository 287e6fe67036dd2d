"""An explanation beside the way that it is about: which words belong to which branch, and which buttons to which command. Pure: no I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from packhorse.console.pages.leads import Lead, lead_of
from packhorse.console.pages.way import Branch, Way
from packhorse.console.truth.explanation import Action, Explanation, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """
    Something that a person can do: what for, the command, and where a page does it.

    Attributes:
        is_here: The page itself is where, so nothing has to lead there.
    """

    what: str
    command: str | None
    lead: Lead | None
    is_here: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One part of an explanation, for a page; `ways` are the ways in which something unknown comes about."""

    about: str
    stands: tuple[str, ...]
    ways: tuple[str, ...]
    waits: tuple[str, ...]
    next: tuple[str, ...]
    can: tuple[Choice, ...]
    nothing: str

    @property
    def is_open(self) -> bool:
        """Return whether it says more than what was: what is waited for, what comes, or what somebody can do."""
        return bool(self.waits or self.next or self.can)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worded:
    """A branch of the way, in words."""

    branch: Branch
    words: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """All words of one message: of itself, of its job, and of each branch."""

    message: Words
    job: Words | None
    branches: tuple[Worded, ...]


def told_of(way: Way, explanation: Explanation, *, is_job: bool, here: str) -> Told:
    """
    Return the words of *explanation* by what they are about; its parts come as those of the way do.

    A button that leads to the page at *here*, a path without its query, would lead nowhere: it is left out.
    """
    message, *rest = explanation.parts
    job = rest.pop(0) if is_job and rest else None
    pairs = zip(way.branches, rest, strict=True) if explanation.known else ()
    return Told(
        message=words_of(message, here=here),
        job=None if job is None else words_of(job, here=here),
        branches=tuple(Worded(branch=branch, words=words_of(part, here=here)) for branch, part in pairs),
    )


def words_of(part: Part, *, here: str) -> Words:
    """Return *part* for the page at *here*."""
    return Words(
        about=part.about,
        stands=tuple(text for text in part.stands if not text.startswith("- ")),
        ways=tuple(text.removeprefix("- ") for text in part.stands if text.startswith("- ")),
        waits=part.waits,
        next=part.next,
        can=tuple(_choices(part.can, here)),
        nothing=part.nothing,
    )


def first(told: Told, group: str | None, topic: str | None) -> list[Worded]:
    """Return the branches with that of *group*, and *topic*, in front: the one that was asked for."""

    def is_other(each: Worded) -> bool:
        of_group = group is None or each.branch.group == group
        return not (of_group and (topic is None or each.branch.topic == topic))

    return sorted(told.branches, key=is_other)


def _choices(actions: Sequence[Action], here: str) -> Iterator[Choice]:
    for each in actions:
        lead = lead_of(each.command)
        leads_here = lead is not None and lead.href.partition("?")[0] == here and "search" not in lead.href
        yield Choice(
            what=each.what, command=each.command, lead=None if leads_here else lead, is_here=leads_here
        )
