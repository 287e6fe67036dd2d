"""Where the watchdog was."""

from packhorse.processor.watching.watchdog import Watchdog

__all__ = ["Watchdog"]
