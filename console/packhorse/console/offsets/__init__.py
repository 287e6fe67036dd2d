"""Where a group stands in a topic, and a reset on the record."""
