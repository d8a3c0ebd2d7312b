"""generateContent: a request as the bytes of its body. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Raw

from onrecord.conversation.content import Audio, File, Image, Part, Text
from onrecord.conversation.messages import Authority, Round, ToolCall
from onrecord.conversation.render import instruction
from onrecord.jsonio import Json, dumps
from onrecord.models.lanes import Entries, Run
from onrecord.models.model import ModelCard
from onrecord.models.projection import Projection
from onrecord.models.request import Offer, Request, Settings
from onrecord.models.request_tails import RequestTails
from onrecord.models.unit_bytes import result_parts
from onrecord.models.written_forms import Names, arguments, schema_text
from onrecord.providers.google.cards import PROTOCOL, Dialect
from onrecord.providers.google.media_parts import Media, in_results, media_part, opened
from onrecord.providers.google.schema_subset import takeable
from onrecord.providers.google.thinking_levels import thinking_config, why_not_thinking

__all__ = ("UNSIGNED", "GoogleProjection", "wire_id_of")

USER, RESULT, MODEL = "user", "result", "model"
UNSIGNED = "skip_thought_signature_validator"
"""What Google documents for a call whose signature is not there, because another model made it."""
MEDIA_BELOW = "[The result is the media below.]"
MEDIA_OF_RESULTS = "[The media of the tool results above.]"
MOST_STOPS = 5
NAMES = Names(more="_-.:")
_OWN_FIELDS = frozenset({"contents", "systemInstruction"})


def wire_id_of(wire_id: str) -> str:
    """The id by which Google itself knows a call: what the parser added to tell calls apart is left out."""
    return wire_id.rpartition("#")[0] if "#" in wire_id else wire_id


class GoogleProjection(Projection):
    """generateContent for one model; ``extra`` goes into every body, below what a request's settings say.

    User and model contents alternate as Google wants them: neighbours of a side are one content, function responses
    have one of their own, and a body begins and ends on the user's side.
    """

    protocol = PROTOCOL
    model_kind = MODEL
    hoists = True
    entries = Entries(
        opening={
            USER: b'{"role":"user","parts":[',
            RESULT: b'{"role":"user","parts":[',
            MODEL: b'{"role":"model","parts":[',
        },
        end=b"]}",
        first=USER,
        last=frozenset({USER, RESULT}),
    )

    def __init__(self, card: ModelCard, dialect: Dialect, extra: Mapping[str, Json] | None = None) -> None:
        self.card, self.dialect, self.extra = card, dialect, dict(extra or {})
        self._base = card.base_url or ""
        self.profile = (
            card.images, card.audio, card.files, dialect.signs, dialect.results_hold_media, dialect.fetches, self._base,
        )  # fmt: skip
        self._system: tuple[tuple[str, ...], bytes] = ((), b"")
        self._tails = RequestTails()

    # ---- units

    def user(self, parts: Sequence[Part], /) -> Sequence[Run]:
        if len(parts) == 1 and type(part := parts[0]) is Text:
            return ((USER, b'{"text":' + dumps(part.text) + b"}"),) if part.text.strip() else ()
        shown = [dumps(held) for part in parts if (held := self._part(part)) is not None]
        return ((USER, b",".join(shown)),) if shown else ()

    def context(self, authority: Authority, text: str, /) -> Run:
        return USER, b'{"text":' + dumps(text if authority == "data" else instruction(text, authority)) + b"}"

    def model_half(self, settled: Round, calls: Sequence[ToolCall], ids: Sequence[str], /) -> bytes:
        text = settled.text
        said = b'{"text":' + dumps(text) + b"}" if text.strip() else b""
        if not calls:
            return said
        shown = [said] if said else []
        for wire, call in zip(ids, calls, strict=True):
            asked: dict[str, Json] = {
                "functionCall": {"id": wire, "name": NAMES.fitting(call.name), "args": Raw(arguments(call).encode())}
            }
            if self.dialect.signs and call is calls[0]:  # Google signs the first of the calls made at once
                asked["thoughtSignature"] = UNSIGNED
            shown.append(dumps(asked))
        return b",".join(shown)

    def results(self, calls: Sequence[ToolCall], ids: Sequence[str], /) -> Sequence[Run]:
        told: list[bytes] = []
        below: list[Part] = []
        for wire, call in zip(ids, calls, strict=True):
            about: dict[str, Json] = {"id": named} if (named := wire_id_of(wire)) else {}
            response = about | {"name": NAMES.fitting(call.name)} | self._response(result_parts(call), below)
            told.append(dumps({"functionResponse": response}))
        runs: list[Run] = [(RESULT, b",".join(told))]
        if below:
            runs += self.user((Text(MEDIA_OF_RESULTS), *below))
        return runs

    def _response(self, parts: Sequence[Part], below: list[Part]) -> dict[str, Json]:
        """What a call returned; media that cannot stand there go ``below`` all results."""
        if len(parts) == 1 and type(only := parts[0]) is Text:
            return {"response": {"result": only.text}}
        text, media, before = "", list[Json](), len(below)
        for part in parts:
            if isinstance(part, Text):
                text += part.text
            elif self.refuses(part):
                continue
            elif self.dialect.results_hold_media and in_results(part):
                media.append(media_part(part, self._base))
            else:
                below.append(part)
        if not text and len(below) > before:
            text = MEDIA_BELOW
        return {"response": {"result": text}} | ({"parts": media} if media else {})

    def _part(self, part: Part) -> dict[str, Json] | None:
        if isinstance(part, Text):
            return {"text": part.text} if part.text.strip() else None
        return None if self.refuses(part) else media_part(part, self._base)

    def refuses(self, part: Part, /) -> str:
        if isinstance(part, Text):
            return ""
        card, (kind, verb) = self.card, _KINDS[type(part)]
        if not (card.images if isinstance(part, Image) else card.audio if isinstance(part, Audio) else card.files):
            return f"{kind}: {card.name!r} {verb} none"
        if part.url is None or opened(part.url) is not None:
            return ""
        if part.url.startswith("https://"):
            return "" if self.dialect.fetches else f"{kind} by URL: {card.name!r} takes bytes and uploaded files only"
        if part.url.startswith("gs://"):
            return ""
        if part.url.startswith("data:"):
            return f"{kind} in a data: address that holds nothing"
        return f"{kind} by URL: Google fetches https addresses only"

    # ---- what surrounds them

    def frame(self, request: Request, system: Sequence[str], /, *, empty: bool) -> tuple[bytes, bytes]:
        form = self._form_of(request)
        if form in {"json", "prompt"} and request.shape is not None:
            system = [*system, schema_text(request.shape)]
        head, filled = self._head(system)
        if empty and not filled:
            kind, body = self.filler(leads=False)  # a request without contents is refused
            head += self.entries.opening[kind] + body + self.entries.end
        elif filled and not empty:
            head += b","
        return head, self._tails.of(request, self._fields, form)

    def _head(self, system: Sequence[str]) -> tuple[bytes, bool]:
        """Up to the contents, and whether there is one already: instructions, where a model has no place for them."""
        if not system:
            return b'{"contents":[', False
        texts, told = tuple(system), self._system
        if told[0] != texts:
            told = self._system = (texts, b'{"text":' + dumps("\n\n".join(texts)) + b"}")
        if self.dialect.system:
            return b'{"systemInstruction":{"parts":[' + told[1] + b']},"contents":[', False
        return b'{"contents":[' + self.entries.opening[USER] + told[1] + self.entries.end, True

    def refusals(self, request: Request, /) -> Iterable[str]:
        settings, card = request.settings, self.card
        for name in _OWN_FIELDS & settings.extra.keys():
            yield f"settings with an extra field {name!r}: the request itself decides it"
        if card.tools:
            yield from NAMES.refusals(request.offers)
        elif request.choice not in {"auto", "none"}:
            yield f"a tool choice {request.choice!r}: {card.name!r} takes no tools"
        if settings.search and card.tools:
            if not card.hosted_search:
                yield f"a search of the provider's own: {card.name!r} has none"
            elif request.offers and not self.dialect.search_with_tools:
                yield f"a search of the provider's own beside tools: {card.name!r} takes one or the other"
        if settings.stop is not None and len(settings.stop) > MOST_STOPS:
            yield f"{len(settings.stop)} stop sequences: Google takes {MOST_STOPS}"

    def thinking_refusals(self, request: Request, /) -> Iterable[str]:
        settings, card = request.settings, self.card
        if settings.thinking is not None and (why := why_not_thinking(settings.thinking, self.dialect)):
            yield f"thinking {settings.thinking!r}: {card.name!r} {why}"

    def _form_of(self, request: Request) -> str:
        """How this request asks for its shape: natively, as some JSON, in the prompt, or not at all."""
        if request.shape is None:
            return ""
        card, settings = self.card, request.settings
        tools = bool(request.offers or settings.search or "tools" in settings.extra) and card.tools
        # No model takes a schema beside a call that it is made to make.
        if tools and (not card.structured_with_tools or (request.offers and request.choice not in {"auto", "none"})):
            return "prompt"
        return card.structured

    def _fields(self, request: Request, form: str) -> dict[str, Json]:
        offers = request.offers if self.card.tools else ()
        settings = request.settings
        extra = self.extra | dict(settings.extra)
        hosted: list[Json] = [{"googleSearch": {}}] if settings.search and self.card.tools else []
        hosted += extra.pop("tools", None) or []
        config: dict[str, Json] = {}
        if hosted and offers and self.dialect.search_with_tools:
            config["includeServerSideToolInvocations"] = True
        if offers and request.choice != "auto":
            config["functionCallingConfig"] = _calling(request.choice)
        generation = self._generation(settings)
        if request.shape is not None and form == "native":
            generation |= {"responseMimeType": "application/json", "responseJsonSchema": takeable(request.shape.schema)}
        elif form == "json":
            generation |= {"responseMimeType": "application/json"}
        told: dict[str, Json] = {
            "tools": hosted + ([{"functionDeclarations": [_function(offer) for offer in offers]}] if offers else []),
            "toolConfig": config | (extra.pop("toolConfig", None) or {}),
            "generationConfig": generation | (extra.pop("generationConfig", None) or {}),
        }
        fields = {name: held for name, held in told.items() if held}
        return fields | {name: value for name, value in extra.items() if name not in _OWN_FIELDS}

    def _generation(self, settings: Settings) -> dict[str, Json]:
        said: dict[str, Any] = {
            "temperature": settings.temperature,
            "topP": settings.top_p,
            "maxOutputTokens": settings.max_tokens,
            "stopSequences": settings.stop or None,
            "seed": settings.seed,
        }
        if settings.thinking is not None:
            said["thinkingConfig"] = thinking_config(settings.thinking, self.dialect)
        return {name: value for name, value in said.items() if value is not None}


_KINDS: Mapping[type[Media], tuple[str, str]] = {
    Image: ("an image", "reads"),
    Audio: ("audio", "hears"),
    File: ("a file", "reads"),
}


def _function(offer: Offer) -> dict[str, Json]:
    spec = offer.spec
    return {"name": spec.name, "description": spec.description, "parametersJsonSchema": takeable(spec.schema)}


def _calling(choice: str) -> dict[str, Json]:
    if choice == "none":
        return {"mode": "NONE"}
    return {"mode": "ANY"} | ({} if choice == "required" else {"allowedFunctionNames": [choice]})
