"""The doubles that users test their agents with (architecture §16)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import ContextMessage, Note, Round, ToolCall, UserMessage
from onrecord.conversation.usage import Usage
from onrecord.errors import ModelError
from onrecord.models.request import Request, Span, Swap, View
from onrecord.testing import FakeEffects, ScriptedModel, call, raises, reply, shown, wire
from onrecord.turn.effects import PlainEffects
from tests.turn.acting import read, tool, turn

pytestmark = pytest.mark.unit


async def test_a_script_that_runs_out_is_loud() -> None:
    """It says how many answers it had and which request found none."""
    model = ScriptedModel("one")
    agent: Agent[Any, Any] = Agent(model)
    await turn(agent)
    with pytest.raises(ModelError) as failed:
        await turn(agent)
    assert str(failed.value) == "the script has no answer left for 'speak': it had 1, this is request 2 (main/r0)"
    assert isinstance(failed.value, AssertionError)


async def test_answers_are_texts_calls_replies_failures_and_functions() -> None:
    """One after another, and more can be added."""

    def echo(request: Request) -> str:
        return f"you said {read(request)['messages'][-1]['content']}"

    used = Usage(input_tokens=1)
    model = ScriptedModel(echo, reply("two", usage=used, finish="length"), [call("x"), "beside"])
    model.add("three")
    assert model.left == 4
    agent: Agent[Any, Any] = Agent(model, tools=[tool("x")])
    results = [await turn(agent, text) for text in ("a", "b", "c")]
    assert [r.text for r in results] == ["you said a", "two", "three"]
    assert (results[1].usage, model.left, model.calls) == (used, 0, ["speak"] * 4)


async def test_one_queue_per_purpose_and_failures_in_the_middle() -> None:
    """A failure behind text is a failure in mid-stream."""
    model = ScriptedModel(["par", raises("network", status=503)], usage=Usage(output_tokens=2))
    with pytest.raises(ModelError) as failed:
        await turn(Agent(model))
    assert (failed.value.kind, failed.value.status) == ("network", 503)


def test_a_call_may_have_arguments_of_any_name() -> None:
    """Also one named like the tool's own parameter; the wire id is made up unless it is given."""
    made = call("file", name="a.txt", wire_id="w1")
    assert (made.name, made.raw_args, made.wire_id) == ("file", '{"name":"a.txt"}', "w1")
    assert call("file").wire_id == "call_file"


def test_a_request_is_shown_as_the_model_sees_it() -> None:
    """Context before a round, swapped results without their notes, also one that shows nothing, and corrections."""
    asked = ToolCall(
        id="c0", wire_id="w", name="look", args={"at": 1}, status="returned", result=(Text("long"),),
        notes=(Note("n", " noted"),),
    )  # fmt: skip
    held = Round(
        id="r",
        before=(ContextMessage(id="b", content=(Text("Before."),)),),
        calls=(asked, replace(asked, id="c1"), replace(asked, id="c2")),
        revised=(ContextMessage(id="v", content=(Text("Shorter."),), authority="developer"),),
    )
    model = ScriptedModel()
    swaps = (Swap(unit=1, call=0, shows=(Text("short"),)), Swap(unit=1, call=1, shows=()))
    request = Request(
        purpose="speak", where="main/r0", pieces=(), model=model, own=2,
        conversation=Conversation(units=Conversation().units.extend((UserMessage(id="u", content=()), held))),
        view=View(spans=(Span(1, 2),), swaps=swaps),
    )  # fmt: skip
    assert shown(request)["messages"] == [
        {"role": "data", "content": "Before."},
        {"role": "assistant", "content": "", "calls": [{"name": "look", "args": {"at": 1}}] * 3},
        {"role": "tool", "name": "look", "content": "short"},
        {"role": "tool", "name": "look", "content": ""},
        {"role": "tool", "name": "look", "content": "long noted"},
        {"role": "developer", "content": "Shorter."},
    ]


async def test_the_clock_moves_when_it_is_told_to() -> None:
    """Names count, and outside calls are remembered by key, digest and type."""
    effects, made = FakeEffects(), list[str]()
    start = effects.now()
    effects.advance(hours=24)
    assert effects.now() - start == timedelta(days=1)
    assert (effects.nonce(), effects.nonce()) == ("name1", "name2")

    async def work() -> str:
        made.append("worked")
        return "done"

    assert [await effects.once("k", d, str, work) for d in ("a", "a", "b")] == ["done"] * 3
    assert (made, effects.made) == (["worked"] * 2, ["k", "k"])


async def test_plain_effects_make_every_call_as_it_comes() -> None:
    """No journal: the clock, the system's randomness, and the call itself."""
    effects, made = PlainEffects(), list[int]()

    async def work() -> int:
        made.append(1)
        return len(made)

    assert [await effects.once("k", "", int, work) for _ in range(2)] == [1, 2]
    assert effects.now().tzinfo is not None
    assert effects.nonce() != effects.nonce()


def test_wire_needs_fixed_parameters() -> None:
    """What depends on a turn cannot be shown without one."""
    with pytest.raises(TypeError, match="fixed model and fixed instructions"):
        wire(Agent(lambda _: "offline"), Conversation())
    with pytest.raises(TypeError, match="fixed model and fixed instructions"):
        wire(Agent(ScriptedModel(), instructions=lambda _: "x"), Conversation())
    assert b'"system":"Base."' in wire(Agent(ScriptedModel(), instructions="Base."), Conversation())


async def test_a_result_shows_what_it_is() -> None:
    """In one line, without content."""
    assert repr(await turn(Agent(ScriptedModel("canary")))) == "TurnResult('answered', 1 messages, 6 entries)"
