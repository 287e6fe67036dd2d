"""Alembic's environment and the numbered migrations; they ship in the wheel and run by `packhorse migrate`."""
