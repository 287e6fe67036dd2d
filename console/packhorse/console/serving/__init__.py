"""The console as a process: one port for the pages and the API, and the runners of redrives and replays beside them."""
