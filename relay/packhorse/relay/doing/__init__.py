"""What the relay does: the loop, and the hands for each kind of command."""
