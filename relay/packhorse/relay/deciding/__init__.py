"""What the relay thinks: from what happened to what to do; no I/O, no clock, no chance."""
