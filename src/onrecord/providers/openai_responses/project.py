"""Responses: a request as the bytes of its body. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from onrecord.conversation.content import Audio, CallRef, File, Image, Part, Refusal, Text
from onrecord.conversation.messages import Authority, Continuation, Round, ToolCall
from onrecord.jsonio import UNREADABLE, Json, dumps
from onrecord.models.lanes import Run
from onrecord.models.model import ModelCard
from onrecord.models.projection import Projection
from onrecord.models.request import Offer, Request, Settings, Shape
from onrecord.models.request_tails import RequestTails
from onrecord.models.unit_bytes import result_parts
from onrecord.models.written_forms import NAMES, arguments, data_url, file_name, is_path, is_strict, schema_text
from onrecord.providers.openai_responses.cards import PROTOCOL, Dialect
from onrecord.providers.openai_responses.events import Item, read_item

__all__ = ("ResponsesProjection",)

ITEM = "item"
OFF = frozenset({"none", "off", 0})
"""Words for no reasoning."""

_OWN_FIELDS = frozenset(
    {"model", "input", "instructions", "stream", "store", "previous_response_id", "conversation", "background"}
)
_HOLDERS = ("reasoning", "text")
_NAME = re.compile(r"[^A-Za-z0-9_-]")


class ResponsesProjection(Projection):
    """Responses for one model; ``extra`` goes into every body, below what a request's settings say.

    Nothing is stored at the provider, so every request holds all that the model is to see.
    """

    protocol = PROTOCOL
    model_kind = ITEM
    hoists = True

    def __init__(self, card: ModelCard, dialect: Dialect, extra: Mapping[str, Json] | None = None) -> None:
        self.card, self.dialect, self.extra = card, dialect, dict(extra or {})
        self.profile = (card.images, card.files)
        self._start = b'{"model":' + dumps(card.model)
        self._lead: tuple[tuple[str, ...], bytes] = ((), self._start + b',"input":[')
        self._tails = RequestTails()

    # ---- units

    def user(self, parts: Sequence[Part], /) -> Sequence[Run]:
        content = self._content(parts)
        if not parts or content == []:  # there is nothing, or all of it was left out
            return ()
        return ((ITEM, b'{"type":"message","role":"user","content":' + dumps(content) + b"}"),)

    def context(self, authority: Authority, text: str, /) -> Run:
        if authority == "data":
            return ITEM, b'{"type":"message","role":"user","content":' + dumps(text) + b"}"
        return ITEM, _instruction(authority, text)

    def model_half(self, settled: Round, calls: Sequence[ToolCall], ids: Sequence[str], /) -> bytes:
        """Items in the order of the round's content; calls without a place in it come last."""
        asked = {call.id: (call, wire) for call, wire in zip(calls, ids, strict=True)}
        items: list[bytes] = []
        said: list[Json] = []
        for part in settled.content:
            if isinstance(part, CallRef):
                if (found := asked.pop(part.call, None)) is not None:
                    _close(said, items)
                    items.append(_call(*found))
            elif isinstance(part, Text) and part.text:
                said.append({"type": "output_text", "text": part.text})
            elif isinstance(part, Refusal):
                said.append({"type": "refusal", "refusal": part.text})
        _close(said, items)
        items += (_call(*found) for found in asked.values())
        return b",".join(items)

    def native(self, settled: Round, scope: str, /) -> Continuation | None:
        """The items of the reply, but for reasoning that the provider would refuse."""
        held = super().native(settled, scope)
        if held is None or len(kept := _returnable(held.items)) == len(held.items):
            return held
        return replace(held, items=tuple(kept)) if kept else None

    def results(self, calls: Sequence[ToolCall], ids: Sequence[str], /) -> Sequence[Run]:
        outputs = (
            b'{"type":"function_call_output","call_id":' + dumps(wire) + b',"output":'
            + dumps(self._content(result_parts(call)) or "") + b"}"
            for wire, call in zip(ids, calls, strict=True)
        )  # fmt: skip
        return ((ITEM, b",".join(outputs)),)

    def _content(self, parts: Sequence[Part]) -> Json:
        """One string where all is text, else a list of parts."""
        if all(isinstance(part, Text) for part in parts):
            return "".join(part.text for part in parts if isinstance(part, Text))
        return [_part(part) for part in parts if not self.refuses(part)]

    def refuses(self, part: Part, /) -> str:
        card = self.card
        if isinstance(part, Text):
            return ""
        if isinstance(part, Audio):
            return "audio: Responses takes none"
        if part.file_id is not None:
            return f"{'an image' if isinstance(part, Image) else 'a file'} by file id: here only the bytes or a URL"
        kind = "an image" if isinstance(part, Image) else "a file"
        if not (card.images if isinstance(part, Image) else card.files):
            return f"{kind}: {card.name!r} reads none"
        return f"{kind} by a URL that is the path of a file" if is_path(part.url) else ""

    # ---- what surrounds them

    def frame(self, request: Request, system: Sequence[str], /, *, empty: bool) -> tuple[bytes, bytes]:
        form = self._form_of(request)
        if form in {"json", "prompt"} and request.shape is not None:
            system = [*system, schema_text(request.shape)]
        tail = self._tails.of(request, self._fields, form)
        if empty and system:  # instructions alone are refused: there has to be an item
            return self._start + b',"input":[' + _instruction("system", "\n\n".join(system)), tail
        if empty:
            return self._start + b',"input":[' + self.filler(leads=False)[1], tail
        texts = tuple(system)
        lead = self._lead
        if lead[0] != texts:
            said = b',"instructions":' + dumps("\n\n".join(texts)) if texts else b""
            lead = self._lead = (texts, self._start + said + b',"input":[')
        return lead[1], tail

    def refusals(self, request: Request, /) -> Iterable[str]:
        card, settings = self.card, request.settings
        for name in sorted(_OWN_FIELDS & settings.extra.keys()):
            yield f"settings with an extra field {name!r}: the request itself decides it"
        if card.tools:
            yield from NAMES.refusals(request.offers)
        elif request.choice not in {"auto", "none"}:
            yield f"a tool choice {request.choice!r}: {card.name!r} takes no tools"
        if card.tools and settings.search and not card.hosted_search:
            yield f"a search of the provider's own: {card.name!r} has none"
        if settings.stop:
            yield "stop sequences: Responses takes none"
        if settings.seed is not None:
            yield "a seed: Responses takes none"

    def thinking_refusals(self, request: Request, /) -> Iterable[str]:
        name = self.card.name
        if request.settings.thinking in OFF:
            if self.card.thinking != "none" and not self.dialect.can_rest:
                yield f"thinking turned off: {name!r} always thinks"
        elif self.card.thinking == "none":
            yield f"thinking: {name!r} has none"

    def _form_of(self, request: Request) -> str:
        """How this request asks for its shape: natively, as some JSON, in the prompt, or not at all."""
        if request.shape is None:
            return ""
        if request.offers and self.card.tools and not self.card.structured_with_tools:
            return "prompt"
        return self.card.structured

    def _fields(self, request: Request, form: str) -> dict[str, Json]:
        offers = request.offers if self.card.tools else ()
        fields: dict[str, Json] = {}
        searches = bool(request.settings.search) and self.card.tools and self.card.hosted_search
        tools: list[Json] = [_tool(offer) for offer in offers]
        if searches:
            tools.append({"type": "web_search"})
        if tools:
            fields["tools"] = tools
            if request.choice in {"none", "required"}:
                fields["tool_choice"] = request.choice
            elif request.choice != "auto":
                fields["tool_choice"] = {"type": "function", "name": request.choice}
        if request.shape is not None and form == "native":
            fields["text"] = {"format": _json_schema(request.shape)}
        elif form == "json":
            fields["text"] = {"format": {"type": "json_object"}}
        fields |= self._settings(request.settings)
        fields |= {"stream": True, "store": False}
        included = ["reasoning.encrypted_content"] if self.dialect.sealed else []
        if searches:
            included.append("web_search_call.action.sources")
        if included:
            fields["include"] = included
        return _with_extra(fields, self.extra | dict(request.settings.extra))

    def _settings(self, settings: Settings) -> dict[str, Json]:
        said: dict[str, Json] = {
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_output_tokens": settings.max_tokens,
        }
        thinking = settings.thinking
        if self.card.thinking != "none" and (thinking in OFF or isinstance(thinking, str)):
            said["reasoning"] = {"effort": "none" if thinking in OFF else thinking}
        return {name: value for name, value in said.items() if value is not None}


