"""Memory over conversations, and retrieval over documents."""

from onrecord.memory.corpus import Corpus, Hit, Indexed
from onrecord.memory.documents import Document, Heading, Passage, document_id
from onrecord.memory.episodes import Episodes
from onrecord.memory.facts import Fact, Facts
from onrecord.memory.hashing_embedder import HashingEmbedder
from onrecord.memory.loaders import load, load_folder
from onrecord.memory.memory import Memory
from onrecord.memory.plain_shelf import PlainShelf
from onrecord.memory.ports import Embedder, Kept, Shelf, Space
from onrecord.memory.recalled import MemoryKept, MemoryRecalled, Rejected, Served, cited, served
from onrecord.memory.retrieve import Retrieve
from onrecord.memory.splitters import by_heading, by_paragraph, fixed, whole
from onrecord.memory.strategies import Recent, Summary
from onrecord.memory.vector_index import NumpyIndex, UsearchIndex

__all__ = (
    "Corpus",
    "Document",
    "Embedder",
    "Episodes",
    "Fact",
    "Facts",
    "HashingEmbedder",
    "Heading",
    "Hit",
    "Indexed",
    "Kept",
    "Memory",
    "MemoryKept",
    "MemoryRecalled",
    "NumpyIndex",
    "Passage",
    "PlainShelf",
    "Recent",
    "Rejected",
    "Retrieve",
    "Served",
    "Shelf",
    "Space",
    "Summary",
    "UsearchIndex",
    "by_heading",
    "by_paragraph",
    "cited",
    "document_id",
    "fixed",
    "load",
    "load_folder",
    "served",
    "whole",
)  # fmt: skip
