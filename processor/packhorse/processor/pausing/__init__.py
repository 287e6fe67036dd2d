"""Pauses that people order: they hold through restarts and rebalances until somebody lets go."""
