"""Names of topics and groups; the rules for names are Kafka's own (org.apache.kafka.common.internals.Topic)."""

import re
from functools import lru_cache

from packhorse.core.errors import SettingsError

TOPIC_MAX = 249
_LEGAL = re.compile(r"[A-Za-z0-9._-]+")
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*")
IDENTIFIER_MAX = 63


@lru_cache(maxsize=1_024)  # asked seven times for each job that is submitted; types are few
def topic_name(namespace: str, aggregatetype: str) -> str:
    """
    Return the topic of an aggregate type.

    >>> topic_name("airline", "aircraft")
    'airline.aircraft'

    Raises:
        SettingsError: The name is no legal topic name.
    """
    return checked_topic(f"{namespace}.{aggregatetype}")


def retry_topic(source: str, group: str, delay: str) -> str:
    """
    Return the topic of one tier of *group*'s retry ladder.

    >>> retry_topic("airline.aircraft", "figures", "0s")
    'airline.aircraft.figures.retry.0s'

    Raises:
        SettingsError: The name is no legal topic name.
    """
    return checked_topic(f"{source}.{group}.retry.{delay}")


def quarantine_topic(source: str, group: str) -> str:
    """
    Return the topic in which *group* keeps the messages of *source* that a person must decide on.

    >>> quarantine_topic("airline.aircraft", "figures")
    'airline.aircraft.figures.quarantine'

    Raises:
        SettingsError: The name is no legal topic name.
    """
    return checked_topic(f"{source}.{group}.quarantine")


def checked_topic(name: str) -> str:
    """
    Return *name* when Kafka takes it as a topic's.

    Raises:
        SettingsError: It is empty, ".", "..", longer than 249, or has a character Kafka refuses.
    """
    if name in {".", ".."} or not _LEGAL.fullmatch(name) or len(name) > TOPIC_MAX:
        raise SettingsError(
            f"topic name {name!r} is not legal: 1 to {TOPIC_MAX} of A-Z a-z 0-9 . _ - are allowed; "
            "shorten or change the namespace, aggregate type or group"
        )
    return name


def checked_identifier(name: str, *, what: str) -> str:
    """
    Return *name* when Postgres takes it as an identifier without quotes; *what* is said in the error.

    Raises:
        SettingsError: It is not lower case, begins with a digit, is too long, or is reserved for Postgres ("pg_").
    """
    if not _IDENTIFIER.fullmatch(name) or len(name) > IDENTIFIER_MAX or name.startswith("pg_"):
        raise SettingsError(
            f"{what} {name!r} is not allowed: 1 to {IDENTIFIER_MAX} of a-z 0-9 _, not beginning with a digit or pg_"
        )
    return name
