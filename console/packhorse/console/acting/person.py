"""Who asks the service for something, as the rooms of the console know it; the relay's orders ask in the same words."""

from packhorse.core.person import TOKEN_BYTES, TOKEN_PREFIX, Person, hash_of, this_process, token_of

__all__ = ["TOKEN_BYTES", "TOKEN_PREFIX", "Person", "hash_of", "this_process", "token_of"]
