"""Where reading starts, and an audited reset."""
