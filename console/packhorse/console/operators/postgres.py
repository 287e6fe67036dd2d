"""The table of those who have rights."""

from typing import Any

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Acting, Database
from packhorse.console.operators import sql
from packhorse.console.operators.model import Change, Kind, Me, Operator, Wanted, refusal_of_last
from packhorse.core.errors import UnknownId, UsageError
from packhorse.core.rights import Right, Role

_DOING = "say who may do what"
_TURN = "operators"


class OperatorTables:
    """Those who have rights in one database; each method raises what `Database.reading` or `Database.acting` does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, person: Person) -> list[Operator]:
        """Return all who have rights."""
        with self._database.reading(person, right=Right.SEE, doing="see who may do what") as rows:
            return [_operator(row) for row in rows.all(sql.ALL)]

    def me(self, person: Person) -> Me:
        """Return who *person* is to the installation."""
        standing = self._database.standing(person)
        with self._database.reading(person) as rows:
            kind = Kind.ROLE if person.is_role else Kind.TOKEN if person.signed_in is None else Kind.USER
            mine = [_operator(row) for row in rows.all(sql.MINE, {"kind": kind, "name": standing.name})]
            owns = person.is_role and bool(rows.all(sql.OWNER)[0]["owns"])
        return Me(standing=standing, actor=person.actor(standing), by=tuple(mine), is_owner=owns)

    def put(
        self, person: Person, wanted: Wanted, *, token_hash: bytes | None, renew: bool, why: str | None
    ) -> Change:
        """
        Give *wanted*, on the record with what was there before; nothing is recorded where nothing changes.

        Acts on rights come one after another. A right that an act is being done by is changed once that act is over.

        Raises:
            Forbidden: The person is no admin, by now.
            UnknownId: There is no such role in the database's server.
            UsageError: The name has a token and *renew* is not said; or nobody could come in any more.
        """
        with self._database.acting(person, Right.ADMINISTER, doing=_DOING, turn=_TURN) as act:
            may_connect = wanted.kind is not Kind.ROLE or _role(act, wanted.name)
            before = _one(act, wanted.kind, wanted.name)
            if before is not None and token_hash is not None and not renew:
                raise UsageError(
                    f"{wanted.name} has a token already; --renew gives a new one, and the one before is void at once"
                )
            if before is not None and token_hash is None and wanted.is_had_by(before):
                act.left_alone()
                return Change(before=before, after=before, may_connect=may_connect)
            values = {
                "kind": wanted.kind,
                "name": wanted.name,
                "role": wanted.role,
                "personal": wanted.personal,
                "edit": wanted.edit,
                "token": token_hash,
                "by": act.actor,
                "lasts": wanted.lasts,
            }
            act.count(sql.PUT, values)
            after = _one(act, wanted.kind, wanted.name)
            return _recorded(act, person, Change(before=before, after=after, may_connect=may_connect), why)

    def remove(self, person: Person, kind: Kind, name: str, *, why: str | None) -> Change:
        """
        Take all rights of *name* away, on the record.

        Raises:
            Forbidden: The person is no admin, by now.
            UnknownId: Nobody of that name has rights.
            UsageError: Nobody could come in any more.
        """
        with self._database.acting(person, Right.ADMINISTER, doing=_DOING, turn=_TURN) as act:
            before = _one(act, kind, name)
            if before is None:
                raise UnknownId(
                    f"no {kind} {name!r} has rights here; `packhorse operators list` shows who has"
                    + (", --token names the holder of a token and --user a user" if kind is Kind.ROLE else "")
                )
            act.count(sql.REMOVE, {"kind": kind, "name": name})
            return _recorded(act, person, Change(before=before, after=None), why)


def _recorded(act: Acting, person: Person, change: Change, why: str | None) -> Change:
    """Refuse a change that leaves nobody, else put it on the record: names and rights, never a token."""
    one = change.after or change.before
    assert one is not None
    admins = act.all(sql.OTHER_ADMINS, {"kind": one.kind, "name": one.name})[0]
    owns = person.is_role and bool(act.all(sql.OWNER)[0]["owns"])
    refusal = refusal_of_last(
        change,
        others=admins["others"],
        users=admins["users"],
        signed_in=person.signed_in is not None,
        is_owner=owns,
    )
    if refusal is not None:
        raise refusal
    name = "remove" if change.after is None else "add" if change.before is None else "change"
    detail = {
        "kind": one.kind.value,
        "name": one.name,
        "before": change.before and change.before.rights,
        "after": change.after and change.after.rights,
    }
    act.record(f"operators-{name}", why=why, detail=detail)
    return change


def _role(act: Acting, name: str) -> bool:
    found = act.first(sql.ROLE, {"name": name})
    if found is None:
        raise UnknownId(
            f"the database's server has no role {name!r}: CREATE ROLE makes it; for somebody without a role of the database "
            "there is `packhorse operators token`, and --user for whom a proxy signs in"
        )
    return bool(found["may_connect"])


def _one(act: Acting, kind: Kind, name: str) -> Operator | None:
    row = act.first(sql.ONE, {"kind": kind, "name": name})
    return None if row is None else _operator(row)


def _operator(row: dict[str, Any]) -> Operator:
    return Operator(**{**row, "kind": Kind(row["kind"]), "role": Role(row["role"])})
