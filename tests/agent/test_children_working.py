"""Sub-agents at work: their names and keys, who sees what they do, how deep they go, and how they are stopped."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Interruption
from onrecord.conversation.outgoing import CallDelta, ChildDelta, TextDelta
from onrecord.errors import ModelError
from onrecord.governance.rules import on_output
from onrecord.models.chunks import TextChunk
from onrecord.record.kinds import ToolStarted, TurnInterrupted
from onrecord.testing import FakeEffects, ScriptedModel, call, raises
from onrecord.tools.tool import Tool
from onrecord.turn.moments import Allow
from tests.agent.children import Effects, ask, clerk
from tests.turn.acting import bodies, results, texts, tool, turn

pytestmark = pytest.mark.integration


def started(result: Any) -> list[str]:
    """The keys under which tools of its sub-agents ran."""
    return [body.key for child in result.children for body in bodies(child, ToolStarted)]


# ---- names and keys --------------------------------------------------------------------------------------------------


async def test_a_take_that_begins_anew_gives_a_child_s_effects_the_same_keys() -> None:
    """Also where the model asks for the same in another round: what must not happen twice is told by what it is."""
    effects = Effects()
    model = ScriptedModel(
        [call("look"), *ask("pay:a", "pay:b")], raises("overload"),
        ask("pay:a"), ask("pay:b"), "Done.",
    )  # fmt: skip
    agent = Agent(model, tools=[clerk(effects).as_tool(), tool("look")])
    with pytest.raises(ModelError):
        await agent.turn("go", session="s", effects=Same())
    result = await agent.turn("go", session="s", effects=Same())
    assert ([what for _, what in effects.runs], effects.done) == (["a", "b", "a", "b"], ["a", "b"])
    assert started(result) == [key for key, _ in effects.runs[2:]]
    assert len({e.turn for child in result.children for e in child.entries}) == 2


class Same(FakeEffects):
    """The names that a take gets which is the same one again: those of its row."""

    def nonce(self) -> str:
        return "m"


async def test_equal_calls_are_two() -> None:
    """The same agent with the same words, twice in one reply: each has its own session and keys."""
    effects = Effects()
    result = await turn(
        Agent(ScriptedModel(ask("pay:a", "pay:a"), "Done."), tools=[clerk(effects).as_tool(concurrency_safe=True)])
    )
    assert (len(effects.runs), len(effects.done)) == (2, 2)
    assert len({c.session.key for c in result.children if c.session}) == 2


async def test_names_grow_by_the_same_with_each_level() -> None:
    """A session's key holds those above it, once."""
    agent: Agent[Any, str] = Agent(ScriptedModel("bottom"), name="l0")
    for level in range(1, 7):
        agent = Agent(ScriptedModel(ask("x", of=f"l{level - 1}"), "up"), name=f"l{level}", tools=[agent.as_tool()])
    result, keys = await turn(agent, session="s"), list[str]()
    while result.children:
        (result,) = result.children
        assert result.session is not None
        keys.append(result.session.key.id)
    assert keys[1] == f"{keys[0]}/said::call~0/answer/r0/c0"
    assert {len(b) - len(a) for a, b in pairwise(keys)} == {len("/said::call~0/answer/r0/c0")}


# ---- depth -----------------------------------------------------------------------------------------------------------


class Everyone:
    """A toolset that offers an agent to itself."""

    def __init__(self) -> None:
        self.all: tuple[Tool, ...] = ()

    async def tools(self, ctx: Any) -> tuple[Tool, ...]:
        return self.all


async def test_an_agent_that_is_its_own_tool_goes_eight_deep_and_is_told() -> None:
    """Each is the tool of the one above; the ninth is not asked, and the words say why."""
    everyone, model = Everyone(), ScriptedModel(*[ask("deeper", of="self")] * 9, *["up"] * 9)
    agent: Agent[Any, str] = Agent(model, name="self", tools=[everyone])
    everyone.all = (agent.as_tool(),)
    result = await turn(agent)
    assert (result.text, len(model.requests)) == ("up", 18)
    told = texts(model.requests[9])
    assert told == ['{"error":"self was not asked: 8 agents are at work one below the other, which is the most"}']


# ---- reading along ---------------------------------------------------------------------------------------------------


async def test_a_reader_sees_that_a_child_works_and_none_of_its_words() -> None:
    """Its calls come wrapped, those of a grandchild twice; the text of the stream is the parent's alone."""
    low = clerk()
    middle = Agent(ScriptedModel(ask("pay:a"), "middle-canary"), name="middle", tools=[low.as_tool(), tool("look")])
    model = ScriptedModel(["Let me ask. ", *ask("go", of="middle")], "Paid.")
    stream = Agent(model, tools=[middle.as_tool()]).turn_stream("hi", effects=FakeEffects())
    deltas = [delta async for delta in stream]
    assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == "Let me ask. Paid."
    assert "canary" not in repr(deltas)
    seen = []
    for delta in deltas:
        path, inner = list[str](), delta
        while isinstance(inner, ChildDelta):
            path, inner = [*path, inner.agent], inner.delta
        if isinstance(inner, CallDelta):
            seen.append((*path, inner.name, inner.status))
    assert seen == [
        ("middle", "asked"),
        ("middle", "clerk", "asked"),
        ("middle", "clerk", "pay", "asked"),
        ("middle", "clerk", "pay", "returned"),
        ("middle", "clerk", "returned"),
        ("middle", "returned"),
    ]
    result = await stream.result()
    assert result.children[0].text == "middle-canary"


