"""Outbox to Kafka: rows of committed transactions leave at least once, in the order in which their keys were committed."""
