"""The demo that goes on: traffic, trouble that heals, jobs and the console, until somebody ends it."""
