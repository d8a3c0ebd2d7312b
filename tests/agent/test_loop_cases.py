"""Cases of ``spec/loop-cases.md`` about runs, the loop and its record that no other module holds.

Which case stands where, and which are left to which issue, is the table in ``test_loop_case_table.py``.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import AssistantMessage, ContextMessage, Round, UserMessage
from onrecord.errors import ModelError, SessionConflict, UsageError
from onrecord.models.model import preset
from onrecord.providers.openai_compatible import openai_compatible
from onrecord.record.kinds import ModelReplied, ModelRequested, TextSaid, ToolReturned, ToolStarted
from onrecord.session.folding import refold
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel, call, raises, reply, wire
from onrecord.turn.moments import Deny, Hooks, Stop
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, asked_once, bodies, kinds, read, results, rounds_of, texts, tool, turn

pytestmark = pytest.mark.unit


# ---- A: what is refused when an agent is built ----------------------------------------------------------------------


def test_a3_a4_one_parameter_says_one_thing() -> None:
    """A second system prompt, output type or director cannot be given: each is one parameter (cases A3, A4)."""
    with pytest.raises(SyntaxError):
        compile("Agent('offline', instructions='a', instructions='b')", "agent.py", "eval")
    agent: Agent[Any, Any] = Agent(ScriptedModel(), instructions="a")
    assert agent.with_(instructions="b") is not agent
    assert wire(agent, agent_conversation()) != wire(agent.with_(instructions="b"), agent_conversation())


def agent_conversation() -> Any:
    """A conversation of one message."""
    from onrecord.conversation.conversation import Conversation

    return Conversation.of((UserMessage(id="u", content=()),))


def test_a22_nothing_in_a_conversation_speaks_with_the_role_of_a_tool() -> None:
    """Library text has one of three authorities, and data is none of them by rank (case A22: no role to refuse)."""
    from typing import get_args

    from onrecord.conversation.messages import Authority

    assert get_args(Authority) == ("system", "developer", "data")
    assert ContextMessage(id="x").authority == "data"


# ---- B: entering a turn ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("input", ["", "   ", "\n\t", None, [], 7, {"message": "hi"}])
async def test_b24_a_blank_or_foreign_input_is_refused_before_any_request(input: Any) -> None:
    """Named by its type; the model is not called (case B24)."""
    model = ScriptedModel()
    with pytest.raises(UsageError) as refused:
        await turn(Agent(model), input)
    assert refused.value.code == "input-invalid"
    assert model.requests == []
    if not isinstance(input, str):
        assert f"not {type(input).__name__}" in str(refused.value)


async def test_b24_a_message_may_be_a_picture_alone() -> None:
    """Blank words are refused, not messages without words (case B24)."""
    from onrecord.conversation.content import Image

    assert (await turn(Agent(ScriptedModel("nice")), Said((Image(url="https://example.org/a.png"),)))).text == "nice"


async def test_b25_turns_of_one_agent_run_side_by_side_and_one_session_has_one_winner() -> None:
    """An agent is immutable, nothing is in flight in it; of two turns from one state, one can be saved (case B25)."""
    both = asyncio.Barrier(2)

    class Meeting(ScriptedModel):
        async def stream(self, request: Any, /) -> Any:
            await both.wait()
            asked = request.conversation.messages[-1].text
            for chunk in [c async for c in ScriptedModel(f"answer to {asked}").stream(request)]:
                yield chunk

    agent: Agent[Any, Any] = Agent(Meeting())
    one, two = await asyncio.gather(turn(agent, "one", session="s"), turn(agent, "two", session="s"))
    assert (one.text, two.text) == ("answer to one", "answer to two")
    store = MemoryStore()
    await store.commit(one.change())
    with pytest.raises(SessionConflict):
        await store.commit(two.change())


async def test_b27_a_next_message_goes_on_from_the_last_answer() -> None:
    """The request holds the message, the answer and the new message (case B27: there is no run to forget)."""
    model = ScriptedModel("a1", "a2")
    agent: Agent[Any, Any] = Agent(model)
    first = await turn(agent, "u1")
    await turn(agent, "u2", session=first.session)
    assert [m["content"] for m in read(model.requests[1])["messages"]] == ["u1", "a1", "u2"]


async def test_b28_the_session_includes_the_final_answer() -> None:
    """While the turn ran, the request held the message alone (case B28)."""
    model = ScriptedModel("hello")
    result = await turn(Agent(model), "hi")
    assert [m["content"] for m in read(model.requests[0])["messages"]] == ["hi"]
    assert result.session is not None
    user, answer = result.session.conversation.messages
    assert isinstance(user, UserMessage)
    assert isinstance(answer, AssistantMessage)
    assert (user.text, answer.text) == ("hi", "hello")


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"role": "user", "content": 5}, "history record 0: content must be a string or a list of parts, got int"),
        ({"role": "wizard", "content": "x"}, "history record 0: unknown role 'wizard'"),
        (7, "history holds mappings and messages, not int"),
    ],
)
async def test_b30_a_bad_history_is_refused_by_the_index_of_its_entry(record: Any, problem: str) -> None:
    """Before anything is sent (case B30)."""
    model = ScriptedModel()
    with pytest.raises(UsageError, match=problem):
        await turn(Agent(model), history=[record])
    assert model.requests == []


@pytest.mark.parametrize("kind", ["network", "auth"])
async def test_b31_b32_a_model_that_fails_leaves_the_session_as_it_was(kind: Any) -> None:
    """The same input can be taken again; the error's kind says whether it will help (cases B31, B32: no checkpoint)."""
    model = ScriptedModel(call("lookup"), raises(kind), call("lookup"), "done")
    agent: Agent[Any, Any] = Agent(model, tools=[tool()])
    with pytest.raises(ModelError) as failed:
        await turn(agent, "hi", session="s")
    assert (failed.value.kind, failed.value.code, failed.value.result) == (kind, f"model-{kind}", None)
    again = await turn(agent, "hi", session="s")
    assert again.text == "done"
    assert [m["content"] for m in read(model.requests[2])["messages"]] == ["hi"]


