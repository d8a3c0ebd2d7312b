"""Another process that answers a question: only packed bytes, an answer and the model's next words get there.

``python -m tests.turn.pausing.elsewhere AGENT`` reads one JSON line and writes one.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask
from onrecord.conversation.messages import Round
from onrecord.conversation.outgoing import Outcome
from onrecord.session import pack, unpack
from onrecord.session.session import Session
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.tools.tool import Tool
from onrecord.turn.director import Brief, Stage
from onrecord.turn.moments import Hooks
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, tool
from tests.turn.pausing.asking import Acting, approve, asks, sizes

__all__ = ("AGENTS", "Told", "answered_elsewhere")


class Errand(Struct, frozen=True):
    """What the other process is given; an answer of the model is a text, or the names of tools to call."""

    session: bytes
    answer: Answered
    script: tuple[str | tuple[str, ...], ...]


class Told(Struct, frozen=True):
    """What it gives back."""

    session: bytes
    record: bytes
    status: str
    text: str
    ran: tuple[str, ...]


async def one_city(turn: Turn, held: Round) -> Round | Ask:
    """A batch question, asked until it is answered."""
    return Ask("Which city?") if held.calls and turn.resumed is None else held


async def booking(turn: Turn, stage: Stage) -> None:
    """Acts, says a line and speaks; both verbs may ask."""
    stage.outcome(Outcome(kind="flow", status="started"))
    acted = await stage.act(tool("order", asks()), {}, key="order")
    if acted.asked is None:
        await stage.say(f"Size {acted.value}.", key="line")
        await stage.speak(Brief(key="main"))


def tools(ran: list[str]) -> list[Tool]:
    """Tools that say that they ran."""

    def noted(name: str) -> Callable[..., str]:
        def run(args: object, ctx: object) -> str:
            ran.append(name)
            return name

        return run

    return [tool("look", noted("look"), read_only=True), tool("pay", noted("pay")), tool("form", sizes)]


def by_child(model: ScriptedModel, ran: list[str]) -> Agent[Any, str]:
    """An agent whose tool is another agent, which asks before it pays. They share the script."""
    child = Agent(model, name="clerk", tools=tools(ran), features=[approve("pay")])
    return Agent(model, tools=[child.as_tool()])


AGENTS: dict[str, Callable[[ScriptedModel, list[str]], Agent[Any, str]]] = {
    "rule": lambda m, ran: Agent(m, tools=tools(ran), features=[approve("pay")]),
    "handler": lambda m, ran: Agent(m, tools=tools(ran)),
    "batch": lambda m, ran: Agent(m, tools=tools(ran), features=[Named("cities", Hooks(on_reply=one_city))]),
    "director": lambda m, ran: Agent(m, tools=tools(ran), features=[approve("pay")], director=Acting(booking)),
    "child": by_child,
}


def scripted(script: Sequence[str | tuple[str, ...]]) -> ScriptedModel:
    """A model that says these."""
    given: dict[str, Any] = {"clerk": {"message": "go"}}
    steps: list[Any] = [
        step if isinstance(step, str) else [call(name, **given.get(name, {})) for name in step] for step in script
    ]
    return ScriptedModel(*steps)


def answered_elsewhere(
    name: str, session: Session, *script: str | tuple[str, ...], **answer: Any
) -> tuple[Session, Told]:
    """The session after another process answered its question."""
    assert session.question is not None
    errand = Errand(pack(session), Answered(session.question.key, **answer), script)
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-m", "tests.turn.pausing.elsewhere", name],
        input=msgspec.json.encode(errand), capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    told = msgspec.json.decode(done.stdout, type=Told)
    return unpack(told.session), told


async def _run(name: str, errand: Errand) -> Told:
    ran: list[str] = []
    agent = AGENTS[name](scripted(errand.script), ran)
    result = await agent.turn(errand.answer, session=unpack(errand.session), effects=FakeEffects())
    assert result.session is not None
    record = b"".join(agent.plan.codec.lines(result.entries))
    return Told(pack(result.session), record, result.status, result.text, tuple(ran))


if __name__ == "__main__":
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # a busy machine makes callbacks slow, which is no fault here
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=Errand)
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(_run(sys.argv[1], given))))
