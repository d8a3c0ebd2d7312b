"""Requests as a director of flows makes them, written by hand: what a model is shown to understand and to speak."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.log import Log
from onrecord.conversation.messages import Round, Unit, UserMessage
from onrecord.models.chunks import CallChunk, TextChunk
from onrecord.models.request import Offer, Piece, Reading, Request, Shape, Span, ToolSpec, View
from onrecord.providers.offline.client import named, reply_chunks
from onrecord.tools.tool import Flag, Tool

MODEL = named("offline", "")
Fields = Mapping[str, Mapping[str, Any]]
NOTHING: Fields = MappingProxyType({})

CITY = {"type": "string", "description": "City to stay in.", "ask": "Ask which city they want."}
NIGHTS = {"type": "integer", "description": "Number of nights.", "ask": "Ask how many nights they stay."}
NAME = {"type": "string", "description": "Name of the guest.", "ask": "Ask for the name."}
OK = {"type": "boolean", "ask": "Sum up in one line and ask if it is right."}
STAY: Fields = {"city": CITY, "nights": NIGHTS, "name": NAME}
CANDIDATES = (
    "1. booking — Booking: Books a room for some nights.\n"
    "   The customer: wants to book a room; quer reservar um quarto\n"
    "2. cancelling — Cancelling: Cancels a booking.\n"
    "   The customer: wants to cancel a booking\n"
    "   Score 0 when: asks about the conditions of cancelling"
)


def closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object schema as directors write them."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def nullable(fields: Fields) -> dict[str, Any]:
    """The wire schema of fields."""
    held: dict[str, Any] = {}
    for name, one in fields.items():
        held[name] = {"type": [one["type"], "null"]} | {k: one[k] for k in ("description", "enum") if k in one}
    return held


def field_line(name: str, one: Mapping[str, Any]) -> str:
    """``<slug> (<type>)[ [a | b]][: <description>]``."""
    choices = f" [{' | '.join(str(each) for each in one['enum'])}]" if "enum" in one else ""
    about = f": {one['description']}" if "description" in one else ""
    return f"{name} ({one['type']}){choices}{about}"


def known_part(known: Mapping[str, Any]) -> str:
    """The section of what is known."""
    return "## Already known\n" + "\n".join(f"- {k}: {json.dumps(v)}" for k, v in known.items()) if known else ""


def talk(*lines: str) -> list[Unit]:
    """A conversation: the customer first, then in turns."""
    units: list[Unit] = []
    for index, line in enumerate(lines):
        user = index % 2 == 0
        held = (Text(line),)
        units.append(UserMessage(id=f"u{index}", content=held) if user else Round(id=f"r{index}", content=held))
    return units


def made(
    purpose: Any, name: str, schema: Mapping[str, Any], sections: Sequence[str], units: Sequence[Unit], **more: Any
) -> Request:
    """A request with these sections, joined as one text."""
    pieces = [Piece(source="flows", text="\n\n".join(filter(None, sections)), place="turn")]
    if facts := more.pop("facts", ""):
        pieces.insert(0, Piece(source="flows", text=facts))
    return Request(
        purpose=purpose, where="main", pieces=tuple(pieces), conversation=Conversation(units=Log(units)),
        own=more.pop("own", len(units)), view=View(spans=(Span(0, len(units)),)), model=MODEL,
        shape=Shape[Any](name=name, schema=schema, read=lambda held: Reading(text=held.text, value=None)), **more,
    )  # fmt: skip


def understood(
    *lines: str,
    fields: Fields = NOTHING,
    known: Mapping[str, Any] = {},
    floor: Sequence[str] = (),
    candidates: str = "",
    flows: Sequence[str] = (),
    mentions: str = "",
    mentioned: Mapping[str, Mapping[str, Any]] = {},
    branches: Mapping[str, str] = {},
    asks: bool = False,
) -> dict[str, Any]:
    """What the stand-in makes of the last of these lines; ``floor`` are the pending fields of the flow "booking"."""
    pending = "\n".join(f"- {field_line(name, {**STAY, **fields}[name])}" for name in floor)
    leaf = {"type": ["boolean", "null"]}
    extracts = {name: closed(one) for name, one in mentioned.items() if one}
    properties: dict[str, Any] = {}
    if flows:
        properties["flows"] = closed({name: {"type": ["integer", "null"]} for name in flows})
    if mentioned:
        properties["mentions"] = closed(dict.fromkeys(mentioned, leaf))
    if extracts:
        properties["extract"] = closed(extracts)
    if branches:
        properties["branches"] = closed(dict.fromkeys(branches, leaf))
    if fields:
        properties["fields"] = closed(nullable(fields))
    if asks:
        properties["asks"] = leaf
    sections = [
        "## Task\nJudge the latest message.",
        f'## Current flow\n"Booking" (booking)\nBooks a room.\nCurrent step: stay — Collect.\n{pending}'
        if floor
        else "",
        known_part(known),
        f"## Flows the customer may want\n{candidates}\n- 90-100: explicit keywords + clear intent" if flows else "",
        f"## Things the customer may mention\nBe conservative.\n{mentions}" if mentions else "",
        "## Questions about this message\n" + "\n".join(f"- {k}: {v}" for k, v in branches.items()) if branches else "",
        "## Details the customer may have given\n" + "\n".join(f"- {field_line(k, v)}" for k, v in fields.items())
        if fields
        else "",
        f'## Customer\'s latest message\n"""\n{lines[-1]}\n"""',
        '## Output\nOne JSON object.\n{"fields":{}}',
    ]
    text = "".join(
        c.text for c in reply_chunks(made("judge", "understand", closed(properties), sections, talk(*lines)), "rules")
        if isinstance(c, TextChunk)
    )  # fmt: skip
    held: dict[str, Any] = json.loads(text)
    assert list(held) == list(properties)
    return held


def offered(name: str, about: str, properties: Mapping[str, Any], *, destructive: Flag = False) -> Offer:
    """A tool that a step offers."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    tool = Tool(name, lambda _args, _ctx: None, description=about, parameters=schema, destructive=destructive)
    return Offer(tool=tool, spec=ToolSpec(name=name, description=about, schema=schema))


