"""Jobs: submit and cancel them in the caller's own transaction, and see how they stand."""
