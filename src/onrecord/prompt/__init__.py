"""Features that decide what a request shows, which model gets it, and how it is asked."""

from onrecord.prompt.cache_marks import CacheMarks
from onrecord.prompt.media import Degrade, Media
from onrecord.prompt.model_choice import Choice, Choose
from onrecord.prompt.thinking import Thinking
from onrecord.prompt.window.compaction import Compaction
from onrecord.prompt.window.window import Window

__all__ = ("CacheMarks", "Choice", "Choose", "Compaction", "Degrade", "Media", "Thinking", "Window")
