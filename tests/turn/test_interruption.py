"""A turn that is left while it runs: what was shown and done is kept, what was not says so (architecture §7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import Mark, Text
from onrecord.conversation.inputs import Interruption
from onrecord.conversation.messages import AssistantMessage
from onrecord.models.chunks import TextChunk
from onrecord.models.request import Request
from onrecord.record.kinds import ToolReturned, TurnInterrupted
from onrecord.session.folding import refold
from onrecord.testing import FakeEffects, ScriptedModel, call, reply
from onrecord.turn.moments import ALLOW, Hooks
from onrecord.turn.stream import TurnStream
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, calls_of, kinds, read, results, tool, turn

pytestmark = pytest.mark.unit


class Halting(ScriptedModel):
    """A model whose replies wait after their first piece, from the given request on."""

    def __init__(self, *answers: Any, at: int = 0) -> None:
        super().__init__(*answers)
        self.at, self.closed = at, 0

    async def stream(self, request: Request, /) -> AsyncGenerator[Any, None]:
        waits = len(self.requests) == self.at
        try:
            async for chunk in super().stream(request):
                yield chunk
                if waits and isinstance(chunk, TextChunk):
                    await asyncio.Event().wait()
        finally:
            self.closed += 1


def streaming(model: ScriptedModel, *tools: Any, **given: Any) -> TurnStream[Any]:
    """A live turn."""
    agent: Agent[Any, Any] = Agent(model, tools=tools)
    return agent.turn_stream("hi", effects=FakeEffects(), **given)


async def test_leaving_stops_the_model_and_keeps_what_was_shown() -> None:
    """Marked as interrupted; nothing is delivered; the model's stream is closed."""
    model = Halting(["one ", "two"])
    stream = streaming(model)
    async for text in stream.text:
        assert text == "one "
        break
    result = await stream.result()
    assert (result.status, result.messages, model.closed) == ("interrupted", (), 1)
    (cut,) = bodies(result, TurnInterrupted)
    assert (cut.cause, cut.shown, cut.of) == ("left", (Text("one "),), result.entries[0].turn)
    assert result.session is not None
    message = result.session.conversation.messages[-1]
    assert isinstance(message, AssistantMessage)
    assert (message.text, message.interrupted) == ("one ", "left")


async def test_the_next_turn_reads_where_the_answer_was_cut() -> None:
    """The model learns that it was interrupted, and where."""
    stream = streaming(Halting(["one ", "two"]))
    async with stream:
        async for _ in stream.text:
            break
    result = await stream.result()
    model = ScriptedModel("again")
    await turn(Agent(model), "go on", session=result.session)
    assert [m["content"] for m in read(model.requests[0])["messages"]] == ["hi", "one  [interrupted here]", "go on"]


async def test_an_interrupted_record_folds_to_the_same_session() -> None:
    """Replay cuts where the turn was cut."""
    stream = streaming(Halting(reply("look ", call("a")), ["one ", "two"], at=1), tool("a"), session="s")
    seen = []
    async for text in stream.text:
        seen.append(text)
        if len(seen) == 2:
            break
    result = await stream.result()
    assert result.session is not None
    assert refold(result.session.key, result.entries, digest_key=result.session.digest_key) == result.session
    assert results(result) == [("a", "returned")]


async def test_a_turn_left_before_it_began_says_nothing() -> None:
    """The model is not asked."""
    model = ScriptedModel("never")
    stream = streaming(model)
    async with stream:
        pass
    result = await stream.result()
    assert (result.status, model.requests) == ("interrupted", [])


async def test_leaving_a_turn_that_is_through_changes_nothing() -> None:
    """It stands as it was."""
    stream = streaming(ScriptedModel("done"))
    result = await stream.result()
    await stream.leave()
    assert (result.status, await stream.result()) == ("answered", result)


# ---- tools -----------------------------------------------------------------------------------------------------------


class Working:
    """Handlers that say when they run, and go on when they are let."""

    def __init__(self) -> None:
        self.running, self.go, self.done = asyncio.Event(), asyncio.Event(), list[str]()

    def handler(self, name: str) -> Callable[..., Any]:
        """One of them."""

        async def run(args: object, ctx: object) -> str:
            self.running.set()
            await self.go.wait()
            self.done.append(name)
            return name

        return run


async def cut(stream: TurnStream[Any], work: Working) -> Any:
    """Leaves a turn while its handlers run, lets them go on, and waits for its end."""
    reading = asyncio.ensure_future(stream.result())
    await work.running.wait()
    leaving = asyncio.ensure_future(stream.leave())
    for _ in range(5):
        await asyncio.sleep(0)
    work.go.set()
    await leaving
    return await reading


async def test_a_started_call_that_may_change_something_is_waited_for() -> None:
    """Its result is kept; calls behind it did not run, and no request follows."""
    work = Working()
    model = ScriptedModel([call("book"), call("lookup")])
    result = await cut(streaming(model, tool("book", work.handler("book")), tool("lookup")), work)
    assert result.status == "interrupted"
    assert work.done == ["book"]
    assert results(result) == [("book", "returned"), ("lookup", "not_run")]
    assert [c.status for c in calls_of(result)] == ["returned", "not_run"]
    assert kinds(result)[-1] == "turn.interrupted"


