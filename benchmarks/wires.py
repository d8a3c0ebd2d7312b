"""What each wire costs: a delta of a long reply beside a plain aiohttp loop, and the bytes of a long conversation.

    python -m benchmarks.wires

The plain loop reads the same stream from the same server, splits it into events, parses each and counts its words;
ours does the same through transport, parser and chunks. Both alternate in one process: trust the ratio.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing

import aiohttp
from msgspec.structs import replace

from benchmarks.in_process import Row, session_of
from benchmarks.measure import YARDSTICK_US, Figure, Work, by_turns, yardstick
from benchmarks.mock_model import serving
from benchmarks.wire_streams import STREAMS
from onrecord.conversation.content import Text
from onrecord.conversation.messages import UserMessage
from onrecord.models.chunks import TextChunk
from onrecord.models.model import Model, scope_of
from onrecord.models.request import Piece, Request, Span, View
from onrecord.providers.anthropic.client import anthropic
from onrecord.providers.google.client import google
from onrecord.providers.openai_compatible import openai_compatible
from onrecord.providers.openai_responses import openai_responses

__all__ = ("BUDGETS", "MODELS", "measured", "table")

DELTAS = 2_000
LONG = 10_000
PROJECTIONS = 20

MODELS: dict[str, Callable[[str], Model]] = {
    "chat": lambda base: openai_compatible(f"{base}/v1", "mock-1", api_key="k", retry=False),
    "messages": lambda base: anthropic("mock-1", base_url=f"{base}/v1", api_key="k", retry=False),
    "google": lambda base: google("gemini-3.8-flash", base_url=f"{base}/v1", api_key="k", retry=False),
    "responses": lambda base: openai_responses("mock-1", base_url=f"{base}/v1", api_key="k", retry=False),
}
"""A model of each wire behind a base URL."""

BUDGETS: dict[str, tuple[str, float]] = {}
for _name in MODELS:
    BUDGETS[f"{_name}: a delta, beside a plain loop"] = ("times", 1.2)
    BUDGETS[f"{_name}: 10,000 messages and one more"] = ("ms", 0.5)
"""Unit and budget of each row."""


def _plain(session: aiohttp.ClientSession, url: str, wire: str) -> Work:
    word = STREAMS[wire].word

    async def block() -> int:
        seen, rest = 0, b""
        async with session.post(url, data=b"{}") as reply:
            async for piece in reply.content.iter_any():
                rest += piece
                *events, rest = rest.split(b"\n\n")
                for event in events:
                    data = event[event.find(b"data: ") + 6 :]
                    if data != b"[DONE]" and word(json.loads(data)):
                        seen += 1
        if seen != DELTAS:
            raise ValueError(seen)
        return seen

    return block


def _ours(model: Model, request: Request) -> Work:
    async def block() -> int:
        seen = 0
        async with aclosing(model.stream(request)) as chunks:
            async for chunk in chunks:
                if type(chunk) is TextChunk:
                    seen += 1
        if seen != DELTAS:
            raise ValueError(seen)
        return seen

    return block


def _asked(model: Model, session: str = "s") -> Request:
    """A short request."""
    conversation = session_of(2).conversation
    view = View(spans=(Span(0, len(conversation.units)),))
    return Request(
        purpose="speak", where="main/r0", pieces=(Piece(source="b", text="Be brief."),), conversation=conversation,
        own=len(conversation.units), view=view, model=model, scope=scope_of(model.card, session),
    )  # fmt: skip


def _projecting(model: Model) -> Work:
    """A conversation of `LONG` messages that grows by one before each request."""
    conversation = session_of(LONG).conversation
    request = _asked(model)
    warm = replace(request, conversation=conversation, own=len(conversation.units))
    model.wire(replace(warm, view=View(spans=(Span(0, len(conversation.units)),))))
    held = [conversation]

    async def block() -> int:
        for _ in range(PROJECTIONS):
            now = held[0] = held[0].add(
                UserMessage(id=f"u{len(held[0].units)}", turn="t", content=(Text("and one more"),))
            )
            size = len(now.units)
            model.wire(replace(warm, conversation=now, own=size, view=View(spans=(Span(0, size),))))
        return PROJECTIONS

    return block


async def measured(wires: Iterable[str] = tuple(MODELS), blocks: int = 12) -> list[Row]:
    """All rows of these wires."""
    rows: list[Row] = []
    with serving() as base:
        async with aiohttp.ClientSession() as session:
            for wire in wires:
                url = f"{base}/wire/{wire}/{DELTAS}"
                model = MODELS[wire](url)
                works = {
                    "yardstick": yardstick,
                    "plain": _plain(session, url, wire),
                    "ours": _ours(model, _asked(model)),
                    "projecting": _projecting(model),
                }
                seen = await by_turns(works, blocks)
                rows += _rows(wire, seen)
    return rows


def _rows(wire: str, seen: dict[str, Figure]) -> list[Row]:
    pace = seen["yardstick"].best / YARDSTICK_US
    plain, ours, joined = seen["plain"], seen["ours"], seen["projecting"]
    ratio, best = ours.best / plain.best, joined.best / 1000
    return [
        _row(f"{wire}: a delta, beside a plain loop", ratio, ours.median / plain.median, ratio),
        _row(f"{wire}: 10,000 messages and one more", best, joined.median / 1000, best / pace),
    ]


def _row(name: str, best: float, median: float, scaled: float) -> Row:
    unit, budget = BUDGETS[name]
    return Row(name=name, unit=unit, budget=budget, best=best, median=median, scaled=scaled)


def table(rows: Sequence[Row]) -> str:
    """The rows to read."""
    head = f"{'wires':44}{'best':>10}{'median':>10}{'at pace':>10}{'budget':>10}"
    lines = [f"{r.name:44}{r.best:10.2f}{r.median:10.2f}{r.scaled:10.2f}{r.budget:10g} {r.unit}" for r in rows]
    return "\n".join([head, *lines])


if __name__ == "__main__":
    print(table(asyncio.run(measured())))
