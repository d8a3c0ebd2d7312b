"""A model and tools that improvise: whatever they are asked they answer somehow, and the same way when asked again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, get_args

from msgspec import Struct

from onrecord.conversation.inputs import Ask, AskField
from onrecord.errors import ErrorKind, ModelError
from onrecord.flows import Defer, Failed, Ok, Skipped
from onrecord.jsonio import Json, dumps
from onrecord.models.chunks import CallChunk, Chunk, Finished, TextChunk
from onrecord.models.model import ModelCard
from onrecord.models.request import Request, Wire
from onrecord.tools.tool import Tool, ToolContext, ToolResult

__all__ = ("ACTS", "JUDGES", "SPEAKS", "Improviser", "Script")

KINDS = get_args(ErrorKind)
JUDGES = (*("helps", "helps", "eager") * 6, "garbage", "odd", *KINDS[:6])
SPEAKS = (*("fields", "fields", "plain", "tools") * 6, "written", "blank", "garbage", "cut", *KINDS)
ACTS = ("ok", "ok", "spoke", "data", "skipped", "failed", "raises", "defer", "odd defer", "asks", "odd", "none")
GARBAGE = (
    "",
    "no idea",
    "{",
    '{"flows": [1, 2]',
    '{"message": {"deep": 1}}',
    "[]",
    '{"fields": null, "flows": "x"}',
    "```",
)
SCORES = (0, 39, 40, 54, 55, 90, 100, "70", None, -1, 1e9)


class Script(Struct, frozen=True):
    """How model and tools behave during one input. ``serial`` makes every text of it its own."""

    serial: int
    judge: str = "helps"
    speak: str = "plain"
    act: str = "ok"
    seed: int = 0

    def dice(self, *about: object) -> Random:
        """Chance that is the same whenever the same is asked."""
        return Random(f"{self.serial}/{self.seed}/{about}")  # noqa: S311 - nothing is kept secret with it


def _nothing() -> None:
    """What happens where nothing is to happen."""


def made_up(schema: Any, dice: Random) -> Json:
    """A value for a closed, nullable schema: often one that fits."""
    kinds = schema.get("type")
    if "object" in kinds:
        return {name: made_up(part, dice) for name, part in schema["properties"].items()}
    if dice.random() < 0.3:
        return None
    if "enum" in schema and dice.random() < 0.8:
        return dice.choice(schema["enum"])
    if "boolean" in kinds:
        return dice.choice([True, False, True, False, "sim", "maybe"])
    if "integer" in kinds or "number" in kinds:
        return dice.choice(SCORES)
    return dice.choice(["Ana", "Rui", "", "x" * 40, 7, True, ["list"], {"a": 1}])


class Improviser:
    """A model in the mood of its script; `begin` lets it start anew. ``requests`` are those since then."""

    def __init__(self) -> None:
        self.script, self.now = Script(0), datetime.min.replace(tzinfo=UTC)
        self.requests: list[Request] = []
        self.acted: list[tuple[str, str]] = []
        self.moments, self.trip = 0, _nothing

    @property
    def card(self) -> ModelCard:
        return ModelCard(provider="improvised", model="script", protocol="scripted")

    def begin(self, script: Script, now: datetime) -> None:
        """From here on it follows this script."""
        self.script, self.now, self.requests, self.acted = script, now, [], []
        self.moments, self.trip = -1, _nothing

    async def _moment(self) -> None:
        """Where a real model, or a tool, would wait for the world: the one in question trips."""
        self.moments -= 1
        if self.moments == -1:
            self.trip()
            await asyncio.sleep(0)

    def wire(self, request: Request, /) -> Wire:
        return Wire(body=b"{}")

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        place = len(self.requests)
        await self._moment()
        dice = self.script.dice("model", place)
        mood = self.script.judge if request.purpose == "judge" else self.script.speak
        if mood in KINDS and (place == 1 or request.purpose == "judge" or dice.random() < 0.5):
            raise self._error(mood, dice)
        if mood == "garbage":
            text: str = dice.choice(GARBAGE)
        elif request.purpose == "judge":
            text = self._judged(request, dice, mood)
        else:
            for chunk in self._calls(request, dice, mood):
                yield chunk
            text = self._said(request, dice, mood, place)
        for at in range(0, len(text), 17):
            await self._moment()
            yield TextChunk(text[at : at + 17])
            if mood == "cut" and at > 17:
                raise self._error("network", dice)
        yield Finished(finish="stop")

    def _error(self, kind: Any, dice: Random) -> ModelError:
        hours = timedelta(hours=dice.choice([1, 30]))
        return ModelError(
            "improvised", kind=kind, retry_after=dice.choice([None, None, 5.0, 4000.0]),
            reset_at=dice.choice([None, None, self.now + hours]), should_retry=dice.choice([None, None, True, False]),
        )  # fmt: skip

    def _judged(self, request: Request, dice: Random, mood: str) -> str:
        assert request.shape is not None
        told: Any = made_up(request.shape.schema, dice)
        if mood == "odd":
            told = {
                "flows": {"nobody": 100},
                "mentions": {"f0": 1},
                "fields": {"nothing": 1, "name": "Ana"},
                "branches": {"q9": True},
            }
        if mood == "eager":
            told["flows"] = dict.fromkeys(told.get("flows", {}), 100)
            told["mentions"] = dict.fromkeys(told.get("mentions", {}), True)
        return dumps(told).decode()

    def _calls(self, request: Request, dice: Random, mood: str) -> list[CallChunk]:
        if mood != "tools" or not request.offers or dice.random() < 0.3:
            return []
        names = [dice.choice([*(offer.spec.name for offer in request.offers), "unknown"]) for _ in range(2)]
        return [CallChunk(wire_id=f"c{n}", name=name, raw_args="{}") for n, name in enumerate(names)]

    def _said(self, request: Request, dice: Random, mood: str, place: int) -> str:
        words = "" if mood == "blank" else f"Reply {self.script.serial}.{place}, and so on and so on."
        if mood == "plain" or request.shape is None:
            return words
        told: Any = {**made_up(request.shape.schema, dice), "message": words}
        if mood == "written":
            told["toolCalls"] = [{"toolName": dice.choice(["look", "book"]), "arguments": "{}"}]
        return dumps(told).decode()

    # ---- tools and actions

    def tools(self) -> list[Tool]:
        """Tools of the model: one that looks, one that asks a person, one that breaks."""
        return [
            Tool("look", self._look, "Looks.", read_only=True),
            Tool("book", self._book, "Books."),
            Tool("fall", self._fall, "Falls."),
        ]

    async def _look(self, args: Mapping[str, Json], ctx: ToolContext[Any]) -> ToolResult:
        dice = self.script.dice("look")
        await self._moment()
        return ToolResult("seen", data=dice.choice([None, {"name": "Seen"}, {"name": None}, {"other": [1]}]))

    async def _book(self, args: Mapping[str, Json], ctx: ToolContext[Any]) -> Any:
        return await self._ask(ctx)

    async def _fall(self, args: Mapping[str, Json], ctx: ToolContext[Any]) -> Any:
        raise LookupError("it fell")

    async def _ask(self, ctx: ToolContext[Any]) -> Any:
        dice = self.script.dice("ask")
        how: Any = dice.choice(["hold", "hold", "answer", "drop"])
        answer = await ctx.ask(Ask("May it?", on_message=how, fields=(AskField("when"),)))
        return "booked" if answer.approved else "not booked"

    def action(self) -> Tool:
        """The action of every `Do` step. ``acted`` keeps the keys it was called with, and how it ended."""
        return Tool("act", self._act, "Acts.", parameters={"type": "object", "properties": {"text": {}, "deep": {}}})

    async def _act(self, args: Mapping[str, Json], ctx: ToolContext[Any]) -> Any:
        dice = self.script.dice("act", ctx.key)
        how = self.script.act if dice.random() < 0.7 else dice.choice(ACTS)
        self.acted.append((ctx.key, how))
        await self._moment()
        if how == "asks":
            return Ok(str(await self._ask(ctx)))
        if how == "raises":
            raise LookupError("it broke")
        return {
            "ok": Ok("done"), "spoke": Ok(spoke=True), "skipped": Skipped("no need"), "failed": Failed("no way"),
            "data": ToolResult("x", data={"age": 7, "name": ""}),
            "defer": Defer(dice.choice(["0s", "1m", "2h"]), "later"),
            "odd defer": Defer("soon"), "odd": object(), "none": None,
        }[how]  # fmt: skip
