"""Ask the database for the facts and signs that the judgement rests on."""

from collections.abc import Callable
from typing import Any

from packhorse.core.errors import DatabaseUnavailable, NotReady
from packhorse.relay.identity import sql
from packhorse.relay.identity.facts import Facts, Memory, Rows, Signs
from packhorse.relay.identity.judge import Verdict, judge, wants_signs
from packhorse.relay.shards import no_row

CHUNK = 50_000
"""Rows that one statement looks through: it ends long before any time-out, whatever waits."""

Ask = Callable[[str, dict[str, object]], list[tuple[Any, ...]]]
"""Runs one statement and returns all its rows; raises errors in our words."""


class Judge:
    """Judge one shard's position by the connection of whoever asks."""

    def __init__(self, schema: str, shard: int) -> None:
        self._schema = schema
        self._shard = shard
        self._sql = {
            name: getattr(sql, name).format(schema=schema, chunk=CHUNK)
            for name in ("FACTS", "RUNNING", "SWALLOWED", "AHEAD", "SEQUENCE")
        }

    def look(self, ask: Ask, memory: Memory | None = None) -> tuple[Facts, Verdict]:
        """
        Return the facts and the verdict on them.

        On the server that the position was saved on this is one short statement. On another one all rows drawn since the last save
        are read once, in steps.

        Raises:
            NotReady: The shard has no row.
            DatabaseUnavailable: The server is a standby, or does not answer.
        """
        found = ask(self._sql["FACTS"], {"shard": self._shard})
        if not found:
            raise NotReady(no_row(self._schema, self._shard))
        (
            saved, here, horizon, counter, reached, epoch, published, saved_at, seq_high, position, before, age, last_save,
        ) = found[0]  # fmt: skip
        if here is None:
            raise DatabaseUnavailable(
                "this server is a standby: it takes no writes; the relay waits for the primary"
            )
        facts = Facts(
            shard=self._shard, saved=saved, here=here, horizon=horizon, counter=counter, reached=reached,
            epoch=epoch, published=published, saved_at=saved_at, before=before, moved_age=age, moved_saved_at=last_save,
        )  # fmt: skip
        signs = (
            self._signs(ask, position, seq_high, known=facts.saved is not None)
            if wants_signs(facts)
            else None
        )
        return facts, judge(facts, signs, memory)

    def _signs(self, ask: Ask, position: str, seq_high: int, *, known: bool) -> Signs:
        """Look at the rows: open transactions first, so that one that ends meanwhile is seen by its rows."""
        count, first, id_ = ask(self._sql["AHEAD"], {})[0]
        ahead = Rows(count=count, more=count >= CHUNK, first_id=id_, first_seq=first)
        if not known:
            return Signs(ahead=ahead)
        running = ask(self._sql["RUNNING"], {"position": position})[0][0]
        sequence, highest = ask(self._sql["SEQUENCE"], {})[0]
        return Signs(
            running=running, ahead=ahead, swallowed=self._swallowed(ask, position, seq_high),
            sequence=sequence, highest=max(highest, seq_high),
        )  # fmt: skip

    def _swallowed(self, ask: Ask, position: str, after: int) -> Rows:
        """Return the first rows that the position has as published though they were drawn after the last save."""
        while True:
            looked, last, count, first, id_ = ask(
                self._sql["SWALLOWED"], {"position": position, "after": after}
            )[0]
            if count or looked < CHUNK:
                return Rows(count=count, more=looked >= CHUNK, first_id=id_, first_seq=first)
            after = last
