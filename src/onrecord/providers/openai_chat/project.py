"""Chat Completions: a request as the bytes of its body. Pure."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onrecord.conversation.content import Audio, File, Image, Part, Refusal, Text
from onrecord.conversation.messages import Authority, Continuation, Round, ToolCall
from onrecord.conversation.render import instruction
from onrecord.jsonio import Json, dumps, loads
from onrecord.models.lanes import Run
from onrecord.models.model import ModelCard
from onrecord.models.projection import Projection
from onrecord.models.request import Offer, Request, Settings, Shape
from onrecord.models.request_tails import RequestTails
from onrecord.models.unit_bytes import result_parts
from onrecord.models.written_forms import NAMES, arguments, data_url, file_name, is_path, is_strict, schema_text
from onrecord.providers.openai_chat.cards import PROTOCOL, Dialect

__all__ = ("ChatProjection", "is_strict")

ITEM = "item"
MEDIA_BELOW = "[The result is the media below.]"
MEDIA_OF_RESULTS = "[The media of the tool results above.]"
OFF = frozenset({"none", "off", 0})
"""Words for no thinking."""
_OWN_FIELDS = frozenset({"model", "messages", "stream"})
_NAME = re.compile(r"[^A-Za-z0-9_-]")


class ChatProjection(Projection):
    """Chat Completions for one model; ``extra`` goes into every body, below what a request's settings say."""

    protocol = PROTOCOL
    model_kind = ITEM

    def __init__(self, card: ModelCard, dialect: Dialect, extra: Mapping[str, Json] | None = None) -> None:
        self.card, self.dialect, self.extra = card, dialect, dict(extra or {})
        self.hoists = dialect.one_system
        self.profile = (card.arrays, card.images, card.audio, card.files, dialect.developer, dialect.one_system)
        self._head = b'{"model":' + dumps(card.model) + b',"messages":['
        self._system: tuple[tuple[str, ...], bytes] = ((), b"")
        self._tails = RequestTails()

    # ---- units

    def user(self, parts: Sequence[Part], /) -> Sequence[Run]:
        if len(parts) == 1 and type(part := parts[0]) is Text:
            return ((ITEM, b'{"role":"user","content":' + dumps(part.text) + b"}"),)
        content = self._content(parts) if parts else []
        return () if content == [] else ((ITEM, dumps({"role": "user", "content": content})),)

    def context(self, authority: Authority, text: str, /) -> Run:
        if authority == "data":
            return ITEM, b'{"role":"user","content":' + dumps(text) + b"}"
        if self.dialect.one_system:
            return ITEM, b'{"role":"user","content":' + dumps(instruction(text, authority)) + b"}"
        if authority == "developer" and self.dialect.developer:
            return ITEM, b'{"role":"developer","content":' + dumps(text) + b"}"
        return ITEM, b'{"role":"system","content":' + dumps(text) + b"}"

    def model_half(self, settled: Round, calls: Sequence[ToolCall], ids: Sequence[str], /) -> bytes:
        content = settled.content
        said: Json = settled.text
        if any(type(part) is Refusal for part in content):
            said = [
                {"type": "refusal", "refusal": part.text} if isinstance(part, Refusal) else _text(part.text)
                for part in content
                if isinstance(part, (Text, Refusal))
            ]
        if not calls:
            return b'{"role":"assistant","content":' + dumps(said) + b"}" if said else b""
        asked = [
            {
                "id": wire,
                "type": "function",
                "function": {"name": NAMES.fitting(call.name), "arguments": arguments(call)},
            }
            for wire, call in zip(ids, calls, strict=True)
        ]
        return dumps({"role": "assistant", "content": said, "tool_calls": asked})

    def results(self, calls: Sequence[ToolCall], ids: Sequence[str], /) -> Sequence[Run]:
        messages: list[bytes] = []
        media: list[Part] = []
        for wire, call in zip(ids, calls, strict=True):
            parts = result_parts(call)
            if len(parts) == 1 and type(only := parts[0]) is Text:
                text = only.text
            else:
                text = "".join(part.text for part in parts if isinstance(part, Text))
                others = [part for part in parts if not isinstance(part, Text) and self.takes(part)]
                if others and not text:
                    text = MEDIA_BELOW
                media += others
            messages.append(b'{"role":"tool","tool_call_id":' + dumps(wire) + b',"content":' + dumps(text) + b"}")
        if media:
            # A tool message carries text only; what else there is follows all results of the round.
            messages += (body for _, body in self.user((Text(MEDIA_OF_RESULTS), *media)))
        return ((ITEM, b",".join(messages)),)

    def verbatim(self, held: Continuation, /) -> bytes:
        if self.card.arrays:
            return b",".join(bytes(item) for item in held.items)
        return b",".join(_without_array(bytes(item)) for item in held.items)

    def _content(self, parts: Sequence[Part]) -> Json:
        """One string where all is text or lists are not understood, else a list of parts."""
        if not self.card.arrays or all(isinstance(part, Text) for part in parts):
            return "".join(part.text for part in parts if isinstance(part, Text))
        return [_part(part) for part in parts if not self.refuses(part)]

    def refuses(self, part: Part, /) -> str:
        if isinstance(part, Text) or not self.card.arrays:  # without lists, media is left out without a word
            return ""
        card = self.card
        if isinstance(part, Image):
            if part.file_id is not None:
                return "an image by file id: Chat Completions takes images by URL or as bytes"
            if not card.images:
                return f"an image: {card.name!r} reads none"
            return "an image by a URL that is the path of a file" if is_path(part.url) else ""
        if isinstance(part, Audio):
            if part.url is not None:
                return "audio by URL: Chat Completions takes audio as bytes"
            return "" if card.audio else f"audio: {card.name!r} hears none"
        if part.url is not None:
            return "a file by URL: Chat Completions takes files as bytes or by file id"
        return "" if card.files else f"a file: {card.name!r} reads none"

    def takes(self, part: Part, /) -> bool:
        return isinstance(part, Text) or (self.card.arrays and not self.refuses(part))

    # ---- what surrounds them

    def frame(self, request: Request, system: Sequence[str], /, *, empty: bool) -> tuple[bytes, bytes]:
        form = self._form_of(request)
        if form in {"json", "prompt"} and request.shape is not None:
            system = [*system, schema_text(request.shape)]
        tail = self._tails.of(request, self._fields, form)
        if not system:  # a request without messages is refused
            return self._head + self.filler(leads=False)[1] if empty else self._head, tail
        texts, message = tuple(system), self._system
        if message[0] != texts:
            body = b'{"role":"system","content":' + dumps("\n\n".join(texts)) + b"}"
            message = self._system = (texts, body)
        return self._head + message[1] + (b"" if empty else b","), tail

    def refusals(self, request: Request, /) -> Iterable[str]:
        for name in _OWN_FIELDS & request.settings.extra.keys():
            yield f"settings with an extra field {name!r}: the request itself decides it"
        card = self.card
        if card.tools:
            yield from NAMES.refusals(request.offers)
        if request.choice not in {"auto", "none"}:
            if not card.tools:
                yield f"a tool choice {request.choice!r}: {card.name!r} takes no tools"
            elif not self.dialect.forces:
                yield f"a tool choice {request.choice!r}: {card.name!r} cannot be made to call a tool"
        if request.settings.search and card.tools and not (card.hosted_search and self.dialect.search):
            yield f"a search of the provider's own: {card.name!r} has none over Chat Completions"

    def thinking_refusals(self, request: Request, /) -> Iterable[str]:
        # Where there is a field for it the server decides, since of unknown models nothing is known.
        thinking = request.settings.thinking
        if thinking is not None and self.dialect.thinking is None:
            yield from _thinking_refusals(self.card, thinking)

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
        search = self.dialect.search if request.settings.search and self.card.tools and self.card.hosted_search else {}
        if offers and request.choice == "none" and not self.dialect.forces:
            offers = ()  # the one way to say it
        if tools := [*map(_tool, offers), *search.get("tools", ())]:
            fields["tools"] = tools
        if offers:
            if request.choice in {"none", "required"}:
                fields["tool_choice"] = request.choice
            elif request.choice != "auto":
                fields["tool_choice"] = {"type": "function", "function": {"name": request.choice}}
        fields |= {name: value for name, value in search.items() if name != "tools"}
        if request.shape is not None and form == "native":
            fields["response_format"] = _json_schema(request.shape)
        elif form == "json":
            fields["response_format"] = {"type": "json_object"}
        fields |= self._settings(request.settings)
        fields["stream"] = True
        if self.dialect.usage:
            fields["stream_options"] = {"include_usage": True}
        given = self.extra | dict(request.settings.extra)
        return fields | {name: value for name, value in given.items() if name not in _OWN_FIELDS}

    def _settings(self, settings: Settings) -> dict[str, Json]:
        said: dict[str, Any] = {
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            self.dialect.cap: settings.max_tokens,
            "stop": settings.stop,
            self.dialect.seed: settings.seed,
        }
        if settings.thinking is not None:
            said |= _thinking(self.dialect, settings.thinking)
        elif self.dialect.quiet:
            said |= _thinking(self.dialect, "none")
        return {name: value for name, value in said.items() if value is not None}


