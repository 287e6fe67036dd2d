"""Change the number of shards, at a barrier, without losing or swapping a row."""
