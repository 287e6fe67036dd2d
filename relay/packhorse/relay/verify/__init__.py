"""Compare the outbox with its topics: what was published and is gone, what counts as published and is missing."""
