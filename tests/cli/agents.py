"""Agents as a user's file holds them, written into a test's folder; and the command line run on them."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gates.report import ROOT
from onrecord.cli.main import main
from onrecord.record.entry import Entry
from onrecord.session.session import Session
from onrecord.stores.sqlite import SqliteStore

__all__ = (
    "ASKING", "PACED", "RULED", "Cli", "Ran", "Terminal", "command", "entries_of", "environment", "run", "started",
    "stored",
)  # fmt: skip

PACED = '''
"""Talks word by word, as slowly as it is told: "slow" in a message makes it slow."""
import asyncio

from onrecord import Agent, tool
from onrecord.models.chunks import CallChunk, Finished, TextChunk, ThinkingChunk
from onrecord.models.model import ModelCard
from onrecord.models.request import Wire


class Paced:
    card = ModelCard(provider="paced", model="words", protocol="paced", honest="I only count.")

    def wire(self, request):
        return Wire(body=b"{}", stable_until=0)

    async def stream(self, request):
        last = request.conversation.units[-1]
        said = last.text if hasattr(last, "content") and not hasattr(last, "calls") else ""
        if "think" in said:
            yield ThinkingChunk("let me think")
        if "wait" in said:
            yield CallChunk(wire_id="c", name="wait", raw_args="{}")
            yield Finished(finish="calls")
            return
        for number in range(100 if "slow" in said else 3):
            await asyncio.sleep(0.05 if "slow" in said else 0)
            yield TextChunk(f"word{number} ")
        yield Finished(finish="stop")


@tool
async def wait() -> str:
    """Waits for long."""
    await asyncio.Event().wait()  # for good: only an interruption ends it
    return "done"


agent = Agent(Paced(), name="Paced", instructions="Count.", tools=[wait])
'''

ASKING = '''
"""Asks a person: before it books, and for a form; its model does what the message says."""
import asyncio

from onrecord import Agent, Allow, Ask, AskField, ToolContext, before_tool, tool
from onrecord.models.chunks import CallChunk, Finished, TextChunk
from onrecord.models.model import ModelCard
from onrecord.models.request import Wire


class Obedient:
    card = ModelCard(provider="obedient", model="m", protocol="obedient")

    def wire(self, request):
        return Wire(body=b"{}", stable_until=0)

    async def stream(self, request):
        last = request.conversation.units[-1]
        if hasattr(last, "calls") and last.calls:
            read = "".join(part.text for part in last.calls[-1].result)
            yield TextChunk(f"I read: {read}")
            yield Finished(finish="stop")
            return
        if "linger" in last.text:
            yield TextChunk("Well")
            await asyncio.Event().wait()  # for good: only an interruption ends it
        for name in ("book", "form", "sure"):
            if name in last.text:
                args = '{"city": "Porto"}' if name == "book" else "{}"
                yield CallChunk(wire_id="c", name=name, raw_args=args)
                yield Finished(finish="calls")
                return
        yield TextChunk("Nothing to do.")
        yield Finished(finish="stop")


@tool(destructive=True)
async def book(city: str) -> str:
    """Books."""
    return f"booked {city}"


FORM = Ask(
    "Who are you?",
    fields=(
        AskField(name="name", ask="Your name"),
        AskField(name="age", schema={"type": "integer"}, required=False),
        AskField(name="room", schema={"enum": ["single", "double"]}),
    ),
    private={"link": "https://consent.example/secret"},
)


@tool
async def form(ctx: ToolContext[object]) -> object:
    """Fills a form."""
    return (await ctx.ask(FORM)).value


@tool
async def sure(ctx: ToolContext[object]) -> str:
    """Asks whether it is so."""
    answer = await ctx.ask(Ask("Is it so?"))
    return f"{answer.approved} {answer.value}"


@before_tool
async def careful(turn, call):
    if call.name == "book":
        return Ask(f"Book a room in {call.args['city']}?", detail={"price": 220})
    return Allow()


TOLD = "Do as you are told."
agent = Agent(Obedient(), name="Asking", instructions=TOLD, tools=[book, form, sure], features=[careful])
'''

RULED = '''
"""A scripted agent with rules and failures."""
from onrecord import Agent, Allow, Deny, before_tool, on_input, tool
from onrecord.testing import ScriptedModel, call, raises


@tool
async def price(city: str) -> dict:
    """A price."""
    return {"total": 280}


@before_tool
async def not_paris(turn, asked):
    return Deny("we are not in Paris") if asked.args.get("city") == "Paris" else Allow()


@on_input
async def polite(turn, input):
    return Deny("please be polite") if "damn" in str(input.content) else Allow()


def agent():
    model = ScriptedModel(
        ["Let me see. ", call("price", city="Lisbon")],
        "It costs 280.",
        [call("price", city="Paris")],
        "Not in Paris.",
        raises("overload"),
        ["Half an", raises("network")],
        "Fine.",
    )
    return Agent(model, name="Ruled", instructions="You sell rooms.", tools=[price], features=[not_paris, polite])
'''


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Ran:
    """How a command ended: exit code, output, errors."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.out}\n--- stderr\n{self.err}"


Cli = Callable[..., Ran]
"""The command in this process, as the fixture `cli` gives it."""


def entries_of(store: Path, session: str = "ana") -> list[Entry]:
    """The entries that a store holds."""

    async def read() -> list[Entry]:
        async with SqliteStore(store) as opened:
            return [entry async for entry in opened.entries(session)]

    return asyncio.run(read())


def stored(store: Path, session: str = "default") -> Session | None:
    """The session that a store's file holds."""

    async def load() -> Session | None:
        async with SqliteStore(store) as opened:
            return await opened.load(session)

    return asyncio.run(load())


def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str | Path, stdin: str = ""
) -> Ran:
    """The command in this process, with lines on a standard input that is no terminal."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
    capsys.readouterr()
    try:
        code = main([str(a) for a in arguments])
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    told = capsys.readouterr()
    return Ran(code, told.out, told.err)


def command(*arguments: str | Path) -> list[str]:
    """The command as another process runs it."""
    return [sys.executable, "-m", "onrecord", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    """This process's environment, with the source tree in front and no keys."""
    held = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    return {**held, "PYTHONPATH": str(ROOT / "src"), "TERM": "xterm", **more}


def started(*arguments: str | Path, stdin: str = "", folder: Path | None = None, timeout: float = 15) -> Ran:
    """The command in a process of its own, on pipes."""
    done = subprocess.run(
        command(*arguments), input=stdin, capture_output=True, text=True, env=environment(), cwd=folder,
        timeout=timeout, check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)
