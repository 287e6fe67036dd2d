"""Acts on one message in quarantine, and on what is known of a group of failures, as they are offered. Pure: no I/O."""

from uuid import UUID

from packhorse.console.pages.offers import Offer
from packhorse.console.pages.resting import address, resting_at
from packhorse.console.pages.showing import number
from packhorse.console.quarantine.groups.model import GroupShown
from packhorse.console.quarantine.redrive import DISCARD, REDRIVE, Order, Preview
from packhorse.console.quarantine.restoring.deciding import RestorePreview
from packhorse.core.text import counted

TITLES = {REDRIVE: "Redrive one message", DISCARD: "Discard one message"}
_PROVES = "this only asks for it: the message's page then tells apart whether it is asked, sent, and proved by an outcome"


def offer_of(preview: Preview, *, may: bool) -> Offer:
    """Return the offer of the redrive or discard that was previewed."""
    order, message = preview.order, preview.message
    return Offer(
        title=TITLES[preview.act],
        facts=(
            ("Message", str(order.id)),
            ("Group and topic", f"{order.group}, {message.topic}/{message.partition}/{message.offset}"),
            ("Type", message.type or "none"),
            ("It stopped by", f"{message.reason}, after {counted(message.attempts, 'attempt')}"),
            ("Error", message.error or "none on record"),
        ),
        happens=tuple(_sentence(step) for step in (*preview.steps, *_proof(preview.act))),
        warnings=tuple(_sentence(text) for text in preview.warnings),
        action=resting_at(order.id, order.group, order.topic, preview.act),
        hidden=hidden_of(order),
        button=f"{preview.act.capitalize()} this message",
        back=resting_at(order.id, order.group, order.topic),
        may=may,
        needs="act",
        is_danger=preview.act == DISCARD,
    )


def restore_offer(preview: RestorePreview, *, may: bool) -> Offer:
    """Return the offer of the restoring that was previewed."""
    order, message = preview.order, preview.message
    warning = "it takes effect out of order: later messages of its key have run, or may have"
    return Offer(
        title="Restore one message",
        facts=(
            ("Message", str(order.id)),
            ("Group and topic", f"{order.group}, {message.topic}/{message.partition}/{message.offset}"),
            ("Type", message.type or "none"),
            ("It stopped by", message.reason),
            ("Later messages of its key", preview.since.said),
        ),
        happens=tuple(_sentence(step) for step in preview.steps),
        warnings=(_sentence(warning),) if preview.out_of_order else (),
        action=resting_at(order.id, order.group, order.topic, "restore"),
        hidden={
            **hidden_of(order),
            "discarded_at": order.discarded_at and order.discarded_at.isoformat(),
            "ordered": "true" if order.ordered else "false",
        },
        button="Restore this message",
        back=resting_at(order.id, order.group, order.topic),
        may=may,
        needs="act",
    )


def unmask_offer(message_id: UUID, group: str | None, topic: str | None, *, may: bool) -> Offer:
    """Return the offer to show one message with nothing masked."""
    return Offer(
        title="Show personal fields",
        facts=(("Message", str(message_id)),),
        happens=(
            "It goes on record that you have seen this message, when and why, before anything of it is decoded.",
            "Payload, headers and key are shown once, as they are; no address leads to what is shown.",
        ),
        action=resting_at(message_id, group, topic, "unmask"),
        button="Show this message unmasked",
        back=resting_at(message_id, group, topic),
        may=may,
        needs="see personal fields",
    )


def acknowledge_offer(shown: GroupShown, *, may: bool) -> Offer:
    """Return the offer to acknowledge a group of failures."""
    known = shown.group.known
    contact = None if known is None else known.contact
    told = f"Its contact, {contact}, is told no more when it grows." if contact else "Nobody is told of it."
    return _about_group(
        shown,
        "acknowledge",
        title="Acknowledge a group of failures",
        happens=(
            "It goes on record that you know of it, and why nothing has to be done just now.",
            told,
            "The list shows it quietly, with how many have come since. No message is touched.",
        ),
        button="Acknowledge this group",
        may=may,
    )


def take_back_offer(shown: GroupShown, *, may: bool) -> Offer:
    """Return the offer to take an acknowledgement back."""
    return _about_group(
        shown,
        "unacknowledge",
        title="Take an acknowledgement back",
        happens=(
            "The group counts as one that nobody knows of again; its contact, if it has one, is told when it grows.",
            "Who had acknowledged it stays on record.",
        ),
        button="Take it back",
        may=may,
    )


def hidden_of(order: Order) -> dict[str, object]:
    """Return what the act is given back of *order*, besides what its address names."""
    return {
        "attempt": order.attempt,
        "redrives": order.redrives,
        "quarantined_at": order.quarantined_at.isoformat(),
    }


def group_at(print_: str, act: str = "") -> str:
    """Return where a group of failures is shown, or where *act* on it is offered."""
    return address(f"/quarantine/failures/{print_}{act and '/' + act}")


def _about_group(
    shown: GroupShown, act: str, *, title: str, happens: tuple[str, ...], button: str, may: bool
) -> Offer:
    group, failure = shown.group, shown.group.failure
    assert failure is not None, "a group with a print is one of failures"
    return Offer(
        title=title,
        facts=(
            ("Failure", group.name),
            ("Group and topic", f"{failure.group}, {failure.topic}"),
            ("Type and reason", f"{failure.type or 'no type'}, {failure.reason}"),
            ("In quarantine", number(group.quarantined)),
        ),
        happens=happens,
        action=group_at(group.name, act),
        button=button,
        back=group_at(group.name),
        may=may,
        needs="act",
    )


def _proof(act: str) -> tuple[str, ...]:
    return (_PROVES,) if act == REDRIVE else ()


def _sentence(text: str) -> str:
    """
    Return *text* as a sentence of its own.

    >>> _sentence("in one transaction: it is marked")
    'In one transaction: it is marked.'
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
