"""Streaming from a replication slot: the words, the decoder, the set-up."""
