"""Errors between the relay's adapters and its shell."""

from packhorse.core.errors import DatabaseUnavailable, InfrastructureError


class StatementFailed(InfrastructureError):
    """A statement failed and the connection is still good: what was read through it still holds."""


__all__ = ["DatabaseUnavailable", "StatementFailed"]
