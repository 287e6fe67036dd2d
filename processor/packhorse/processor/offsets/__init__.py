"""Where reading starts, and what a reset sets; decided purely."""
