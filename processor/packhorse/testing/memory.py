"""What a handler gets in a test without a database: no connection, and an outbox that keeps messages in memory."""

from typing import Any, NoReturn

from packhorse.core.errors import UsageError
from packhorse.producer.rows import Draft
from packhorse.testing.deliveries import memory_emitted
from packhorse.testing.emitted import Emitted


class NoDatabase:
    """Lend nothing to a `def` handler; keep what it emits, checked and encoded as the outbox would."""

    def __init__(self, group: str) -> None:
        self._group = group
        self.emitted: list[Emitted[Any]] = []

    @property
    def connection(self) -> NoReturn:
        """Refuse."""
        raise _none("ctx.connection")

    @property
    def session(self) -> NoReturn:
        """Refuse."""
        raise _none("ctx.session")

    @property
    def pipeline(self) -> NoReturn:
        """Refuse."""
        raise _none("ctx.pipeline")

    def emit(self, drafts: list[Draft]) -> None:
        """Keep follow-ups."""
        self.emitted.extend(memory_emitted(draft, origin=self._group) for draft in drafts)


class AsyncNoDatabase(NoDatabase):
    """Lend nothing to an `async def` handler."""

    async def emit(self, drafts: list[Draft]) -> None:  # type: ignore[override]  # the same in the other colour
        """Keep follow-ups."""
        super().emit(drafts)


def _none(what: str) -> UsageError:
    return UsageError(
        f"the handler uses {what}, and the test gave no database: pass connection= to run_handler"
    )
