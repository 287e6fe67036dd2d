"""Debezium as the carrier: its configuration, and the moves there and back."""
