"""Errors of the local stack; they stand below the tree of `packhorse.core.errors`."""

from packhorse.core.errors import NotReady, PackhorseError


class StackFailed(PackhorseError):
    """A service did not start, stop or arrive; the text ends with the tail of its log where it has one."""


class NotRunning(NotReady):
    """Name what does not run in which folder, and how to start it."""
