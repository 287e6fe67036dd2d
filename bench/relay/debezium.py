"""Debezium's outbox connector on Kafka Connect, as another carrier of the same table."""

from collections.abc import Sequence

from bench.relay.ground import Place


def missing() -> str | None:
    """Say why it can't run here."""
    return "not built yet"


def prepare(place: Place) -> None:
    """Make publication and slot, so that nothing of the backlog is missed."""
    del place


def command(place: Place) -> Sequence[str]:
    """Return the command of a standalone Connect worker."""
    del place
    return []
