"""Who may do what, for people and for programs."""

from typing import Any

from rich.console import RenderableType

from packhorse.console.operators.model import Change, Me, Operator
from packhorse.console.output import sheet, table


def operator_json(one: Operator) -> dict[str, Any]:
    """Return *one* for programs."""
    return {
        "kind": one.kind,
        "name": one.name,
        **one.rights,
        "expired": one.expired,
        "gone": one.gone,
        "made_at": one.made_at,
        "made_by": one.made_by,
    }


def operators_table(found: list[Operator]) -> RenderableType:
    """Return *found* for people."""
    rows = [(one.kind, one.name, one.said, one.expires_at or "never", one.made_by) for one in found]
    return table(("kind", "name", "may", "expires", "made by"), rows)


def change_json(change: Change) -> dict[str, Any]:
    """Return *change* for programs."""
    return {
        "before": change.before and operator_json(change.before),
        "after": change.after and operator_json(change.after),
        "may_connect": change.may_connect,
    }


def change_line(change: Change) -> str:
    """Return *change* for people."""
    one = change.after or change.before
    assert one is not None
    if change.is_none:
        return f"as it was: {one.kind} {one.name}: {one.said}"
    if change.after is None:
        return f"removed: {one.kind} {one.name}, which was {one.said}"
    was = "" if change.before is None else f", before: {change.before.said}"
    return f"{'given' if change.before is None else 'changed'}: {one.kind} {one.name}: {one.said}{was}"


def me_json(me: Me) -> dict[str, Any]:
    """Return *me* for programs."""
    return {
        "name": me.standing.name,
        "actor": me.actor,
        "role": me.standing.role,
        "rights": me.rights,
        "owner": me.is_owner,
        "by": [operator_json(one) for one in me.by],
    }


def me_sheet(me: Me) -> RenderableType:
    """Return *me* for people."""
    role = me.standing.role
    return sheet(
        [
            ("name", me.standing.name),
            ("on record as", me.actor),
            ("role", "none" if role is None else role),
            ("rights", ", ".join(me.rights) or "none"),
            *(("by", line) for line in me.lines()),
        ]
    )
