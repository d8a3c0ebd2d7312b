"""Cases of ``spec/conversation-chat-cases.md`` E whose promise the loop keeps, and where the others of E stand.

The cases of A and B are beside transcript, rendering and projection; those of E about bodies, statuses and headers
beside the Chat wire. E18, E19, E20 and E23, where a model is chosen between two rounds, are in ``tests/prompt``.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.outgoing import Delta, ReasoningDelta, TextDelta
from onrecord.conversation.usage import Usage
from onrecord.models.chunks import ThinkingChunk
from onrecord.models.request import Piece, Request
from onrecord.record.entry import Entry
from onrecord.testing import ScriptedModel
from onrecord.turn.moments import Hooks, Rank, Watch
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, call, read, reply, results, rounds_of, tool, turn

pytestmark = pytest.mark.unit


async def test_e8_two_rounds_are_one_answer_with_their_usage_added() -> None:
    """Reasoning and a call, then the words: two rounds of one message, and deltas in that order (case E8)."""
    used = Usage(input_tokens=10, output_tokens=5)
    model = ScriptedModel(reply(ThinkingChunk("hm"), call("lookup"), usage=used), reply("done", usage=used))
    agent: Agent[Any, Any] = Agent(model, tools=[tool()])
    deltas = list[Delta]()
    async with agent.turn_stream("hi") as stream:
        async for delta in stream:
            deltas.append(delta)
    result = await stream.result()
    assert (deltas[0], deltas[-1]) == (ReasoningDelta("hm"), TextDelta("done", 0))
    assert len(rounds_of(result)) == 2
    assert result.usage == Usage(input_tokens=20, output_tokens=10)


async def test_e9_a_model_that_always_calls_is_asked_once_more_without_tools() -> None:
    """Nine rounds with tools are nine executions and ten requests; the last one brings the answer (case E9)."""
    model = ScriptedModel(*[[call("lookup", n=n)] for n in range(9)], "that is all")
    result = await turn(Agent(model, tools=[tool()], rounds=9))
    assert (len(model.requests), len(results(result)), result.text) == (10, 9, "that is all")
    assert model.calls[-1] == "wrap_up"


async def test_e14_whoever_counts_usage_and_fails_does_not_fail_the_turn() -> None:
    """A watcher that raises is noted (case E14)."""

    def count(entry: Entry) -> None:
        raise RuntimeError("the meter is broken")

    result = await turn(Agent(ScriptedModel("fine"), features=[Watch(count)]))
    assert (result.status, result.text) == ("answered", "fine")


async def test_e22_each_request_has_the_instructions_of_its_round() -> None:
    """What a request hook says of the second round leads the second request (case E22)."""

    async def lead(turn: Turn, request: Request) -> Request:
        piece = Piece(source="lead", text=f"round {len(turn.rounds)}", rank=Rank.BASE)
        return replace(request, pieces=(piece, *request.pieces))

    model = ScriptedModel([call("lookup")], "done")
    await turn(Agent(model, tools=[tool()], features=[Named("lead", Hooks(on_request=lead))]))
    assert [read(request)["system"] for request in model.requests] == ["round 0", "round 1"]
