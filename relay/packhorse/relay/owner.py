"""What people call this process."""

import os
import socket


def owner_name() -> str:
    """Return how people find this process: machine and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"
