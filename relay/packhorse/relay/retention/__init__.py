"""Retention of the outbox: day partitions ahead, old ones emptied once all in them is published, empty ones dropped."""
