"""Several relay processes share the shards: who runs which."""
