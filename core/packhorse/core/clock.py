"""
Time, chance and new ids: the one module that asks the operating system for them.

Everything else takes them as arguments or through the `Clock` and `Chance` ports, so that one seed replays a run.
"""

import os
import random
import time
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from packhorse.core.ids import uuid7_from


class Clock(Protocol):
    """Tell the time; both never block."""

    def now(self) -> datetime:
        """Return the wall-clock time, aware, UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences mean anything."""


class Chance(Protocol):
    """Draw chance and identity."""

    def fraction(self) -> float:
        """Return a number in [0, 1)."""

    def token(self) -> UUID:
        """Return an id that nobody else has: for leases and tokens, never ordered."""

    def message_id(self, now: datetime) -> UUID:
        """Return a new UUIDv7 of the time *now*."""


class Secrets(Protocol):
    """Draw what nobody can guess."""

    def secret(self, size: int) -> bytes:
        """Return *size* random bytes, for what opens something to whoever has it."""


class SystemClock:
    """Be the machine's clock."""

    def now(self) -> datetime:
        """Return the wall-clock time, aware, UTC."""
        return datetime.now(UTC)

    def local(self, at: datetime) -> datetime:
        """Return *at* in the machine's own zone, for the eyes of whoever sits at it."""
        return at.astimezone()

    def monotonic(self) -> float:
        """Return the machine's monotonic seconds."""
        return time.monotonic()


class SystemChance:
    """Be the machine's source of chance."""

    def fraction(self) -> float:
        """Return a number in [0, 1)."""
        return random.random()

    def token(self) -> UUID:
        """Return a random UUIDv4."""
        return UUID(bytes=os.urandom(16), version=4)

    def message_id(self, now: datetime) -> UUID:
        """Return a new UUIDv7 of the time *now*."""
        return uuid7_from(now, os.urandom(10))

    def secret(self, size: int) -> bytes:
        """Return *size* random bytes, for what opens something to whoever has it."""
        return os.urandom(size)


SYSTEM_CLOCK = SystemClock()
SYSTEM_CHANCE = SystemChance()
