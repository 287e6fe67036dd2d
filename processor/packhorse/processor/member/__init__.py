"""The member of the group: its loop, its partitions' desks, what it hands to lanes."""
