"""What a person is offered to do, before it is done: in words, with all that the act will be given. Pure: no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """
    One act that was previewed and waits for its confirmation.

    Attributes:
        title: What it is, as a question is put: "Redrive one message".
        happens: What will happen, a sentence each, in order.
        action: Where the form goes.
        hidden: What the act is given back of the preview, so that it is exactly what was shown.
        button: What the button says: the act by its name and number, never "OK".
        back: Where the person came from.
        may: Whether the person has the right as far as is known; the service decides.
        needs: That right, in words.
        is_danger: It can't be undone, or only with effort.
        asks_why: A reason goes on the record.
        facts: What it is about, by name.
        warnings: What the person should know before; shown so that nobody overlooks it.
    """

    title: str
    happens: tuple[str, ...]
    action: str
    button: str
    back: str
    may: bool
    needs: str
    hidden: Mapping[str, object] = field(default_factory=dict)
    is_danger: bool = False
    asks_why: bool = True
    facts: tuple[tuple[str, object], ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """
    One of the steps that an act goes through: asked, sent, proved.

    Attributes:
        is_done: Whether it has come to that, by what the tables say.
        said: When and by whom, or what it waits for.
        went_wrong: It has come to an end that nobody wanted.
    """

    name: str
    is_done: bool
    said: str
    went_wrong: bool = False
