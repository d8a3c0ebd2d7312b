"""Features that decide what a request shows."""

from onrecord.prompt.window.compaction import Compaction

__all__ = ("Compaction",)
