"""How far an order about a hold is, and what a page of the relay says first. Pure: no I/O, no clock."""

from collections.abc import Sequence

from packhorse.console.pages.offers import Stage
from packhorse.console.pages.showing import ago, number, worded
from packhorse.console.relaying.model import Held, HoldAct, HoldOrder, Relays
from packhorse.console.top.view import Trouble
from packhorse.core.errors import UsageError
from packhorse.core.text import counted
from packhorse.relay.orders.model import HoldView

_KINDS = {"row": "one row", "key": "one key", "partition": "a partition", "topic": "the topic"}


def headline_of(relays: Relays, troubles: Sequence[Trouble]) -> tuple[str, str]:
    """Return how the relay stands in a few words, and how that is coloured."""
    if troubles:
        return f"Relay: {counted(len(troubles), 'thing')} to look at", "bad"
    if holds := sum(shard.holds for shard in relays.shards):
        text = counted(holds, "hold heals", "holds heal")
        return f"Relay: all else flows; {text} or {'is' if holds == 1 else 'are'} on the way", "warn"
    if not relays.processes:
        return "Relay: none runs, and nothing waits", ""
    return "Relay: all is well", ""


def scope_said(view: HoldView) -> str:
    """Return what is held, in words, without the key."""
    scope = view.scope
    kind = scope.kind.name.lower()
    if scope.partition is not None:
        return f"partition {scope.partition} of {scope.aggregatetype}"
    return f"{_KINDS[kind]} of {scope.aggregatetype}" if kind != "topic" else f"all of {scope.aggregatetype}"


def standing_of(view: HoldView) -> str:
    """Return how a hold stands, told apart by what comes next: asked, releasing, released, or held and by whom it is let go."""
    if view.state == "ended":
        return "released"
    if view.state == "releasing":
        return "releasing"
    if view.hold.asked:
        return "asked"
    return "heals by itself" if view.hold.fault.heals else "waits for a person"


def next_said(view: HoldView) -> str:
    """Return what happens next with a hold, or what a person can do on its page."""
    if view.state == "ended":
        return "What waited is published, and new rows flow."
    if not view.owned:
        return "No relay owns the shard; it goes on from here when one runs."
    if view.state == "releasing":
        return "Its rows leave in order; it ends where it meets the relay."
    if view.hold.asked:
        return "The relay's owner begins the release within seconds."
    if view.hold.fault.heals:
        return "The relay looks by itself, at least twice a minute, and lets it go; a release makes it try at once."
    return "Nothing happens until somebody orders it: mend the reason, then release it" + (
        "." if view.hold.fault.id is None else "; or give up the row at fault."
    )


def stages_of(found: Held) -> tuple[Stage, ...]:
    """Return how far the release is that was ordered last, or goes on by itself; empty: none was ordered."""
    view, order = found.view, next((act for act in found.acts if act.act in {"release", "discard"}), None)
    if view.state == "held" and not view.hold.asked and order is None:
        return ()
    return (
        Stage(name="Asked", is_done=True, said=_asked(found, order)),
        _releasing(view),
        Stage(name="Released", is_done=view.state == "ended", said=_released(found)),
    )


def orders_text(orders: Sequence[HoldOrder]) -> str:
    """
    Return *orders* as one field of a form.

    >>> orders_text([HoldOrder(id=12, code="too_large", row=None, tries=1)])
    '12 too_large 1 -'
    """
    return ";".join(f"{each.id} {each.code} {each.tries} {each.row or '-'}" for each in orders)


def orders_from(text: str) -> list[HoldOrder]:
    """
    Return what `orders_text` made.

    >>> orders_from("12 too_large 1 -")
    [HoldOrder(id=12, code='too_large', row=None, tries=1)]

    Raises:
        UsageError: It is none of ours.
    """
    found = []
    for line in text.split(";"):
        parts = line.split(" ")
        if len(parts) != 4 or not (parts[0].isdecimal() and parts[2].isdecimal()):
            raise UsageError("the order is not as the preview gave it; nothing was done, preview it again")
        id_, code, tries, row = parts
        found.append(HoldOrder(id=int(id_), code=code, row=None if row == "-" else row, tries=int(tries)))
    return found


def _asked(found: Held, order: HoldAct | None) -> str:
    if order is not None:
        what = "a row was given up and the release ordered" if order.act == "discard" else "ordered"
        return worded("{} by {}, {}", what, order.actor, ago(order.at, found.at))
    if found.view.hold.fault.code == "republish":
        return "by an order to send a range again"
    return "by nobody: it heals by itself"


def _releasing(view: HoldView) -> Stage:
    hold = view.hold
    said: str
    if view.state == "held" and not hold.asked:
        said = worded(
            "held again: {}: {}; {} failed so far",
            hold.fault.code,
            hold.fault.reason,
            counted(hold.tries, "release"),
        )
        return Stage(name="Releasing", is_done=False, said=said, went_wrong=True)
    if view.state == "held":
        said = (
            "the relay's owner begins within seconds"
            if view.owned
            else "no relay owns the shard: the order stands, and whoever takes over begins"
        )
        return Stage(name="Releasing", is_done=False, said=said)
    rows = f"{number(hold.sent)} {'row' if hold.sent == 1 else 'rows'} published by its releases, when it was last saved"
    return Stage(name="Releasing", is_done=True, said=rows)


def _released(found: Held) -> str:
    view = found.view
    if view.ended_at is not None:
        return worded("{}: what waited is published, and new rows flow", ago(view.ended_at, found.at))
    if view.state == "releasing":
        return "its rows leave in order; it ends where it meets the relay"
    return "once what waited is published, in order"
