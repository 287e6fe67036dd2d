"""How one group works: its processes, what waits in its tiers and behind its keys, what people have paused and who follows."""
