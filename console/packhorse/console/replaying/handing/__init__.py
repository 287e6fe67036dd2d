"""The runner's side of a replay: what it decides, and the portions that it hands over."""
