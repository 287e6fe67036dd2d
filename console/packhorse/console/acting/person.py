"""Who asks the service for something, as the rooms of the console know it; the relay's orders ask in the same words."""

from packhorse.core.person import (
    LONGEST_NAME,
    TOKEN_BYTES,
    TOKEN_PREFIX,
    Person,
    checked_name,
    hash_of,
    this_process,
    token_of,
)

__all__ = [
    "LONGEST_NAME",
    "TOKEN_BYTES",
    "TOKEN_PREFIX",
    "Person",
    "checked_name",
    "hash_of",
    "this_process",
    "token_of",
]