async def test_what_a_child_said_counts_as_shown_to_nobody() -> None:
    """A model that fails in the middle of its words leaves the call failed and the parent's stream as it was."""
    low: Agent[Any, str] = Agent(ScriptedModel([TextChunk("half-canary"), raises("overload")]), name="clerk")
    stream = Agent(ScriptedModel(ask("x"), "Sorry."), tools=[low.as_tool()]).turn_stream("hi", effects=FakeEffects())
    assert [text async for text in stream.text] == ["Sorry."]
    result = await stream.result()
    assert results(result) == [("clerk", "failed")]
    assert "canary" not in repr(result.children[0].entries[-1])


# ---- being stopped ---------------------------------------------------------------------------------------------------


class Stopping:
    """A clerk whose tool or model waits until somebody stops the turn above it."""

    def __init__(self) -> None:
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.ended: list[str] = []

    async def slow(self, args: Any, ctx: Any) -> str:
        self.began.set()
        await self.go_on.wait()
        self.ended.append("paid")
        return "paid"

    async def stuck(self, request: Any) -> Any:
        self.began.set()
        await asyncio.Event().wait()


class Hanging(ScriptedModel):
    """A model whose reply never comes."""

    def __init__(self, began: asyncio.Event) -> None:
        super().__init__()
        self.began = began

    async def stream(self, request: Any, /) -> Any:
        self.began.set()
        await asyncio.Event().wait()
        yield TextChunk("never")


@pytest.mark.parametrize("several", [1, 2])
async def test_an_interruption_reaches_a_child_s_model_at_once(several: int) -> None:
    """Neither waits for words that nobody wants; both records tell of it, and the call is not told as unknown."""
    at = Stopping()
    low: Agent[Any, str] = Agent(Hanging(at.began), name="clerk")
    model = ScriptedModel(ask(*map(str, range(several))))
    stream = Agent(model, tools=[low.as_tool(concurrency_safe=True)]).turn_stream("hi", session="s")
    async with asyncio.timeout(5), stream:
        reading = asyncio.ensure_future(stream.result())
        await at.began.wait()
        await asyncio.sleep(0)
        await stream.leave()
        result = await reading
    assert (result.status, [c.status for c in result.children]) == ("interrupted", ["interrupted"] * several)
    assert results(result) == [("clerk", "failed")] * several
    assert [bodies(c, TurnInterrupted)[0].cause for c in result.children] == ["left"] * several
    assert len(result.change().children) == several


async def test_a_child_s_effect_that_began_is_waited_for() -> None:
    """It is told as it ended; the child asks its model nothing more."""
    at = Stopping()
    low = Agent(ScriptedModel([call("pay")]), name="clerk", tools=[Tool("pay", at.slow, "Pay.")])
    model = ScriptedModel(ask("x"))
    stream = Agent(model, tools=[low.as_tool()]).turn_stream("hi")
    async with asyncio.timeout(5), stream:
        reading = asyncio.ensure_future(stream.result())
        await at.began.wait()
        leaving = asyncio.ensure_future(stream.leave())
        await asyncio.sleep(0)
        at.go_on.set()
        await leaving
        result = await reading
    assert (at.ended, result.status) == (["paid"], "interrupted")
    assert results(result.children[0]) == [("pay", "returned")]
    assert low.plan.model.calls == ["speak"]  # type: ignore[attr-defined]  # a ScriptedModel


async def test_an_interruption_that_comes_before_a_child_begins_stops_it_there() -> None:
    """Its message is on its record; no model is asked."""
    low: Agent[Any, str] = Agent(ScriptedModel(), name="clerk")

    async def stops(args: Any, ctx: Any) -> Any:
        ctx.turn.interrupted = Interruption(id="i")
        return await low.as_tool().handler({"message": "x"}, ctx)

    result = await turn(Agent(ScriptedModel([call("via")]), tools=[Tool("via", stops, "Via.")]))
    assert [c.status for c in result.children] == ["interrupted"]


# ---- what the parent's model reads -----------------------------------------------------------------------------------


async def test_a_child_without_words_is_told_as_such() -> None:
    """An empty result would look like a broken tool."""
    low: Agent[Any, str] = Agent(ScriptedModel(""), name="clerk")
    model = ScriptedModel(ask("x"), "Hm.")
    result = await turn(Agent(model, tools=[low.as_tool()]))
    assert (results(result), texts(model.requests[1])) == ([("clerk", "absent")], ["clerk gave no answer."])


async def test_a_child_sees_its_message_and_nothing_above() -> None:
    """Neither the conversation nor the instructions of the parent."""
    low: Agent[Any, str] = Agent(ScriptedModel("ok"), name="clerk", instructions="You are the clerk.")
    agent = Agent(ScriptedModel(ask("do x"), "Done."), instructions="parent-canary", tools=[low.as_tool()])
    await turn(agent, "person-canary")
    request = low.plan.model.requests[0]  # type: ignore[attr-defined]  # a ScriptedModel
    assert "canary" not in repr(request.conversation) + repr(request.pieces)


async def test_rules_of_the_parent_see_what_the_child_gave() -> None:
    """And its own rules what it says: each governs its own turn."""

    @on_output
    async def shouts(turn: Any, answer: Any) -> Any:
        from msgspec.structs import replace

        return Allow(replace(answer, text=answer.text.upper()), "louder")

    low: Agent[Any, str] = Agent(ScriptedModel("quiet"), name="clerk", features=[shouts])
    model = ScriptedModel(ask("x"), "as it is")
    result = await turn(Agent(model, tools=[low.as_tool()]))
    assert (texts(model.requests[1]), result.text) == (["QUIET"], "as it is")
