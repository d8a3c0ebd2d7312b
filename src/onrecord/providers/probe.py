"""What an endpoint really does, found by asking it: streaming, tools, structured output, and both of these together.

Each question is short, harmless and asked of the model's own endpoint alone, one call at a time: about a dozen calls in
all. What is found is a card, to be used where the assumed one is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Literal, NamedTuple

from msgspec import DecodeError, Struct
from msgspec.structs import replace

from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import AssistantMessage, Message, Round, ToolCall, UserMessage
from onrecord.errors import ModelError, UsageError
from onrecord.jsonio import Json, loads
from onrecord.models.chunks import CallChunk, Finished, TextChunk
from onrecord.models.model import Model, ModelCard
from onrecord.models.request import Offer, Reading, Request, Settings, Shape, Span, ToolSpec, View
from onrecord.models.retry import Reliable
from onrecord.providers.http_model import HttpModel
from onrecord.tools.tool import Tool

__all__ = ("Finding", "JsonWithTools", "Probed", "probe", "probe_json_with_tools")

LIMIT_S = 120.0
WAITS_S = (3.0,)
"""A busy endpoint is asked once more; one that fails at a thing each time does so soon."""
MOST_CHARACTERS = 100_000
_CAP = Settings(max_tokens=2000)

_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"place_name": {"type": "string"}, "degrees_celsius": {"type": "integer"}},
    "required": ["place_name", "degrees_celsius"],
    "additionalProperties": False,
}
_PLACE: Mapping[str, Json] = {
    "type": "object",
    "properties": {"place": {"type": "string", "description": "the name of a place"}},
    "required": ["place"],
    "additionalProperties": False,
}
_TOOL = Tool("weather_of", lambda _args, _ctx: None, "Tells the weather of a place.", parameters=_PLACE)
_OFFERS = (Offer(tool=_TOOL, spec=ToolSpec(name=_TOOL.id, description=_TOOL.description, schema=_PLACE)),)
_SHAPE: Shape[object] = Shape(
    name="weather", schema=_SCHEMA, read=lambda settled: Reading(text=settled.text, value=None)
)
_COUNT = "Count from one to ten, in words, with commas between them."
_WEATHER = "What is the weather in Lisbon now? Look it up with the tool."
_FACTS = "It is 17 degrees in Lisbon today. Where is it how warm?"


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was tried: whether it works, and what was seen, in a sentence without content or key."""

    name: str
    works: bool
    seen: str


class JsonWithTools(Struct, frozen=True, kw_only=True):
    """How well a model calls tools while its answer has to have a shape.

    ``calls`` counts the right calls out of ``samples``, asked natively (``response_format``) and by the ``prompt``.
    ``use`` is the way to go: the native one if it called as often, None where neither did.
    """

    use: Literal["response_format", "prompt"] | None
    calls: Mapping[str, int]
    samples: int


class Probed(Struct, frozen=True, kw_only=True):
    """What was found, and the card that follows from it; ``error`` is why nothing more could be tried."""

    card: ModelCard
    findings: tuple[Finding, ...]
    json_with_tools: JsonWithTools | None = None
    error: ModelError | None = None


class _Heard(NamedTuple):
    text: str
    pieces: int
    calls: tuple[CallChunk, ...]
    counted: bool


async def probe(
    model: Model,
    /,
    *,
    samples: int = 3,
    limit_s: float = LIMIT_S,
    waits_s: tuple[float, ...] = WAITS_S,
    told: Callable[[str], None] = lambda _what: None,
) -> Probed:
    """Tries what the model's endpoint can do; ``told`` hears what is tried next.

    A failure of one thing is a finding. One of the plain question, or of the key, the quota or the network at any time,
    ends it all and is the result's ``error``. ``limit_s`` bounds each call, ``waits_s`` are waits while it is busy.
    Raises nothing for what an endpoint does.
    """
    asking = _Asking(model, limit_s, waits_s)
    findings: list[Finding] = []
    card, both = model.card, None
    try:
        told("streaming")
        findings.append(await _streaming(asking))
        told("tools")
        findings.append(tools := await _tools(asking, samples))
        card = replace(card, tools=tools.works)
        told("schema")
        form, schema = await _schema(asking)
        findings.append(schema)
        card = replace(card, structured=form)
        if tools.works and form == "native" and asking.variant(structured="native") is not None:
            told("tools with schema")
            finding, both = await _both(asking, samples)
            findings.append(finding)
            card = replace(card, structured_with_tools=both is not None and both.use == "response_format")
    except ModelError as error:
        return Probed(card=card, findings=tuple(findings), json_with_tools=both, error=error)
    return Probed(card=card, findings=tuple(findings), json_with_tools=both)