# ---- C: the loop and its record --------------------------------------------------------------------------------------


async def test_c34_a_plain_answer() -> None:
    """One request; opened, admitted, requested, replied, said, closed, in this order (case C34)."""
    model = ScriptedModel("hi")
    result = await turn(Agent(model))
    assert (result.text, result.status, len(model.requests)) == ("hi", "answered", 1)
    assert kinds(result) == ["turn.opened", "turn.input", "model.requested", "model.replied", "said", "turn.closed"]
    assert [e.n for e in result.entries] == [e.seq for e in result.entries] == list(range(6))
    causes = [e.cause for e in result.entries]
    assert causes[0] is None
    assert all(cause is not None and cause < n for n, cause in enumerate(causes) if n)


async def test_c35_one_tool() -> None:
    """The second request shows the message, the call, and its result; the record holds both rounds (case C35)."""
    model = ScriptedModel(call("lookup", wire_id="c1"), "done")
    result = await turn(Agent(model, tools=[tool()]))
    (asked,) = model.requests[1].conversation.units[1:]
    assert isinstance(asked, Round)
    assert [(c.wire_id, c.name, c.status) for c in asked.calls] == [("c1", "lookup", "returned")]
    assert [m["role"] for m in read(model.requests[1])["messages"]] == ["user", "assistant", "tool"]
    assert [len(b.round.calls) for b in bodies(result, ModelReplied)] == [1, 0]
    assert [len(r.calls) for r in rounds_of(result)] == [1, 0]


async def test_c36_every_entry_has_a_place_of_its_own_in_the_order_of_what_happened() -> None:
    """Places are unique within a turn, paths name the round and the call (case C36: no stages to name)."""
    result = await turn(Agent(ScriptedModel([call("a"), call("b")], "done"), tools=[tool("a"), tool("b")]))
    assert len({(e.turn, e.n) for e in result.entries}) == len(result.entries)
    where = {type(e.body).__name__: e.where for e in result.entries}
    assert where["ModelRequested"] == "main/r1"
    started = [e.where for e in result.entries if isinstance(e.body, ToolStarted)]
    returned = [e.where for e in result.entries if isinstance(e.body, ToolReturned)]
    assert started == returned == ["main/r0/c0", "main/r0/c1"]


