"""Parked keys: draining the followers behind a finished head, and who has claimed which key."""