async def probe_json_with_tools(
    model: Model, /, *, samples: int = 3, limit_s: float = LIMIT_S, waits_s: tuple[float, ...] = WAITS_S
) -> JsonWithTools:
    """Asks the model ``samples`` times each way for a call while its answer has a shape; no other model is asked.

    Raises ModelError for whatever fails, and UsageError for a model that cannot be asked both ways.
    """
    return await _both_ways(_Asking(model, limit_s, waits_s), samples)


# ---- asking -------------------------------------------------------------------------------------------------------


class _Asking:
    """Asks a model, each time within the limits: itself, without the fallbacks and settings around it."""

    def __init__(self, model: Model, limit_s: float, waits_s: tuple[float, ...]) -> None:
        held: Any = model
        while not isinstance(held, HttpModel) and hasattr(inner := getattr(held, "model", None), "stream"):
            held = inner
        self._endpoint = held if isinstance(held, HttpModel) else None
        if self._endpoint is not None:  # under its card as it is: nothing learned elsewhere has a say
            model = Reliable(self._endpoint.under(self._endpoint.card) or self._endpoint, waits_s=waits_s)
        self.model, self.limit_s, self.waits_s = model, limit_s, waits_s

    def variant(self, **can: Any) -> _Asking | None:
        """The same model under a card that says otherwise; None where its wire has no such thing."""
        if self._endpoint is None or (other := self._endpoint.under(replace(self._endpoint.card, **can))) is None:
            return None
        return _Asking(other, self.limit_s, self.waits_s)

    async def ask(self, *said: Message | str, **fields: Any) -> _Heard:
        """What the model answers. Raises ModelError."""
        messages = [one if not isinstance(one, str) else UserMessage(id="u", content=(Text(one),)) for one in said]
        held = Conversation.of(messages)
        size = len(held.units)
        asked = Request(
            purpose="consult", where="probe", pieces=(), conversation=held, own=size, model=self.model,
            view=View(spans=(Span(0, size),)), settings=_CAP, **fields,
        )  # fmt: skip
        try:
            async with asyncio.timeout(self.limit_s):
                return await self._heard(asked)
        except TimeoutError:
            raise ModelError(
                f"{self.model.card.provider} did not finish a short answer in {self.limit_s:g} s",
                kind="timeout",
                provider=self.model.card.provider,
                hint="try again, or give it more time",
            ) from None

    async def _heard(self, asked: Request) -> _Heard:
        texts: list[str] = []
        calls: list[CallChunk] = []
        counted, size = False, 0
        async with aclosing(self.model.stream(asked)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    texts.append(chunk.text)
                    size += len(chunk.text)
                elif isinstance(chunk, CallChunk):
                    calls.append(chunk)
                elif isinstance(chunk, Finished):
                    counted = chunk.usage is not None
                if size > MOST_CHARACTERS:
                    raise ModelError(
                        f"{self.model.card.provider} does not end its answer", kind="invalid", started=True,
                        provider=self.model.card.provider, hint="its server seems not to heed the output cap",
                    )  # fmt: skip
        return _Heard("".join(texts), len(texts), tuple(calls), counted)


# ---- what is tried ------------------------------------------------------------------------------------------------

_ENDS_ALL = {"auth", "entitlement", "quota", "rate", "network", "timeout"}


async def _streaming(asking: _Asking) -> Finding:
    heard = await asking.ask(_COUNT)
    counted = "tokens are counted" if heard.counted else "tokens are not counted"
    if not heard.text.strip():
        return Finding(name="streaming", works=False, seen=f"an answer without a word; {counted}")
    if heard.pieces < 2:
        return Finding(name="streaming", works=False, seen=f"the answer comes in one piece; {counted}")
    return Finding(name="streaming", works=True, seen=f"the answer came in {heard.pieces} pieces; {counted}")


async def _tools(asking: _Asking, samples: int) -> Finding:
    """Small models miss a call now and then: the question is repeated until one is right."""
    able = asking.variant(tools=True) or asking
    wrong = "was not asked"
    try:
        for _ in range(samples):
            heard = await able.ask(_WEATHER, offers=_OFFERS)
            if not (wrong := _wrong_with(heard)):
                break
        else:
            return Finding(name="tools", works=False, seen=f"{wrong}, {samples} times of {samples}")
        call = heard.calls[0]
        asked = ToolCall(
            id="r/c0", wire_id=call.wire_id, name=call.name, raw_args=call.raw_args, status="returned",
            result=(Text('{"sky":"clear","degrees":17}'),),
        )  # fmt: skip
        settled = Round(id="r", content=(Text(heard.text),) if heard.text else (), calls=(asked,))
        question = UserMessage(id="u", content=(Text(_WEATHER),))
        heard = await able.ask(question, AssistantMessage(id="a", rounds=(settled,)), offers=_OFFERS)
    except ModelError as error:
        return Finding(name="tools", works=False, seen=_refusal(error))
    if "17" not in heard.text and "seventeen" not in heard.text.lower():
        return Finding(name="tools", works=False, seen="called the tool, and did not answer from its result")
    return Finding(name="tools", works=True, seen="called the tool, and answered from its result")


async def _schema(asking: _Asking) -> tuple[Literal["native", "json", "prompt"], Finding]:
    """Which way of asking for a shape works, from the strictest to the one that always may be asked."""
    forms: tuple[Literal["native", "json", "prompt"], ...] = ("native", "json", "prompt")
    seen: list[str] = []
    for form in forms:
        other = asking.variant(structured=form)
        if other is None and form != asking.model.card.structured:
            continue
        try:
            heard = await (other or asking).ask(_FACTS, shape=_SHAPE)
        except ModelError as error:
            seen.append(f"{form}: {_refusal(error)}")
            continue
        if _fits(heard.text, strict=form != "prompt"):
            return form, Finding(name="schema", works=True, seen="; ".join([*seen, f"{form}: the answer fits"]))
        seen.append(f"{form}: the answer does not fit")
    return "prompt", Finding(name="schema", works=False, seen="; ".join(seen))


async def _both(asking: _Asking, samples: int) -> tuple[Finding, JsonWithTools | None]:
    try:
        both = await _both_ways(asking, samples)
    except ModelError as error:
        return Finding(name="tools with schema", works=False, seen=_refusal(error)), None
    told = ", ".join(f"{way}: {count} of {samples} calls right" for way, count in both.calls.items())
    return Finding(name="tools with schema", works=both.use == "response_format", seen=told), both


async def _both_ways(asking: _Asking, samples: int) -> JsonWithTools:
    calls: dict[str, int] = {}
    for way, beside in (("response_format", True), ("prompt", False)):
        other = asking.variant(tools=True, structured="native", structured_with_tools=beside)
        if other is None:
            raise UsageError(
                f"{asking.model.card.name!r} has one way of asking for a shape beside tools",
                hint="what its card says holds; probe() tells the rest",
            )
        heard = [await other.ask(_WEATHER, offers=_OFFERS, shape=_SHAPE) for _ in range(samples)]
        calls[way] = sum(not _wrong_with(one) for one in heard)
    native, prompted = calls["response_format"], calls["prompt"]
    use: Literal["response_format", "prompt"] | None = "prompt" if prompted else None
    if native and native >= prompted:
        use = "response_format"
    return JsonWithTools(use=use, calls=calls, samples=samples)


def _refusal(error: ModelError) -> str:
    """What an error says about the one thing that was tried; the error itself where it is about everything."""
    if error.kind in _ENDS_ALL and not error.refuses:
        raise error
    return str(error)


def _wrong_with(heard: _Heard) -> str:
    """Why what was heard is no right call of the tool; empty where it is."""
    if not heard.calls:
        return "answered without calling the tool"
    call = heard.calls[0]
    if call.name != _TOOL.id:
        return "called a tool that there is not"
    try:
        given = loads(call.raw_args)
    except DecodeError:
        given = None
    if not isinstance(given, dict) or "lisbon" not in str(given.get("place", "")).lower():
        return "called the tool with arguments that do not fit"
    return ""


def _fits(text: str, *, strict: bool) -> bool:
    if not strict:
        text = text[text.find("{") : text.rfind("}") + 1]
    try:
        held = loads(text)
    except DecodeError:
        return False
    if not isinstance(held, dict) or set(held) != {"place_name", "degrees_celsius"}:
        return False
    return held["degrees_celsius"] == 17 and "lisbon" in str(held["place_name"]).lower()