# ---- items --------------------------------------------------------------------------------------------------------


def _instruction(authority: Authority, text: str) -> bytes:
    content = [{"type": "input_text", "text": text}]
    return dumps({"type": "message", "role": authority, "content": content})


def _returnable(items: Sequence[Raw]) -> Sequence[Raw]:
    """The items without reasoning that holds only its name, since nothing is stored under it, and without reasoning at
    the end, which has to have led to something.
    """
    heads = [_head(item) for item in items]
    kept = [
        (item, head)
        for item, head in zip(items, heads, strict=True)
        if head.type != "reasoning" or head.encrypted_content or head.content
    ]
    while kept and kept[-1][1].type == "reasoning":
        kept.pop()
    return [item for item, _ in kept]


def _head(item: Raw) -> Item:
    try:
        return read_item(item)
    except UNREADABLE:  # goes back as it came, whatever it is
        return Item()


def _close(said: list[Json], items: list[bytes]) -> None:
    """What was said so far becomes one message."""
    if said:
        items.append(dumps({"type": "message", "role": "assistant", "content": said}))
        said.clear()


def _call(call: ToolCall, wire: str) -> bytes:
    return dumps(
        {"type": "function_call", "call_id": wire, "name": NAMES.fitting(call.name), "arguments": arguments(call)}
    )


