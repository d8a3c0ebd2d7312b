"""Features that decide what a request shows, which model gets it, and how it is asked."""

from onrecord.prompt.artifact_files import FileArtifacts
from onrecord.prompt.artifact_store import MemoryArtifacts
from onrecord.prompt.artifacts import Artifacts, Wants
from onrecord.prompt.buckets import ContextReader, ContextRegistry, ContextUpdate, RuntimeContext
from onrecord.prompt.cache_marks import CacheMarks
from onrecord.prompt.media import Degrade, Media
from onrecord.prompt.model_choice import Choice, Choose
from onrecord.prompt.prompt_budget import PromptBudget
from onrecord.prompt.thinking import Thinking
from onrecord.prompt.window.compaction import Compaction
from onrecord.prompt.window.window import Window

__all__ = (
    "Artifacts",
    "CacheMarks",
    "Choice",
    "Choose",
    "Compaction",
    "ContextReader",
    "ContextRegistry",
    "ContextUpdate",
    "Degrade",
    "FileArtifacts",
    "Media",
    "MemoryArtifacts",
    "PromptBudget",
    "RuntimeContext",
    "Thinking",
    "Wants",
    "Window",
)
