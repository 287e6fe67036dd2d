"""The tiers of the retry ladder: their names, the topics that carry them, and what of those may be deleted."""