def _part(part: Part) -> dict[str, Json]:
    if isinstance(part, Image):
        url = part.url if part.url is not None else data_url(part.data or b"", part.media or "image/png")
        return {"type": "input_image", "image_url": url} | ({"detail": part.detail} if part.detail else {})
    if isinstance(part, File):
        if part.url is not None:  # a name beside a URL is refused
            return {"type": "input_file", "file_url": part.url}
        media = part.media or "application/pdf"
        return {"type": "input_file", "file_data": data_url(part.data or b"", media), "filename": file_name(part)}
    return {"type": "input_text", "text": part.text if isinstance(part, Text) else ""}


# ---- tools, shapes and what else goes into a body -----------------------------------------------------------------


def _tool(offer: Offer) -> dict[str, Json]:
    spec = offer.spec
    about = {"description": spec.description} if spec.description else {}
    # Said always: where it is left out, the provider closes the schema and makes every property required.
    strict = is_strict(spec.schema)
    return {"type": "function", "name": spec.name, **about, "parameters": spec.schema, "strict": strict}


def _json_schema(shape: Shape[Any]) -> dict[str, Json]:
    name = _NAME.sub("_", shape.name)[:64] or "reply"
    return {"type": "json_schema", "name": name, "schema": shape.schema, "strict": is_strict(shape.schema)}


def _with_extra(fields: dict[str, Json], given: Mapping[str, Json]) -> dict[str, Json]:
    """The fields with what was given as it is; objects that hold several settings, and ``include``, are merged."""
    out = dict(fields)
    for name, value in given.items():
        if name in _OWN_FIELDS:
            continue
        held = out.get(name)
        if name in _HOLDERS and isinstance(held, dict) and isinstance(value, Mapping):
            out[name] = held | dict(value)
        elif name == "include" and isinstance(held, list) and isinstance(value, (list, tuple)):
            out[name] = [*held, *(one for one in value if one not in held)]
        else:
            out[name] = value
    return out
