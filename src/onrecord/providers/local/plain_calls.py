"""A model whose tool calls and typed answers do not depend on what its chat template makes of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from onrecord.conversation.messages import Round
from onrecord.jsonio import Json, dumps
from onrecord.models.chunks import CallChunk, Chunk, Finished, NativeItem, TextChunk, ThinkingChunk
from onrecord.models.model import Model, ModelCard, extend
from onrecord.models.request import Offer, Piece, Reading, Request, Shape, Wire
from onrecord.providers.local.text_calls import CallReader, FoundCall

__all__ = ("PlainCalls",)

_KEPT = 64
_LAST = 1_000_000  # after every other piece of the system text
# Where a reply may be a call or the answer, small models need to be told of the first, last of all and before any
# result; told of it again after a result, they write the same call once more.
_MAY_CALL = Piece(
    source="local",
    text='If a fact is missing, write a function call instead: {"name": ..., "arguments": {...}}',
    place="trailing",
)


class PlainCalls:
    """Wraps a model behind llama.cpp or a server like it, where small models write calls as text.

    - A call in the text becomes a call: see `text_calls`. Calls the server recognised pass through.
    - A request that forces a call, and one that offers tools beside a shape, constrains the reply by JSON Schema to
      what is allowed: a call of an offered tool or the answer. Chat templates let a reply begin with anything.
    - The schema of a shape is told to the model too, since a constraint alone does not say what is wanted.
    """

    def __init__(self, model: Model, /) -> None:
        self.model = model
        self._asked: dict[tuple[object, ...], tuple[object, Shape[Any] | None, Piece | None]] = {}

    @property
    def card(self) -> ModelCard:
        return self.model.card

    def wire(self, request: Request, /) -> Wire:
        return self.model.wire(self._constrained(request))

    def extend(self, request: Request, /, limit: int = 500) -> int:
        """See `onrecord.models.model.extend`."""
        return extend(self.model, self._constrained(request), limit)

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        reading = _Reading(request)
        async with aclosing(self.model.stream(self._constrained(request))) as chunks:
            async for chunk in chunks:
                for read in reading.read(chunk):
                    yield read

    def _constrained(self, request: Request) -> Request:
        """The request with its choice and shape as one shape, and the shape's schema in words."""
        offers = request.offers if request.choice != "none" else ()
        forced = bool(offers) and request.choice != "auto"
        if request.shape is None and not forced:
            return request
        key = (id(request.shape), request.choice, *[id(offer.spec) for offer in offers])
        if (seen := self._asked.get(key)) is None:
            if len(self._asked) >= _KEPT:
                self._asked.clear()
            # What the key names by id is kept with it, so that no id can come to mean something else.
            held = (request.shape, [offer.spec for offer in offers])
            seen = self._asked[key] = (held, *_asked(request.shape, offers, request.choice))
        _, shape, told = seen
        pieces = request.pieces if told is None else (*request.pieces, told)
        if request.shape is not None and offers and not forced and len(request.conversation.units) <= request.own:
            pieces = (*pieces, _MAY_CALL)
        choice = "auto" if offers else request.choice
        return replace(request, shape=shape, pieces=pieces, choice=choice)


class _Reading:
    """One reply: its chunks with the calls taken out of the text."""

    def __init__(self, request: Request) -> None:
        offers = request.offers if request.choice != "none" else ()
        names = {offer.spec.name for offer in offers}
        harmless = {offer.spec.name for offer in offers if offer.tool.read_only is True}
        self._reader = CallReader(names, harmless) if names else None
        self._found = 0

    def read(self, chunk: Chunk) -> Iterable[Chunk]:
        reader = self._reader
        if reader is None or isinstance(chunk, ThinkingChunk):
            return (chunk,)
        if isinstance(chunk, TextChunk) and not chunk.refusal:
            return self._pieces(reader.feed(chunk.text))
        rest = self._pieces(reader.close())
        if not self._found:
            return (*rest, chunk)
        if isinstance(chunk, NativeItem):  # says the calls as text, and would be replayed in place of the round
            return rest
        if isinstance(chunk, Finished) and chunk.finish in {"stop", "length", "unknown"}:
            return (*rest, replace(chunk, finish="calls"))
        return (*rest, chunk)

    def _pieces(self, found: Iterable[str | FoundCall]) -> list[Chunk]:
        out: list[Chunk] = []
        for piece in found:
            if isinstance(piece, FoundCall):
                out.append(CallChunk(wire_id=f"text-{self._found}", name=piece.name, raw_args=piece.raw_args))
                self._found += 1
            elif piece:
                out.append(TextChunk(piece))
        return out


def _asked(shape: Shape[Any] | None, offers: tuple[Offer, ...], choice: str) -> tuple[Shape[Any] | None, Piece | None]:
    """The shape to ask for instead, and what to tell the model about it."""
    if shape is not None and not offers:
        return shape, _told(shape) if shape.schema else None
    callable_ = [offer for offer in offers if choice in {"auto", "required", offer.spec.name}]
    defs: dict[str, Json] = {}
    allowed = [_call_schema(offer, defs) for offer in callable_]
    told = None
    if shape is not None and choice == "auto":
        allowed.insert(0, _hoisted(shape.schema, defs))
        told = _told(shape) if shape.schema else None
    schema: dict[str, Json] = allowed[0] if len(allowed) == 1 else {"anyOf": allowed}
    if defs:
        schema = {**schema, "$defs": defs}
    return Shape(name=shape.name if shape else "call", schema=schema, read=shape.read if shape else _as_text), told


def _as_text(settled: Round) -> Reading[None]:
    return Reading(text=settled.text, value=None)


def _told(shape: Shape[Any]) -> Piece:
    schema = dumps(shape.schema).decode()
    told = f"Your answer is one JSON value of this JSON Schema, and nothing else:\n{schema}"
    return Piece(source="local", text=told, rank=_LAST)


def _call_schema(offer: Offer, defs: dict[str, Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": {"name": {"const": offer.spec.name}, "arguments": _hoisted(offer.spec.schema, defs)},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _hoisted(schema: Mapping[str, Json], defs: dict[str, Json]) -> dict[str, Json]:
    """The schema fit to stand inside another one: its definitions move to the root.

    Where they cannot (another schema's differ under the same name, or it refers to itself), any object is allowed:
    arguments and answers are checked again by whoever asked.
    """
    own = {name: _renamed(value) for held in ("definitions", "$defs") for name, value in schema.get(held, {}).items()}
    bare = {name: value for name, value in schema.items() if name not in {"$defs", "definitions", "$schema", "$id"}}
    if any(defs.get(name, value) != value for name, value in own.items()) or _refers_to_itself([bare, own]):
        return {"type": "object"}
    defs |= own
    moved: dict[str, Json] = _renamed(bare)
    return moved


def _refers_to_itself(value: Json) -> bool:
    if isinstance(value, Mapping):
        ref = value.get("$ref")
        if isinstance(ref, str) and not ref.startswith(("#/$defs/", "#/definitions/")):
            return True
        return any(_refers_to_itself(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(_refers_to_itself(item) for item in value)


def _renamed(value: Json) -> Json:
    """With every reference to ``definitions`` pointing to ``$defs``."""
    if isinstance(value, Mapping):
        renamed = {name: _renamed(item) for name, item in value.items()}
        if isinstance(ref := renamed.get("$ref"), str):
            renamed["$ref"] = ref.replace("#/definitions/", "#/$defs/")
        return renamed
    return [_renamed(item) for item in value] if isinstance(value, (list, tuple)) else value