async def test_c37_any_moment_can_be_folded_again_from_the_record() -> None:
    """Over a turn of three rounds: each prefix gives the state of that moment, the whole the session (case C37)."""
    seen: list[int] = []

    async def look(turn: Turn, round_: Any) -> Any:
        seen.append(len(turn.conversation.units))
        return round_

    feature = Named("look", Hooks(on_reply=look))
    model = ScriptedModel(call("lookup"), call("lookup"), "done")
    result = await turn(Agent(model, tools=[tool()], features=[feature]), session="s")
    assert result.session is not None
    key, digest_key = result.session.key, result.session.digest_key
    replies = [n for n, e in enumerate(result.entries) if isinstance(e.body, ModelReplied)]
    folded = [refold(key, result.entries[: n + 1], digest_key=digest_key) for n in replies]
    # A prefix shows the reply that has just come as the last unit; the turn itself still held it open.
    assert [len(s.conversation.units) - 1 for s in folded] == seen
    assert refold(key, result.entries, digest_key=digest_key) == result.session


async def test_c38_no_tools_means_no_tools_on_the_wire() -> None:
    """Not an empty list (case C38)."""
    chat = openai_compatible("http://localhost:1/v1", "m")
    assert "tools" not in json.loads(wire(Agent(chat), agent_conversation()))
    assert "tools" in json.loads(wire(Agent(chat, tools=[tool()]), agent_conversation()))
    assert "tools" not in json.loads(wire(Agent(chat, tools=[tool()], rounds=0), agent_conversation()))


async def test_c40_a_temperature_that_nobody_set_is_not_sent() -> None:
    """Zero is a temperature (case C40)."""
    chat = openai_compatible("http://localhost:1/v1", "m")
    assert "temperature" not in json.loads(wire(Agent(chat), agent_conversation()))
    assert json.loads(wire(Agent(preset(chat, temperature=0)), agent_conversation()))["temperature"] == 0


async def test_c41_a_turn_is_its_own_drained_stream() -> None:
    """One way through the loop: read live or not, the entries are the same (case C41: no second path)."""
    answers: list[Any] = [reply("Let me see. ", call("lookup")), "done"]
    drained = await turn(Agent(ScriptedModel(*answers), tools=[tool()]), session="s")
    agent: Agent[Any, Any] = Agent(ScriptedModel(*answers), tools=[tool()])
    stream = agent.turn_stream("hi", session="s", effects=FakeEffects())
    read_live = [text async for text in stream.text]
    result = await stream.result()
    assert "".join(read_live) == "Let me see. done"
    assert result.entries == drained.entries
    assert result.session == drained.session


# ---- D: tools --------------------------------------------------------------------------------------------------------


async def test_d48_a_raising_tool_is_told_and_the_next_round_runs() -> None:
    """Its status is failed (case D48)."""

    def broken(args: object, ctx: object) -> None:
        raise RuntimeError("sheet offline")

    result, heard = await asked_once(tool("lookup", broken), calls=[call("lookup")])
    assert heard == ['{"error":"sheet offline"}']
    assert (results(result), result.text, result.llm_calls) == ([("lookup", "failed")], "done", 2)


async def test_d49_nothing_returned_is_told_in_a_fixed_form_and_never_empty() -> None:
    """The seed's ``{"ok":true}`` (case D49, README decision 4)."""
    _, heard = await asked_once(tool("lookup", lambda *_: None), calls=[call("lookup")])
    assert heard == ['{"ok":true}']


async def test_d54_a_cap_smaller_than_its_notice_still_tells_how_much_there_was() -> None:
    """The first characters, then the notice (case D54: our cap is the seed's, which cuts and never refuses)."""
    held = tool("lookup", lambda *_: "abcdefghijk", max_result_size_chars=1)
    _, heard = await asked_once(held, calls=[call("lookup")])
    assert heard == ["a\n[truncated: 11 chars total, showing the first 1]"]


