"""A reply that is held back until it is whole: read as a round, and checked against its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from onrecord.conversation.content import CallRef, Refusal, Text, Thinking
from onrecord.conversation.messages import Round, ToolCall
from onrecord.errors import OutputInvalid
from onrecord.jsonio import Json, dumps, loads, read_object, writable
from onrecord.models.call_rules import Misfit
from onrecord.models.chunks import CallChunk, Chunk, TextChunk, ThinkingChunk
from onrecord.models.request import Request
from onrecord.tools.issues import listed
from onrecord.tools.keywords import Check
from onrecord.tools.problems import compiled
from onrecord.tools.schema import decoded_answer

__all__ = ("Validate", "fits_shape", "round_of")

Validate = Callable[[Request, Round], "Misfit | None"]
"""Says why a reply does not fit what was asked for; None when it does."""


def round_of(chunks: Iterable[Chunk], id: str = "held") -> Round:
    """What these chunks say, without what only a record needs of them."""
    content: list[Text | Refusal | Thinking | CallRef] = []
    calls: list[ToolCall] = []
    kind: type[Text | Refusal | Thinking] = Text
    words: list[str] = []

    def flush() -> None:
        if words:
            content.append(kind(writable("".join(words))))
            words.clear()

    for chunk in chunks:
        if isinstance(chunk, CallChunk):
            flush()
            call_id = f"{id}/c{len(calls)}"
            content.append(CallRef(call_id))
            calls.append(
                ToolCall(
                    id=call_id, wire_id=chunk.wire_id, name=chunk.name, raw_args=chunk.raw_args,
                    args=read_object(chunk.raw_args) or {},
                )
            )  # fmt: skip
        elif isinstance(chunk, (TextChunk, ThinkingChunk)):
            said = Thinking if isinstance(chunk, ThinkingChunk) else Refusal if chunk.refusal else Text
            if said is not kind:
                flush()
                kind = said
            words.append(chunk.text)
    flush()
    return Round(id=id, content=tuple(content), calls=tuple(calls))


def fits_shape(request: Request, held: Round) -> Misfit | None:
    """Checks a reply's JSON against the schema of the request's shape; a code fence around it is forgiven.

    A reply that calls tools, inside its envelope or not, or that refuses, is no attempt at the shape: it fits.
    """
    shape = request.shape
    if shape is None or not shape.schema or held.calls or any(isinstance(part, Refusal) for part in held.content):
        return None
    if shape.read(held).calls:
        return None
    text = held.text
    try:
        value = decoded_answer(text)
    except OutputInvalid as wrong:
        return Misfit(wrong.problem, "", text)
    found = _check(dumps(shape.schema))(value)
    return Misfit(listed(found), ".".join(found[0].path), text) if found else None


@lru_cache(maxsize=64)
def _check(schema: bytes) -> Check:
    held: Mapping[str, Json] | Json = loads(schema)
    return compiled(held)