async def test_a_call_that_only_reads_is_cut() -> None:
    """Its outcome is unknown, and the model will read so."""
    work = Working()
    model = ScriptedModel(call("lookup"))
    result = await cut(streaming(model, tool("lookup", work.handler("lookup"), read_only=True)), work)
    assert work.done == []
    (told,) = bodies(result, ToolReturned)
    assert told.status == "cancelled"
    assert told.result == (
        Text('{"error":"Cancelled: the turn was interrupted while this ran, so its outcome is unknown."}'),
    )


async def test_beside_a_call_that_writes_those_that_only_read_are_cut() -> None:
    """Safe calls run together; each ends as its nature says."""
    work = Working()
    held = [
        tool("save", work.handler("save"), concurrency_safe=True),
        tool("look", work.handler("look"), read_only=True, concurrency_safe=True),
    ]
    result = await cut(streaming(ScriptedModel([call("save"), call("look")]), *held), work)
    assert work.done == ["save"]
    assert results(result) == [("save", "returned"), ("look", "cancelled")]


async def test_what_ran_before_the_cut_stays_in_the_conversation() -> None:
    """The next turn's model sees the call and its result, and does not do it again."""
    work = Working()
    model = ScriptedModel([call("first"), call("second")])
    stream = streaming(model, tool("first"), tool("second", work.handler("second"), read_only=True))
    result = await cut(stream, work)
    later = ScriptedModel("ok")
    await turn(Agent(later, tools=[tool("first"), tool("second")]), "and?", session=result.session)
    told = [(m.get("name"), m["content"]) for m in read(later.requests[0])["messages"] if m["role"] == "tool"]
    assert told[0] == ("first", "first")
    assert told[1][0] == "second"
    assert "outcome is unknown" in told[1][1]


async def test_a_cut_between_two_calls_of_a_round_keeps_the_first() -> None:
    """A rule that waits before the second call is left there."""
    waiting = asyncio.Event()

    async def slow(turn: Any, asked: Any) -> Any:
        if asked.name == "b":
            waiting.set()
            await asyncio.Event().wait()
        return ALLOW

    agent: Agent[Any, Any] = Agent(
        ScriptedModel([call("a"), call("b")]),
        tools=[tool("a"), tool("b")],
        features=[Named("slow", Hooks(before_tool=slow))],
    )
    stream = agent.turn_stream("hi", effects=FakeEffects())
    reading = asyncio.ensure_future(stream.result())
    await waiting.wait()
    await stream.leave()
    result = await reading
    assert results(result) == [("a", "returned"), ("b", "not_run")]
    assert [c.status for c in calls_of(result)] == ["returned", "not_run"]


async def test_a_turn_is_interrupted_once() -> None:
    """The first cause stands."""
    seen, running = list[bool](), list[Turn]()

    async def keep(turn: Turn, given: Any) -> Any:
        running.append(turn)
        return ALLOW

    def interrupting(request: Request) -> str:
        seen.extend(running[0].interrupt(Interruption(id=cause, cause=cause)) for cause in ("stopped", "left"))
        return "never"

    agent: Agent[Any, Any] = Agent(ScriptedModel(interrupting), features=[Named("keep", Hooks(on_input=keep))])
    result = await turn(agent)
    assert seen == [True, False]
    assert [b.cause for b in bodies(result, TurnInterrupted)] == ["stopped"]
    assert result.status == "interrupted"


async def test_the_task_of_an_interrupted_turn_goes_on() -> None:
    """Only the turn was cut: whoever awaited it is not cancelled."""
    stream = streaming(Halting(["one ", "two"]))
    async for _ in stream.text:
        break
    await stream.result()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_words_and_marks_shown_before_the_cut_are_kept_in_order() -> None:
    """Neighbouring pieces are one text."""

    class Stars:
        def feed(self, item: str | Mark, /) -> list[str | Mark]:
            return [Mark(kind="star", raw="*")] if item == "*" else [item]

        def close(self) -> list[str | Mark]:
            return []

    class Pausing(ScriptedModel):
        async def stream(self, request: Request, /) -> AsyncGenerator[Any, None]:
            for piece in ("a", "b", "*", "c"):
                yield TextChunk(piece)
            await asyncio.Event().wait()

    def stars(turn: Turn) -> Stars:
        return Stars()

    agent: Agent[Any, Any] = Agent(Pausing(), features=[Named("stars", Hooks(on_text=stars))])
    stream = agent.turn_stream("hi", effects=FakeEffects())
    async for text in stream.text:
        if text == "c":
            break
    (cut,) = bodies(await stream.result(), TurnInterrupted)
    assert cut.shown == (Text("ab"), Mark(kind="star", raw="*"), Text("c"))
