"""Features that decide what a request shows, which model gets it, and how it is asked.

Where things are:

- ``window/``: what of a long conversation is shown; `Window` in ``window/window``, `Compaction` in
  ``window/compaction``
- ``artifacts``: long results as tickets; the other ``artifact`` files: where they are kept, and what the record says
- ``buckets``: what the application knows right now (`RuntimeContext`)
- ``cache_marks``, ``media``, ``model_choice``, ``prompt_budget``, ``thinking``: a feature each
"""

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
from onrecord.prompt.window.own_plan import WindowLook, WindowUnit
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
    "WindowLook",
    "WindowUnit",
)