def _thinking_refusals(card: ModelCard, thinking: str | int) -> Iterable[str]:
    """Of a model that nothing about it can be told. One that thinks in any case does what it is asked to."""
    thinks, wanted = card.thinking != "none", thinking not in OFF
    if wanted and not thinks:
        yield f"thinking: {card.name!r} has none"
    if thinks and not wanted:
        yield f"thinking turned off: {card.name!r} always thinks"


# ---- parts --------------------------------------------------------------------------------------------------------


def _text(text: str) -> dict[str, Json]:
    return {"type": "text", "text": text}


def _part(part: Part) -> dict[str, Json]:
    if isinstance(part, Text):
        return _text(part.text)
    if isinstance(part, Image):
        url = part.url if part.url is not None else data_url(part.data or b"", part.media or "image/png")
        return {"type": "image_url", "image_url": {"url": url} | ({"detail": part.detail} if part.detail else {})}
    if isinstance(part, Audio):
        data = b64encode(part.data or b"").decode()
        return {"type": "input_audio", "input_audio": {"data": data, "format": part.format}}
    return {"type": "file", "file": _file(part)}


def _file(part: File) -> dict[str, Json]:
    if part.file_id is not None:
        return ({"filename": part.name} if part.name else {}) | {"file_id": part.file_id}
    return {"file_data": data_url(part.data or b"", part.media or "application/pdf"), "filename": file_name(part)}


