"""What every message written in a block has in common: correlation, causation, actor and tenant."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageContext:
    """
    What messages take over when the call that writes them does not say it.

    Attributes:
        correlation_id: What all of it belongs to.
        causation_id: What it was caused by.
        actor: Who caused it.
        tenant: For whom.
    """

    correlation_id: str | None = None
    causation_id: str | None = None
    actor: str | None = None
    tenant: str | None = None


class LazyContext(ABC):
    """
    Give the messages written between `enter` and `leave` what `make` returns, which is called only when one is written.

    It takes the place of the block around it, and holds as `message_context` does. For whoever enters one for each message
    that it handles: most write nothing. It refers to nothing that refers to it, so that no collector is needed.
    """

    __slots__ = ("_made", "_token")

    def __init__(self) -> None:
        self._made: MessageContext | None = None
        self._token: Token[MessageContext | LazyContext] | None = None

    @abstractmethod
    def make(self) -> MessageContext:
        """Return the context."""

    def enter(self) -> None:
        """Begin, in this thread or task."""
        self._token = _current.set(self)

    def leave(self) -> None:
        """End, in the same thread or task."""
        assert self._token is not None
        _current.reset(self._token)

    @property
    def made(self) -> MessageContext:
        """Return the context."""
        if self._made is None:
            self._made = self.make()
        return self._made


_NOTHING = MessageContext()
_current: "ContextVar[MessageContext | LazyContext]" = ContextVar(
    "packhorse_message_context", default=_NOTHING
)


def current_context() -> MessageContext:
    """Return the context of this thread or task."""
    found = _current.get()
    return found.made if isinstance(found, LazyContext) else found


@contextmanager
def message_context(
    *,
    correlation_id: str | None = None,
    causation_id: str | None = None,
    actor: str | None = None,
    tenant: str | None = None,
) -> Iterator[MessageContext]:
    """
    Give the messages written in the block what is passed here; the rest is kept from the block around it.

    It holds for this thread or task and those tasks that are started in it. Arguments of `emit` win.

    >>> with message_context(tenant="north"), message_context(actor="ada") as both:
    ...     both.tenant, both.actor
    ('north', 'ada')
    """
    given = {
        "correlation_id": correlation_id,
        "causation_id": causation_id,
        "actor": actor,
        "tenant": tenant,
    }
    inner = replace(current_context(), **{name: value for name, value in given.items() if value is not None})
    token = _current.set(inner)
    try:
        yield inner
    finally:
        _current.reset(token)
