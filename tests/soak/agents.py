"""The agent that a soak runs: tools with effects outside, one that asks a person, and wakes that arm themselves."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

from onrecord import Agent, Ask, Said, ToolContext, Woke, tool
from onrecord.conversation.inputs import Happened
from onrecord.conversation.outgoing import Wake
from onrecord.models.retry import Reliable
from onrecord.providers.openai_compatible import openai_compatible
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn

__all__ = ("TICKS", "Till", "agent_at")

TICKS = 3
"""How often a wake comes."""


class Till:
    """A service that books each key once, whoever asks how often."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def book(self, key: str, amount: int) -> str:
        """The receipt."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            body = json.dumps({"key": key, "amount": amount}).encode()
            writer.write(b"POST /till HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].split(b"\r", 1)[0])
            return (await reader.readexactly(size)).decode()
        finally:
            writer.close()


@tool
async def book(ctx: ToolContext[Till], amount: int) -> str:
    """Books an amount."""
    return await ctx.context.book(ctx.key, amount)


@tool
async def refund(ctx: ToolContext[Till], amount: int) -> str:
    """Gives an amount back, once a person has agreed."""
    answer = await ctx.ask(Ask(f"Give back {amount}?"))
    return await ctx.context.book(ctx.key, -amount) if answer.approved else "not given back"


@tool(read_only=True)
async def look(ctx: ToolContext[Till]) -> str:
    """Looks around."""
    await asyncio.sleep(0.02)
    return "nothing new"


class Floor:
    """Wakes and events are answered by a line; messages by the model, and some arm a wake."""

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        if isinstance(turn.input, Woke):
            tick = turn.input.payload
            assert isinstance(tick, int)
            await stage.say(f"Tick {tick}.", key="tick", after_ms=100)
            if tick + 1 < TICKS:
                stage.arm(Wake(key=turn.input.key, at=turn.now + timedelta(seconds=0.3), payload=tick + 1))
            return
        if isinstance(turn.input, Happened):
            await stage.say(f"Noted {turn.input.key}.", key="noted")
        if isinstance(turn.input, Said) and str(turn.input.content).startswith("Remind me"):
            stage.arm(Wake(key=f"tick {turn.input.key}", at=turn.first_now + timedelta(seconds=0.2), payload=0))
        await stage.speak(turn.spec.brief)


def agent_at(port: int) -> Agent[Any, Any]:
    """The agent, with its model behind the vendor of a soak."""
    model = openai_compatible(f"http://127.0.0.1:{port}/v1", "m", retry=False, silence_s=5.0)
    patient = Reliable(model, waits_s=(0.05,), longest_s=0.5)
    return Agent(patient, tools=[book, refund, look], director=Floor(), context=Till)
