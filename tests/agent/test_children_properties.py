"""Whatever happens between the questions of sub-agents, each of their effects is made once under one key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Input, Said
from onrecord.models.request import Request
from onrecord.session import pack, unpack
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.testing import FakeEffects, ScriptedModel, shown
from tests.agent.children import Effects, ask, clerk
from tests.turn.acting import Result, texts

pytestmark = pytest.mark.unit

ERRANDS = st.lists(st.lists(st.sampled_from(["pay", "order"]), min_size=1, max_size=3), min_size=1, max_size=3)
"""What each clerk is asked to do, one thing after the other."""

MAYBE = st.lists(st.booleans(), max_size=8)
"""Whether each of some things goes wrong."""


def worded(errands: list[list[str]]) -> list[str]:
    """Messages that say so; every payment and every order is for something else."""
    return [" ".join(f"{verb}:{a}{b}" for b, verb in enumerate(errand)) for a, errand in enumerate(errands)]


def asks_for(messages: list[str], *, levels: int) -> Any:
    """A model that asks for what is not done yet, as its own record tells."""

    def says(request: Request) -> Any:
        done = " ".join(texts(request))
        left = [m for m in messages if f"{m.split()[-1]} is done" not in done]
        return ask(*left, of="clerk" if levels == 0 else f"middle{levels}") if left else f"All: {done}"

    return says


def passes_on(levels: int) -> Any:
    """A model between: it asks the one below what it was asked itself, and says what that said."""

    def says(request: Request) -> Any:
        talk = shown(request)["messages"]
        done = texts(request)
        said = next(m["content"] for m in talk if m["role"] == "user")
        return done[-1] if done else ask(said, of="clerk" if levels == 0 else f"middle{levels}")

    return says


def build(effects: Effects, messages: list[str], *, side_by_side: bool, levels: int) -> Agent[Any, str]:
    """The agent anew, as a process that has just begun has it."""
    below = clerk(effects)
    for level in range(1, levels + 1):
        tools = [below.as_tool(concurrency_safe=side_by_side)]
        below = Agent(ScriptedModel(*[passes_on(level - 1)] * 40), name=f"middle{level}", tools=tools)
    model = ScriptedModel(*[asks_for(messages, levels=levels)] * 40)
    return Agent(model, tools=[below.as_tool(concurrency_safe=side_by_side)], rounds=20)


class Talk:
    """One message and its answers, over a store, with everything that may go wrong in between."""

    def __init__(self, make: Any, dies: list[bool], doubled: list[bool]) -> None:
        self.make, self.dies, self.twice, self.store = make, iter(dies), iter(doubled), MemoryStore()
        self.given: list[Answered] = []

    async def take(self, input: Input) -> Result:
        """Takes until one is stored: those that are not leave nothing, like a process that died."""
        while True:
            held = await self.store.load("s")
            session: Any = "s" if held is None else unpack(pack(held))
            result: Result = await self.make().turn(input, session=session, effects=FakeEffects())
            if not next(self.dies, False):
                if result.changed:
                    await self.store.commit(result.change())
                return result

    async def doubled(self, session: Session) -> None:
        """An answer that was given before, or to a question that nobody asked, changes nothing."""
        for late in (*self.given[-1:], Answered("s:said::m~0/q99", value="late")):
            result = await self.make().turn(late, session=session, effects=FakeEffects())
            assert (result.status, result.changed) == ("ignored", False)

    async def whole(self) -> tuple[str, list[str]]:
        """To its end: the last text, and what was asked."""
        result, asked = await self.take(Said("go", key="m")), list[str]()
        while (question := result.question) is not None:
            asked.append(question.text)
            held = await self.store.load("s")
            assert held is not None
            if next(self.twice, False):
                await self.doubled(held)
            answer = Answered(question.key, value=f"size{len(asked)}")
            result = await self.take(answer)
            self.given.append(answer)
        return result.text, asked


@settings(max_examples=40, deadline=None)
@given(errands=ERRANDS, side_by_side=st.booleans(), levels=st.integers(0, 2), dies=MAYBE, doubled=MAYBE)
def test_each_effect_is_made_once_whatever_happens(
    errands: list[list[str]], side_by_side: bool, levels: int, dies: list[bool], doubled: list[bool]
) -> None:
    """Clerks that pay and ask in any order, side by side or not, below up to two agents; takes that come to nothing,
    processes that begin anew at each question, answers that come twice or late: one key for each payment, one question
    for each order, and each answer to the one who asked.
    """
    effects, messages = Effects(), worded(errands)

    def make() -> Agent[Any, str]:
        return build(effects, messages, side_by_side=side_by_side, levels=levels)

    text, asked = asyncio.run(Talk(make, dies, doubled).whole())
    things: dict[str, list[str]] = {"pay": [], "order": []}
    for word in (word for message in messages for word in message.split()):
        verb, _, what = word.partition(":")
        things[verb].append(what)
    assert sorted(effects.done) == things["pay"]
    assert any(dies) or len(effects.runs) == len(things["pay"])
    assert sorted(asked) == [f"Which size of {what}?" for what in things["order"]]
    for verb, _, what in (message.split()[-1].partition(":") for message in messages):
        if verb == "order":
            size = asked.index(f"Which size of {what}?") + 1
            assert f"order:{what} is done: {what} in size{size}" in text
