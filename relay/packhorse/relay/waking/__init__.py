"""Waking the relay by NOTIFY, as an option."""
