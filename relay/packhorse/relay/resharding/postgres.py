"""A change of the number of shards in the tables, each step one transaction."""

import json
from typing import Any

from packhorse.core.errors import NotReady, UsageError
from packhorse.core.person import Person
from packhorse.core.rights import Right
from packhorse.relay.postgres.acting import allowed
from packhorse.relay.postgres.connection import OWNER_RIGHTS, Reach, connect, translated
from packhorse.relay.resharding import sql
from packhorse.relay.resharding.model import Standing, Step, next_step
from packhorse.relay.shards import MOST_SHARDS, no_row

_DOING = "change the number of shards"


class PostgresResharding:
    """
    Read and change the shards, over one connection.

    Raises DatabaseUnavailable, and NotReady when a table or right is missing; then nothing was changed.
    """

    def __init__(self, url: str, schema: str, *, reach: Reach | None = None) -> None:
        """Connect."""
        self._connection = connect(url, reach or Reach())
        self._schema = schema
        self._sql = {
            name: getattr(sql, name).format(schema=schema)
            for name in (
                "STANDING", "LOCKED", "WIDE_HOLDS", "ORDER", "LEVEL", "KEEP_FIRST", "DROP_OTHERS", "MAKE_OTHERS", "DEAL_HOLDS", "ABORT",
                "AUDIT",
            )
        }  # fmt: skip

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def standing(self) -> list[Standing]:
        """Return how the shards stand."""
        with translated(self._connection):
            return self._read("STANDING")

    def advance(self, wanted: int, *, person: Person, why: str | None) -> tuple[Step, list[Standing]]:
        """
        Take the next step towards *wanted* shards and return it, with the shards as they stood before it.

        Raises:
            Forbidden: *person* may not administer, by now.
            UsageError: *wanted* is out of bounds, or another number is on its way.
            NotReady: A partition or topic is held; its scope can't be dealt out.
        """
        if not 1 <= wanted <= MOST_SHARDS:
            raise UsageError(f"{wanted} shards are not possible: 1 to {MOST_SHARDS}")
        with translated(self._connection, rights=OWNER_RIGHTS), self._connection.transaction():
            actor = allowed(self._connection, self._schema, person, Right.ADMINISTER, doing=_DOING)
            shards = self._read("LOCKED")
            if not shards:
                raise NotReady(no_row(self._schema, 0))
            other = {shard.wanted for shard in shards if shard.finish} - {wanted}
            if other:
                raise UsageError(
                    f"a change to {other.pop()} shards is on its way: go on with that number, or --abort it first"
                )
            step = next_step(shards, wanted)
            if step in {Step.ORDER, Step.SWITCH}:
                self._refuse_wide_holds(ordered=step is Step.SWITCH)
            self._take(step, shards, wanted=wanted, actor=actor, why=why)
        return step, shards

    def _take(self, step: Step, shards: list[Standing], *, wanted: int, actor: str, why: str | None) -> None:
        if step is Step.LEVEL:
            self._execute("LEVEL")
        if step is Step.SWITCH:
            for name in ("KEEP_FIRST", "DROP_OTHERS", "MAKE_OTHERS", "DEAL_HOLDS"):
                self._execute(name, wanted=wanted)
        if step is Step.ORDER:
            self._execute("ORDER", wanted=wanted)
        if step in {Step.ORDER, Step.SWITCH}:
            detail = json.dumps({"from": len(shards), "to": wanted})
            act = "shards-order" if step is Step.ORDER else "shards-switch"
            self._execute("AUDIT", actor=actor, act=act, detail=detail, why=why)

    def _refuse_wide_holds(self, *, ordered: bool) -> None:
        rows = self._execute("WIDE_HOLDS")
        if rows:
            id_, scope, aggregatetype = rows[0]
            step = "wait until it ends (`packhorse relay holds`), or release it"
            if ordered:
                step = (
                    "every shard stands still for the change, so that nothing releases it: take the change back with --abort, "
                    "and order it again when the hold has ended"
                )
            raise NotReady(
                f"hold {id_} ({scope} of {aggregatetype}) is open, and the rows of a {scope} belong to several shards afterwards; {step}"
            )

    def abort(self, *, person: Person, why: str | None) -> bool:
        """
        Take an order back; False when there is none.

        Raises:
            Forbidden: *person* may not administer.
        """
        with translated(self._connection, rights=OWNER_RIGHTS), self._connection.transaction():
            actor = allowed(self._connection, self._schema, person, Right.ADMINISTER, doing=_DOING)
            shards = self._read("LOCKED")
            if not any(shard.finish for shard in shards):
                return False
            self._execute("ABORT")
            detail = json.dumps({"shards": len(shards)})
            self._execute("AUDIT", actor=actor, act="shards-abort", detail=detail, why=why)
        return True

    def _read(self, name: str) -> list[Standing]:
        return [
            Standing(shard=shard, owner=owner, horizon=horizon, target=target, finish=finish, wanted=wanted)
            for shard, owner, horizon, target, finish, wanted in self._execute(name)
        ]

    def _execute(self, name: str, **values: object) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(self._sql[name], values or None)
        return cursor.fetchall() if cursor.description else []