async def test_d57_only_a_tool_result_is_taken_apart() -> None:
    """A mapping that looks like one is data, and the model reads all of it (case D57: no envelope to guess)."""
    held = tool("lookup", lambda *_: {"content": "x", "status": "partial", "effects": []})
    result, heard = await asked_once(held, calls=[call("lookup")])
    assert heard == ['{"content":"x","status":"partial","effects":[]}']
    assert results(result) == [("lookup", "returned")]


# ---- H: the end of the rounds ----------------------------------------------------------------------------------------


async def test_h95_a_turn_stopped_without_a_wrap_up_answers_with_what_rode_the_last_call() -> None:
    """Words beside the call, or nothing; the calls did not run, and the record says why (case H95)."""

    async def enough(turn: Turn, round_: Any) -> Any:
        if len(turn.rounds) == 2:
            turn.stop(Stop("enough"))
        return round_

    for words, status in (("as far as I got", "answered"), ("", "silent")):
        model = ScriptedModel(call("lookup"), reply(words, call("lookup")))
        agent: Agent[Any, Any] = Agent(model, tools=[tool()], features=[Named("cap", Hooks(on_reply=enough))])
        result = await turn(agent)
        assert (result.text, result.status) == (words, status)
        assert results(result) == [("lookup", "returned"), ("lookup", "not_run")]
        assert [b.purpose for b in bodies(result, ModelRequested)] == ["speak", "speak"]


async def test_h96_an_agent_without_tools_gets_no_wrap_up() -> None:
    """However few rounds it has (case H96)."""
    for rounds in (0, 1):
        model = ScriptedModel(reply("plain", call("made_up")))
        result = await turn(Agent(model, rounds=rounds))
        assert (model.calls, result.text) == (["speak"], "plain")


async def test_h97_an_answer_on_the_last_permitted_round_is_no_early_stop() -> None:
    """Two rounds, the second answers: nothing about a limit anywhere (case H97)."""
    model = ScriptedModel(call("lookup"), "done")
    result = await turn(Agent(model, tools=[tool()], rounds=2))
    assert (model.calls, result.text) == (["speak", "speak"], "done")
    assert "budget" not in repr(result.entries)
    assert [b.text for b in bodies(result, TextSaid)] == ["done"]


async def test_161_a_tool_may_be_hidden_in_one_round() -> None:
    """A gate of a toolset is asked each round; a source that fails ends the turn by name (case 161)."""
    from onrecord.tools.toolset import gated

    model = ScriptedModel(call("read"), call("read"), "done")
    shop = gated([tool("read"), tool("del")], lambda id, ctx: id != "del" or ctx.round != 1)
    await turn(Agent(model, tools=[shop]))
    assert [read(r)["tools"] for r in model.requests] == [["read", "del"], ["read"], ["read", "del"]]


async def test_f79_a_denied_answer_after_a_denied_call_is_still_itself() -> None:
    """The error of the output rule reaches the caller as it is, whatever happened before (case F79)."""
    from onrecord.errors import AnswerRefused

    async def deny_call(turn: Turn, asked: Any) -> Any:
        return Deny("no calls")

    async def deny_answer(turn: Turn, answer: Any) -> Any:
        return Deny("no answer")

    model = ScriptedModel(call("lookup"), "x")
    hooks = Hooks(before_tool=deny_call, on_output=deny_answer, holds_drafts=True)
    with pytest.raises(AnswerRefused) as refused:
        await turn(Agent(model, tools=[tool()], features=[Named("strict", hooks)]))
    assert type(refused.value) is AnswerRefused
    assert refused.value.__cause__ is None
    assert texts(model.requests[1]) == ["no calls"]


async def test_b27_history_may_be_the_callers() -> None:
    """Given, it replaces the session's for this turn and stays as it was."""
    model = ScriptedModel("a")
    held = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "yes"}]
    result = await turn(Agent(model), "now", history=held)
    assert [m["content"] for m in read(model.requests[0])["messages"]] == ["before", "yes", "now"]
    assert result.session is not None
    assert len(result.session.conversation.messages) == 0
    assert replace(result.session, seq=0).data == {}
