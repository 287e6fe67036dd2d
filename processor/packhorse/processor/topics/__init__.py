"""The topics of a group: which there must be, and what stands between."""
