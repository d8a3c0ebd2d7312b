"""Memory over conversations, and retrieval over documents."""

from onrecord.memory.episodes import Episodes
from onrecord.memory.facts import Fact, Facts
from onrecord.memory.memory import Memory
from onrecord.memory.ports import Embedder, Kept, Shelf, Space
from onrecord.memory.recalled import MemoryKept, MemoryRecalled, Served, cited, served
from onrecord.memory.shelf import PlainShelf
from onrecord.memory.strategies import Summary, Window

__all__ = (
    "Embedder", "Episodes", "Fact", "Facts", "Kept", "Memory", "MemoryKept", "MemoryRecalled", "PlainShelf", "Served",
    "Shelf", "Space", "Summary", "Window", "cited", "served",
)  # fmt: skip