def _without_array(item: bytes) -> bytes:
    """A native message whose content is one string, unless it holds a refusal."""
    message = loads(item)
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list) or any(part.get("type") == "refusal" for part in content):
        return item
    return dumps(message | {"content": "".join(part.get("text", "") for part in content)})


# ---- tools and shapes ---------------------------------------------------------------------------------------------


def _tool(offer: Offer) -> dict[str, Json]:
    spec = offer.spec
    about = {"description": spec.description} if spec.description else {}
    return {"type": "function", "function": {"name": spec.name, **about, "parameters": spec.schema}}


def _json_schema(shape: Shape[Any]) -> dict[str, Json]:
    name = _NAME.sub("_", shape.name)[:64] or "reply"
    strict = is_strict(shape.schema)
    held = {"name": name, "schema": shape.schema, "strict": strict}
    return {"type": "json_schema", "json_schema": held}


def _thinking(dialect: Dialect, thinking: str | int) -> dict[str, Json]:
    """The field of a dialect for how much to think."""
    wanted = thinking not in OFF
    match dialect.thinking:
        case "effort" if not wanted:
            return {"reasoning_effort": "none"}
        case "effort" if isinstance(thinking, str):
            return {"reasoning_effort": thinking}
        case "reasoning" if isinstance(thinking, int):
            return {"reasoning": {"max_tokens": thinking} if wanted else {"enabled": False}}
        case "reasoning":
            return {"reasoning": {"effort": thinking} if wanted else {"enabled": False}}
        case "switch_effort" if wanted and isinstance(thinking, str):
            return {"thinking": {"type": "enabled"}, "reasoning_effort": thinking}
        case "switch" | "switch_effort":
            return {"thinking": {"type": "enabled" if wanted else "disabled"}}
        case _:
            return {}
