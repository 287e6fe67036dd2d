"""What every message written in a block has in common: correlation, causation, actor and tenant."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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


_NOTHING = MessageContext()
_current: ContextVar[MessageContext] = ContextVar("packhorse_message_context", default=_NOTHING)


def current_context() -> MessageContext:
    """Return the context of this thread or task."""
    return _current.get()


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
    inner = replace(_current.get(), **{name: value for name, value in given.items() if value is not None})
    token = _current.set(inner)
    try:
        yield inner
    finally:
        _current.reset(token)
