"""Asking an embedder while a turn waits: whatever goes wrong with it is a ModelError, and it has so much time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

from onrecord.errors import ModelError, OnrecordError
from onrecord.memory.ports import Embedded, Embedder
from onrecord.turn.contained import ends_take

__all__ = ("EMBEDDING_S", "embedded", "embedded_soon")

EMBEDDING_S = 30.0
"""How long a turn waits for the vector of a text, tries of the embedder included."""


async def embedded_soon(embedder: Embedder, texts: Sequence[str], *, of: Literal["query", "passage"]) -> Embedded:
    """The vectors. ModelError (``model-timeout``) where it takes too long, and where it raised anything else."""
    try:
        async with asyncio.timeout(EMBEDDING_S):
            return await embedded(embedder, texts, of=of)
    except TimeoutError:
        raise ModelError(f"the embedder {embedder.name!r} did not answer in time", kind="timeout") from None


async def embedded(embedder: Embedder, texts: Sequence[str], *, of: Literal["query", "passage"]) -> Embedded:
    """The vectors, however long it takes. ModelError where the embedder raised anything else than an error of ours."""
    try:
        return await embedder.embed(texts, of=of)
    except TimeoutError:
        raise ModelError(f"the embedder {embedder.name!r} did not answer in time", kind="timeout") from None
    except BaseException as error:
        if isinstance(error, OnrecordError) or ends_take(error):
            raise
        kind = type(error).__name__
        raise ModelError(f"the embedder {embedder.name!r} failed: {kind}", kind="unknown") from error
