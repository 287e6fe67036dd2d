"""What a person can type, quoted for a shell. Pure."""

import shlex

from packhorse.core.text import inert

WHY = "TEXT"
"""Stands for the reason, which only the person knows."""


def command(*words: object, **options: object) -> str:
    r"""
    Return a line for a shell; options that are None are left out, and what a name from outside holds is only quoted.

    >>> command("status", "019b", group="it's", topic=None, why=WHY)
    'packhorse status 019b --group \'it\'"\'"\'s\' --why TEXT'
    """
    parts = ["packhorse", *map(str, words)]
    for name, value in options.items():
        if value is not None:
            parts += [f"--{name.replace('_', '-')}", str(value)]
    return inert(shlex.join(parts))


def redrive(message_id: object, group: str, topic: str) -> str:
    """Return how one message is redriven."""
    return command("quarantine", "redrive", message_id, group=group, topic=topic, why=WHY)


def discard(message_id: object, group: str, topic: str) -> str:
    """Return how one message is given up."""
    return command("quarantine", "discard", message_id, group=group, topic=topic, why=WHY)


def restore(message_id: object, group: str, topic: str) -> str:
    """Return how one that was given up is had back."""
    return command("quarantine", "restore", message_id, group=group, topic=topic, why=WHY)


def edit(message_id: object, group: str, topic: str) -> str:
    """Return how an edited copy is sent in the place of one message."""
    return command("quarantine", "edit", message_id, payload="FILE", group=group, topic=topic, why=WHY)


def show(message_id: object, group: str, topic: str) -> str:
    """Return how one quarantined message is looked at."""
    return command("quarantine", "show", message_id, group=group, topic=topic)
