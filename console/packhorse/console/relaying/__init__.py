"""The relay as people see it, and their orders about what it holds: carried out by its owner alone."""
