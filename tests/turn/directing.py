"""A director that is one function, for tests of the stage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from onrecord.agent import Agent
from onrecord.models.request import Piece, Reading, Shape
from onrecord.testing import ScriptedModel
from onrecord.turn.director import Query, Stage
from onrecord.turn.turn import Turn
from tests.turn.acting import turn

PLAIN = Shape(name="plain", schema={"type": "object"}, read=lambda r: Reading(text=r.text, value=r.text))
Script = Callable[[Turn, Stage], Awaitable[None]]


class Directed:
    """A director that is one function."""

    def __init__(self, script: Script) -> None:
        self.script = script

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        await self.script(turn, stage)


def query(key: str = "understand") -> Query[str]:
    """A question to the model whose answer is its text."""
    return Query(key=key, pieces=(Piece(source="q", text="Q", place="trailing"),), shape=PLAIN)


async def played(script: Script, *answers: Any, judge: Any = (), given: Any = "hi", **more: Any) -> Any:
    """One turn under a director."""
    options = {name: more.pop(name) for name in ("session", "options", "effects") if name in more}
    agent: Agent[Any, Any] = Agent(ScriptedModel(*answers, judge=judge), director=Directed(script), **more)
    return await turn(agent, given, **options)
