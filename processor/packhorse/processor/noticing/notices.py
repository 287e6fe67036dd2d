"""The notice that somebody is needed, for the namespace of an installation."""

from dataclasses import replace

from packhorse.processor.noticing.deciding import Failing
from packhorse.processor.noticing.messages import NeedsPerson

_made: dict[str, type[NeedsPerson]] = {}


def notice_class(namespace: str) -> type[NeedsPerson]:
    """
    Return the message class of notices that go to the topic of *namespace*.

    >>> notice_class("airline").__packhorse__.topic
    'airline.packhorse-notice'
    """
    if namespace not in _made:
        kind = replace(NeedsPerson.__packhorse__, namespace=namespace)
        _made[namespace] = type("NeedsPerson", (NeedsPerson,), {"__packhorse__": kind, "__slots__": ()})
    return _made[namespace]


def notice_of(failing: Failing, *, namespace: str, group: str, contact: str | None) -> NeedsPerson:
    """Return the notice of *failing*; nothing of any message is in it."""
    return notice_class(namespace)(
        print=failing.print,
        group=group,
        topic=failing.topic,
        message_type=failing.type,
        reason=failing.reason,
        site=failing.site,
        count=failing.waiting,
        first_at=failing.first_at,
        last_at=failing.last_at,
        contact=contact,
    )
