"""When a handler stops taking messages, and how it is tried again: the brake and the breaker, decided purely."""
