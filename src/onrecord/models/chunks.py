"""Chunks: what a model streams, as a closed union that every wire is parsed into."""

from __future__ import annotations

from msgspec import Raw, Struct

from onrecord.conversation.content import Citation
from onrecord.conversation.usage import Usage
from onrecord.models.request import ProjectionIssue

__all__ = (
    "Attempted",
    "CallChunk",
    "Chunk",
    "CitationChunk",
    "Finished",
    "NativeItem",
    "SearchChunk",
    "TextChunk",
    "ThinkingChunk",
)


class TextChunk(Struct, frozen=True, gc=False):
    """A piece of the reply's text; ``refusal`` when the wire declares it the model's own refusal."""

    text: str
    refusal: bool = False


class ThinkingChunk(Struct, frozen=True, gc=False):
    """A piece of reasoning in words."""

    text: str


class CallChunk(Struct, frozen=True, gc=False, kw_only=True):
    """A complete tool call; ``raw_args`` is what the model wrote, JSON or not."""

    wire_id: str
    name: str
    raw_args: str


class CitationChunk(Struct, frozen=True, gc=False):
    """Sources of the reply's text; offsets address the whole text of the round."""

    citations: tuple[Citation, ...]


class SearchChunk(Struct, frozen=True, gc=False, kw_only=True):
    """A provider-run search changed state: in_progress, searching, completed or failed."""

    id: str
    status: str


class NativeItem(Struct, frozen=True, gc=False, kw_only=True):
    """An output item for the continuation, verbatim; ``lost`` names what of it has no portable form."""

    raw: Raw
    lost: str = ""


class Attempted(Struct, frozen=True, gc=False, kw_only=True):
    """An attempt failed before anything reached the caller; another follows after ``wait_s``.

    ``model`` is the one that failed, ``usage`` what it counted all the same: a reply that did not fit was paid for.
    ``feedback`` is what the next attempt is told besides the request, ``left_out`` what of it another model cannot be
    sent, where the view lets that be left out.
    """

    attempt: int
    error: str
    status: int | None = None
    wait_s: float = 0.0
    model: str = ""
    feedback: str = ""
    usage: Usage | None = None
    left_out: tuple[ProjectionIssue, ...] = ()


class Finished(Struct, frozen=True, gc=False, kw_only=True):
    """The last chunk, exactly once: how the reply ended, what it cost, which model answered.

    A model that had another one answer in its place says which: ``provider``, ``protocol`` and ``scope`` are then
    those of the model that really answered, and empty otherwise.
    """

    finish: str = "stop"
    usage: Usage | None = None
    model: str = ""
    lost: tuple[str, ...] = ()
    provider: str = ""
    protocol: str = ""
    scope: str = ""


Chunk = TextChunk | ThinkingChunk | CallChunk | CitationChunk | SearchChunk | NativeItem | Attempted | Finished
