"""What keeps a handler from breaking the transaction that it was lent."""
