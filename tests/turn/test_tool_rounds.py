"""Rounds of a reply: how many, what is offered in which, and what one leaves in the history (seed 001)."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.transcript import history_of
from onrecord.conversation.usage import Usage
from onrecord.errors import ModelError
from onrecord.models.model import ModelCard
from onrecord.record.kinds import ModelRequested, ToolStarted
from onrecord.testing import ScriptedModel, call, raises, reply
from tests.turn.acting import bodies, calls_of, read, texts, tool, turn

pytestmark = pytest.mark.unit


async def test_m5_a_tool_round_in_the_history() -> None:
    """The words beside the calls, the call with its id, the result; then the final text alone is the message."""
    price = tool("price", lambda args, _: {"total": args["n"] * 50})
    model = ScriptedModel(reply("Let me see", call("price", n=30)), "1500")
    result = await turn(Agent(model, tools=[price]), "how much?")
    assert read(model.requests[1])["messages"] == [
        {"role": "user", "content": "how much?"},
        {"role": "assistant", "content": "Let me see", "calls": [{"name": "price", "args": {"n": 30}}]},
        {"role": "tool", "name": "price", "content": '{"total":1500}'},
    ]
    assert result.text == "1500"
    assert [m.text for m in result.messages] == ["1500"]
    assert result.llm_calls == 2


async def test_m5_call_ids_of_plain_history_are_round_and_index() -> None:
    """``call-<round>-<index>``, with null beside calls without words (flows case M5)."""
    price = tool("price", lambda *_: {"total": 1500})
    model = ScriptedModel([call("price", n=1), call("price", n=2)], reply("And ", call("price", n=3)), "done")
    result = await turn(Agent(model, tools=[price]))
    assert result.session is not None
    history = history_of(result.session.conversation.messages)
    asked = [record for record in history if record.get("tool_calls")]
    assert [[c["id"] for c in record["tool_calls"]] for record in asked] == [["call-0-0", "call-0-1"], ["call-1-0"]]
    assert [record["content"] for record in asked] == [None, "And "]
    assert asked[0]["tool_calls"][0] == {"id": "call-0-0", "name": "price", "arguments": {"n": 1}}
    told = [record for record in history if record["role"] == "tool"]
    assert told[2] == {"role": "tool", "tool_call_id": "call-1-0", "name": "price", "content": '{"total":1500}'}


async def test_m6_an_unknown_tool_does_not_end_the_reply() -> None:
    """The model reads that it is not available, and goes on (flows case M6)."""
    model = ScriptedModel(call("gone"), "done")
    result = await turn(Agent(model, tools=[tool()]))
    assert texts(model.requests[1]) == ['{"error":"Tool \\"gone\\" is not available."}']
    assert result.text == "done"


async def test_m12_after_the_last_round_one_more_runs_without_tools() -> None:
    """The cap is 2: tools in requests 1 and 2 only, and the third says not to call any (flows case M12)."""
    ran: list[str] = []
    held = tool("lookup", lambda *_: ran.append("ran"))
    model = ScriptedModel(call("lookup"), call("lookup"), reply("at last", call("lookup")))
    result = await turn(Agent(model, tools=[held], rounds=2))
    assert [read(r)["tools"] for r in model.requests] == [["lookup"], ["lookup"], []]
    assert model.calls == ["speak", "speak", "wrap_up"]
    assert ["Do not call any tools." in " ".join(read(r)["trailing"]) for r in model.requests] == [False, False, True]
    assert result.llm_calls == 3
    assert result.text == "at last"
    assert ran == ["ran", "ran"]
    assert [c.status for c in calls_of(result)] == ["returned", "returned", "not_run"]


async def test_the_default_cap_is_five_rounds_with_tools() -> None:
    """Six model calls at most (seed 001)."""
    model = ScriptedModel(*[call("lookup")] * 5, "done")
    result = await turn(Agent(model, tools=[tool()]))
    assert model.calls == ["speak"] * 5 + ["wrap_up"]
    assert result.llm_calls == 6


async def test_m13_zero_rounds_send_no_tools_whatever_the_lists_say() -> None:
    """One request, no tools, no wrap-up; a call that the model makes up is not run (flows case M13)."""
    ran: list[str] = []
    model = ScriptedModel(reply("plain", call("lookup")))
    result = await turn(Agent(model, tools=[tool("lookup", lambda *_: ran.append("ran"))], rounds=0))
    assert [read(r)["tools"] for r in model.requests] == [[]]
    assert model.calls == ["speak"]
    assert result.text == "plain"
    assert ran == []
    assert [c.status for c in calls_of(result)] == ["not_run"]
    assert bodies(result, ToolStarted) == []


async def test_the_wrap_up_request_says_that_no_tool_may_be_called() -> None:
    """The choice is none, and the words come last, behind the rounds, so that the prefix stays as it was."""
    model = ScriptedModel(call("lookup"), "done")
    result = await turn(Agent(model, tools=[tool()], rounds=1))
    wrap_up = model.requests[1]
    assert wrap_up.choice == "none"
    assert [p.place for p in wrap_up.pieces] == ["trailing"]
    assert [b.purpose for b in bodies(result, ModelRequested)] == ["speak", "wrap_up"]


async def test_definitions_stay_in_the_wrap_up_where_the_wire_demands_them() -> None:
    """Some vendors refuse old calls without definitions; the choice still is none."""
    card = ModelCard(provider="p", model="m", protocol="scripted", needs_tools_with_calls=True)
    model = ScriptedModel(call("lookup"), "done", card=card)
    await turn(Agent(model, tools=[tool()], rounds=1))
    assert [(read(r)["tools"], r.choice) for r in model.requests] == [(["lookup"], "auto"), (["lookup"], "none")]


async def test_every_round_counts_as_a_call_and_into_the_usage() -> None:
    """Usage is the sum over the turn."""
    one, two = Usage(input_tokens=10, output_tokens=1), Usage(input_tokens=20, output_tokens=2, cached_input_tokens=8)
    model = ScriptedModel(reply(call("lookup"), usage=one), reply("done", usage=two))
    result = await turn(Agent(model, tools=[tool()]))
    assert result.llm_calls == 2
    assert result.usage == Usage(input_tokens=30, output_tokens=3, cached_input_tokens=8)


async def test_usage_is_absent_when_nobody_counted() -> None:
    """None, never zeros."""
    result = await turn(Agent(ScriptedModel("done")))
    assert result.usage is None


async def test_usage_of_completed_rounds_survives_a_round_that_is_not_counted() -> None:
    """What is known is told."""
    one = Usage(input_tokens=10, output_tokens=1)
    result = await turn(Agent(ScriptedModel(reply(call("lookup"), usage=one), "done"), tools=[tool()]))
    assert result.usage == one


async def test_a_model_that_fails_in_a_later_round_raises_and_leaves_the_session_as_it_was() -> None:
    """The failing call is the model's, never the tool's."""
    agent: Agent[Any, Any] = Agent(ScriptedModel("hello", call("lookup"), raises("overload")), tools=[tool()])
    first = await turn(agent)
    with pytest.raises(ModelError) as failed:
        await turn(agent, session=first.session)
    assert failed.value.kind == "overload"
    assert first.session is not None
    assert len(first.session.conversation.messages) == 2


async def test_text_beside_a_call_is_streamed_and_not_in_the_message() -> None:
    """A reader saw it; the message is the last round's text alone (seed 001, Streaming)."""
    model = ScriptedModel(reply("Let me see. ", call("lookup")), "1500")
    agent: Agent[Any, Any] = Agent(model, tools=[tool()])
    stream = agent.turn_stream("price?")
    seen = [text async for text in stream.text]
    result = await stream.result()
    assert "".join(seen) == "Let me see. 1500"
    assert [m.text for m in result.messages] == ["1500"]


async def test_a_reply_without_words_says_nothing() -> None:
    """No empty message goes out."""
    result = await turn(Agent(ScriptedModel(call("lookup"), "  \n"), tools=[tool()]))
    assert result.messages == ()
    assert result.status == "silent"


@pytest.mark.parametrize("rounds", [1, 3])
async def test_a_model_that_stops_calling_before_the_cap_needs_no_wrap_up(rounds: int) -> None:
    """An answer on the last permitted round is an answer like any other."""
    model = ScriptedModel(*[call("lookup")] * (rounds - 1), "done")
    result: Any = await turn(Agent(model, tools=[tool()], rounds=rounds))
    assert model.calls == ["speak"] * rounds
    assert result.text == "done"