PRICE = offered("price", "Price of a stay in a city.", {"city": {"type": "string"}, "nights": {"type": "integer"}})


def speak_request(
    *lines: str, pending: Fields = NOTHING, known: Mapping[str, Any] = {}, prompt: str = "", flow: str = "Booking",
    first: bool = False, instructions: str = "", units: Sequence[Unit] = (), **more: Any,
) -> Request:  # fmt: skip
    """What a director shows for a reply to the last of these lines."""
    collect = "\n".join(f"- {field_line(k, v)}\n  How to ask: {v['ask']}" for k, v in pending.items())
    latest = f'## Customer\'s latest message\n"{lines[-1]}"' if lines and not first else ""
    form = "\n".join(f'- "{k}": {field_line(k, v)}. The value the customer gave, or null.' for k, v in pending.items())
    sections = [
        f"## Flow\n{flow}: Books a room." if flow else "",
        f"## Guideline for your reply (adapt to the conversation)\n{prompt}",
        f"## Still to collect\nAsk these in this order.\n{collect}" if pending else "",
        known_part(known),
        f"## Instructions\n{instructions}" if instructions else "",
        "## Situation\nThere is no new message from the customer. You speak first: open the topic."
        if first
        else latest,
        f'## Response format\nOne JSON object.\n- "message": natural text, never field names\n{form}',
    ]
    schema = closed({"message": {"type": ["string", "null"]}} | nullable(pending))
    held = [*talk(*lines), *units]
    return made("speak", "speak", schema, sections, held, own=len(lines), **more)


def spoken(*lines: str, **more: Any) -> dict[str, Any]:
    """The envelope of a reply."""
    chunks = list(reply_chunks(speak_request(*lines, **more), "rules"))
    held: dict[str, Any] = json.loads("".join(c.text for c in chunks if isinstance(c, TextChunk)))
    return held


def called(*lines: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """The call in place of a reply."""
    (call, _) = reply_chunks(speak_request(*lines, **more), "rules")
    assert isinstance(call, CallChunk)
    return call.name, json.loads(call.raw_args)
