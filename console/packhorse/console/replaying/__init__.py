"""Replay: a range of a topic is read again and handed to a group's processors, as a run of its own."""
