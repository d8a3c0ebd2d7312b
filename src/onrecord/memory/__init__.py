"""Memory over conversations, and retrieval over documents.

Where things are:

- ``memory``: the feature; ``strategies``, ``facts``, ``episodes``: what it keeps and shows again
- ``retrieve``: the feature; ``loaders``, ``html_text``, ``pdf_text``, ``splitters``: from files to ``documents`` and
  their passages; ``corpus``: passages ready to be searched, by ``keyword_index`` and ``vector_index``
- both: ``ports`` (shelves and embedders), ``plain_shelf``, ``hashing_embedder``; ``terms`` and ``ranking``: words, and
  how well they fit; ``framing``: the frame of a text; ``recalling``: how framed texts join requests; ``recalled``: what
  the record says, and citations
"""

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
