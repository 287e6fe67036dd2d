"""Adapter to confluent-kafka."""
