"""A function that answers in a model's place when no model does."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from onrecord.errors import ModelError
from onrecord.models.chunks import Chunk, Finished, TextChunk
from onrecord.models.model import ModelCard, scope_of
from onrecord.models.request import Request
from onrecord.models.rerouting import answered_by

__all__ = ("FallbackFunction", "stand_in")

FallbackFunction = Callable[[Request, ModelError], Awaitable[str | Sequence[Chunk]] | str | Sequence[Chunk]]
"""Stands in for the model: gets the request and the last error, and gives a text or chunks."""


async def stand_in(function: FallbackFunction, request: Request, error: ModelError) -> tuple[Chunk, ...]:
    """What the function says, ending in a `Finished` that names it. ModelError when it raises or gives nothing."""
    name = getattr(function, "__name__", "function")
    try:
        said = function(request, error)
        chunks = _chunks(await said if inspect.isawaitable(said) else said)
    except ModelError:
        raise
    except Exception as problem:
        raise ModelError(f"the fallback {name!r} raised {type(problem).__name__}", provider="fallback") from problem
    if not chunks:
        raise ModelError(f"the fallback {name!r} gave nothing", provider="fallback")
    held: tuple[object, ...] = chunks
    if odd := next((one for one in held if not isinstance(one, Chunk)), None):
        raise ModelError(f"the fallback {name!r} gave a {type(odd).__name__}, no chunk", provider="fallback")
    if any(isinstance(chunk, Finished) for chunk in chunks[:-1]):
        raise ModelError(f"the fallback {name!r} went on behind the end of its reply", provider="fallback")
    card = ModelCard(provider="fallback", model=name, protocol="fallback")
    last = chunks[-1]
    ended = last if isinstance(last, Finished) else Finished()
    ended = answered_by(card, replace(request, scope=scope_of(card, None)), ended)
    return (*(chunks[:-1] if isinstance(last, Finished) else chunks), ended)


def _chunks(said: str | Sequence[Chunk]) -> tuple[Chunk, ...]:
    if isinstance(said, str):
        return (TextChunk(said),) if said else ()
    return tuple(said)
