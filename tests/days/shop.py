"""The agent of the days: a shop with seven flows, a model that does as its customers say, and a clock of its own.

Customers write words for people, and marks for the model: ``I am Ana <<name=Ana>>``. So what is understood is known,
and everything else is left to flows and host.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import random
import re
import struct
import time
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask, Woke
from onrecord.conversation.messages import Round, UserMessage
from onrecord.errors import ModelError
from onrecord.flows import (
    Collect,
    Cooldown,
    Defer,
    Do,
    Failed,
    Field,
    Flow,
    Flows,
    Idle,
    If,
    Ok,
    OnEvent,
    OnMention,
    OnMessage,
    OnSilence,
    Run,
    Say,
    Talk,
    Wait,
    WaitEvent,
)
from onrecord.governance.rules import on_input
from onrecord.jsonio import Json, dumps
from onrecord.models.chunks import CallChunk, Chunk, Finished, TextChunk
from onrecord.models.model import ModelCard
from onrecord.models.request import Request, Wire
from onrecord.tools.tool import Tool, ToolContext
from onrecord.turn.effects import PlainEffects
from onrecord.turn.moments import Allow
from tests.soak.diary import Diary

__all__ = ("BEGIN", "OUTAGES", "Clock", "Days", "shop")

BEGIN = datetime(2026, 9, 21, tzinfo=UTC)
"""When the first day begins: a Monday."""

OUTAGES = ((timedelta(days=1, hours=10), timedelta(minutes=50)), (timedelta(days=4, hours=9), timedelta(minutes=4)))
"""When no model answers: how long after the beginning, and for how long."""

# ---- time ------------------------------------------------------------------------------------------------------------


class Clock:
    """The real clock and an offset that all processes read from one file; whoever jumps it moves everybody."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(struct.pack("<q", 0))
        with path.open("r+b") as file:
            self._kept = mmap.mmap(file.fileno(), 8)

    def jump(self, seconds: float) -> None:
        """Moves it."""
        (held,) = struct.unpack("<q", self._kept[:8])
        self._kept[:8] = struct.pack("<q", held + round(seconds * 1e6))

    def now(self) -> datetime:
        """The instant that it shows."""
        (held,) = struct.unpack("<q", self._kept[:8])
        return datetime.fromtimestamp((time.time_ns() // 1000 + held) / 1e6, UTC)


class Days(PlainEffects):
    """Effects on that clock; every name says which life of which process made it."""

    def __init__(self, clock: Clock, life: str) -> None:
        self.now = clock.now
        self.life = life

    def nonce(self) -> str:
        """A name of this life."""
        return f"{self.life}.{os.urandom(6).hex()}"


def opening(at: datetime, context: Any) -> datetime:
    """The next moment between nine and six."""
    nine = at.replace(hour=9, minute=0, second=0, microsecond=0)
    if at.hour >= 18:
        return nine + timedelta(days=1)
    return max(at, nine)


# ---- the model -------------------------------------------------------------------------------------------------------

_MARKS = re.compile(r"<<([^<>]*)>>")
_LATEST = "## Customer's latest message"


class Clerk:
    """A model that reads the marks of the latest message, never says the same line twice, and is away now and then."""

    card = ModelCard(provider="days", model="clerk", protocol="scripted", about="a test double")

    def __init__(self, clock: Clock, life: str, chance: random.Random) -> None:
        self.clock, self.life, self.chance, self.said = clock, life, chance, 0

    def wire(self, request: Request, /) -> Wire:
        """Nothing is sent."""
        return Wire(body=b"{}")

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        """What the marks say, in the form that is asked for."""
        await asyncio.sleep(self.chance.expovariate(500))
        passed = self.clock.now() - BEGIN
        if any(begin <= passed < begin + long for begin, long in OUTAGES) or self.chance.random() < 0.01:
            raise ModelError("away", kind="overload", provider="days")
        marks = _marks(request)
        if request.purpose == "judge":
            yield TextChunk(dumps(_judged(marks)).decode())
        elif "look" in marks and request.offers and not _has_called(request):
            yield CallChunk(wire_id="c1", name="look", raw_args="{}")
        else:
            text = self._told(request, marks)
            half = len(text) // 2
            yield TextChunk(text[:half])
            if self.chance.random() < 0.01:
                raise ModelError("cut", kind="network", provider="days", started=True)
            yield TextChunk(text[half:])
        yield Finished()

    def _told(self, request: Request, marks: Mapping[str, Json]) -> str:
        self.said += 1
        names: Any = request.shape.schema["properties"] if request.shape is not None else {"message": {}}
        told: dict[str, Json] = {name: marks.get(name) for name in names}
        told["message"] = f"Line {self.said} of {self.life}."
        return dumps(told).decode()


def _marks(request: Request) -> dict[str, Json]:
    latest = "".join(piece.text for piece in request.pieces if piece.text.startswith(_LATEST))
    units = request.conversation.units
    if not latest:  # it is tried again: what the customer wrote last is still unanswered
        wrote = (
            unit.text for unit in (units[at] for at in range(len(units) - 1, -1, -1)) if isinstance(unit, UserMessage)
        )
        latest = next(wrote, "")
    found: dict[str, Json] = {}
    for word in " ".join(_MARKS.findall(latest)).split():
        name, _, value = word.partition("=")
        found[name] = value == "yes" if name == "ok" else value or True
    return found


def _judged(marks: Mapping[str, Json]) -> Json:
    rival = marks.get("rival")
    return {
        "flows": {name: 90 for name in ("quote", "promo", "refund") if name in marks},
        "mentions": {"rival": bool(rival)}, "extract": {"rival": {"who": rival}},
        "fields": {name: marks[name] for name in ("name", "size") if name in marks}, "asks": "asks" in marks,
    }  # fmt: skip


def _has_called(request: Request) -> bool:
    last = request.conversation.units[-1] if len(request.conversation.units) else None
    return isinstance(last, Round) and bool(last.calls)


# ---- the flows -------------------------------------------------------------------------------------------------------

FIELDS = {
    "name": Field(type="string", ask="Ask the name."), "size": Field(type="string", enum=("small", "large")),
    "ok": Field(type="boolean", ask="Ask whether it is right."),
}  # fmt: skip
QUOTE = Flow(
    "quote", on=[OnMessage("wants a quote")], on_end="end",
    steps=[
        Collect("name", "size", id="who", prompt="Ask who they are.", max_asks=4),
        Collect("ok", id="sure", question="Shall we send you the offer, {{data.name}}?", max_asks=4),
        If({"equals": {"ok": True}}, id="if", else_="no"), Do("file", id="file", args={"text": "{{data.name}}"}),
        Wait("5s", id="breath"), Say("Thanks {{data.name}}, it is on its way.", id="thanks", then="end"),
        Say("Another time, then.", id="no"),
    ],
)  # fmt: skip
RIVAL = Flow(
    "rival", on=[OnMention("names a rival", repeat="always", extract={"who": {"type": "string"}})],
    steps=[Do("file", id="file", args={"text": "rival {{input.who}}"})],
)  # fmt: skip
NUDGE = Flow(
    "nudge", on=[OnSilence("24h", business_hours=True, repeat=Cooldown("4d"))],
    steps=[Talk("Pick it up.", id="p1"), Wait("2d", id="w", else_="end"), Talk("Last try.", id="p2")],
)  # fmt: skip
PARCEL = Flow(
    "parcel", on=[OnEvent("shipped", after="1h", business_hours=True)],
    steps=[
        Say("It is on its way.", id="told", once=True), WaitEvent("delivered", id="w", up_to="2d", else_="late"),
        Talk("Ask whether it is as wished.", id="well", then="end"),
        Do("file", id="late", args={"text": "late"}), Say("We are looking into it.", id="sorry"),
    ],
)  # fmt: skip
PROMO = Flow(
    "promo", on=[OnMessage("asks for a discount", repeat=Cooldown("3d"))],
    steps=[Say("Here is your code.", id="code"), Do("slow", id="slow", args={"text": "code"})],
)  # fmt: skip
WELCOME = Flow("welcome", on=[OnMessage()], steps=[Say("Welcome to the shop.", id="hi", once=True)])
REFUND = Flow(
    "refund", on=[OnMessage("wants money back", repeat="always")],
    steps=[
        Do("refund", id="ask", on_fail="no"), Say("You get it back.", id="yes", then="end"),
        Say("It cannot be given back.", id="no"),
    ],
)  # fmt: skip


def shop(clock: Clock, life: str, chance: random.Random, diary: Diary) -> Agent[Any, Any]:
    """The agent, as one life of a worker runs it. What its actions do outside is in the diary."""

    async def effect(ctx: ToolContext[Any], name: str, args: Mapping[str, Json]) -> None:
        await asyncio.sleep(chance.expovariate(1000))
        diary.note("acted", session=ctx.context["customer"], key=ctx.key, name=name, args=dict(args))
        await asyncio.sleep(chance.expovariate(1000))

    async def file(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Ok:
        await effect(ctx, "file", args)
        return Ok("filed")

    async def slow(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Any:
        """Comes back an hour later, once."""
        if isinstance(ctx.run, Run) and clock.now() - ctx.run.started_at < timedelta(minutes=59):
            return Defer("1h", "later")
        await effect(ctx, "slow", args)
        return Ok()

    async def refund(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Any:
        given = await ctx.ask(Ask("Give it back?", audience="staff"))
        if not given.approved:
            return Failed("declined")
        await effect(ctx, "refund", args)
        return Ok()

    async def look(args: Mapping[str, Json], ctx: ToolContext[Any]) -> str:
        await asyncio.sleep(chance.expovariate(1000))
        return "in stock"

    @on_input
    async def gate(turn: Any, input: Any) -> Allow[Any]:
        """Cannot always tell whether somebody may be written to."""
        if isinstance(input, Woke) and chance.random() < 0.02:
            raise ConnectionError
        return Allow()

    text: Mapping[str, Json] = {"type": "object", "properties": {"text": {"type": "string"}}}
    director = Flows(
        QUOTE, RIVAL, NUDGE, PARCEL, PROMO, WELCOME, REFUND, fields=FIELDS, events=["shipped", "delivered"],
        actions=[Tool("file", file, parameters=text), Tool("slow", slow, parameters=text), Tool("refund", refund)],
        business_hours=opening, lone_flow="score", idle=Idle("Answer briefly."),
    )  # fmt: skip
    return Agent(
        Clerk(clock, life, chance), name="Ana", director=director, features=[gate],
        tools=[Tool("look", look, read_only=True)],
    )  # fmt: skip
