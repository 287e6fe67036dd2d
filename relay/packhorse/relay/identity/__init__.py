"""Which server a position was saved on, and whether it means the same on the server that answers now."""
