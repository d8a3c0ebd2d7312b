"""Turns over Responses: whole items go back, results are items, and ten requests are the most (cases C, D and E)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Audio, Image, Text
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import AssistantMessage, Round
from onrecord.conversation.outgoing import CitationDelta, Delta, ReasoningDelta, SearchDelta, TextDelta
from onrecord.conversation.usage import Usage
from onrecord.errors import ModelError
from onrecord.models.learned import Learned
from onrecord.models.model import preset
from onrecord.models.request import Request
from onrecord.prompt import Media
from onrecord.providers import http_model
from onrecord.providers.openai_responses.client import ResponsesModel
from onrecord.testing.fakes import FakeEffects
from onrecord.tools.tool import ToolResult
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn
from tests.net.loopback import Loopback, Peer, Script, serving
from tests.providers.chat_server import each, status
from tests.providers.responses_events import USAGE, called, cites, delta, done, ended, event, message, spoken, text
from tests.providers.responses_server import HELLO, model_at, streamed
from tests.turn.acting import Named, rounds_of, tool, turn

pytestmark = pytest.mark.integration

SEALED = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gA==", "x": {"kept": [1, 2]}}
CALL = called("lookup", '{"a": 1}', "call_1")
CALLING = streamed(done(SEALED), done(CALL, 1), ended(usage=USAGE))
DONE = streamed(*spoken("done"), ended(usage=USAGE))


def sent(server: Loopback) -> list[dict[str, Any]]:
    """The bodies that the server was sent."""
    return [json.loads(asked.body) for asked in server.requests]


async def outputs(handler: Callable[..., Any]) -> tuple[Any, list[Round]]:
    """What the second request shows of a call, and the rounds."""
    async with serving(each(CALLING, DONE)) as server:
        result = await turn(Agent(model_at(server), tools=[tool(handler=handler)]))
        (item,) = [one for one in sent(server)[1]["input"] if one["type"] == "function_call_output"]
    return item["output"], rounds_of(result)


@pytest.mark.parametrize(
    ("value", "shown"),
    [("", ""), ([], "[]"), ({"found": True}, '{"found":true}'), ([{"name": "first"}], '[{"name":"first"}]')],
)
async def test_c5_a_result_is_text_or_compact_json(value: Any, shown: str) -> None:
    """The case's nothing is ``{"ok":true}`` here (decision 4); an empty list is a list and no empty content."""
    output, _ = await outputs(lambda *_: value)
    assert output == shown


async def test_c5_nothing_is_told_in_the_library_s_form() -> None:
    """See the case above."""
    assert (await outputs(lambda *_: None))[0] == '{"ok":true}'


async def test_c6_parts_are_translated_for_the_wire_and_kept_as_they_were() -> None:
    """The record and the conversation have the original."""
    parts = (Text("Here."), Image(url="https://e.test/a", detail="low"))
    output, (first, _) = await outputs(lambda *_: ToolResult(parts))
    assert output == [
        {"type": "input_text", "text": "Here."},
        {"type": "input_image", "image_url": "https://e.test/a", "detail": "low"},
    ]
    assert first.calls[0].result == parts


async def test_c7_audio_in_a_result_ends_the_turn_before_the_next_request() -> None:
    """Exactly one request was sent."""
    async with serving(each(CALLING, DONE)) as server:
        with pytest.raises(ModelError) as caught:
            await turn(Agent(model_at(server), tools=[tool(handler=lambda *_: ToolResult((Audio(data=b"a"),)))]))
        assert len(server.requests) == 1
    assert "audio: Responses takes none" in str(caught.value)


async def test_c9_a_model_that_turns_out_to_take_no_tools_is_asked_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """Local tools and search go together, as soon as the server has said so."""
    monkeypatch.setattr(http_model, "LEARNED", Learned())
    refusing = status(400, body='{"error":{"message":"This model does not support tools"}}')
    async with serving(each(refusing, DONE)) as server:
        agent = Agent(preset(model_at(server), search=True), tools=[tool()])
        with pytest.raises(ModelError):
            await turn(agent)
        assert (await turn(agent)).text == "done"
        first, second = sent(server)
    assert [one["type"] for one in first["tools"]] == ["function", "web_search"]
    assert not {"tools", "tool_choice"} & second.keys()


async def test_audio_is_shown_by_its_transcript_where_that_may_stand_in() -> None:
    """The wire carries none, and the feature `Media` brings the words that were stored with it."""
    async with serving(each(DONE)) as server:
        heard = Said((Text("listen"), Audio(data=b"a", transcript="a bell")))
        assert (await turn(Agent(model_at(server), features=[Media()]), heard)).text == "done"
        (item,) = sent(server)[0]["input"]
    assert "a bell" in json.dumps(item)
    assert "input_audio" not in json.dumps(item)


async def test_c10_a_search_and_its_sources_are_shown_and_go_back_whole() -> None:
    """Search beside a local tool, then an answer with one source; a follow-up in the same scope has the search item."""
    search = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "q"}}
    source = cites("https://a.test", 0, 6, "A")
    note = event("output_text.annotation.added", annotation=source, output_index=0, content_index=0)
    answer = streamed(delta("Answer."), note, done(message(text("Answer.", source))), ended())
    async with serving(each(streamed(done(search), done(CALL, 1), ended()), answer, DONE)) as server:
        agent = Agent(preset(model_at(server), search=True), tools=[tool()])
        deltas = list[Delta]()
        async with agent.turn_stream("hi", session="s", effects=FakeEffects()) as stream:
            async for one in stream:
                deltas.append(one)
        result = await stream.result()
        await turn(agent, session=result.session)
        first, _, last = sent(server)
    assert [one["type"] for one in first["tools"]] == ["function", "web_search"]
    assert [one.status for one in deltas if isinstance(one, SearchDelta)] == ["completed"]
    (cited,) = [one.citations for one in deltas if isinstance(one, CitationDelta)]
    assert (cited[0].url, cited[0].title, cited[0].start, cited[0].stop) == ("https://a.test", "A", 0, 6)
    said = rounds_of(result)[-1].content[0]
    assert isinstance(said, Text)
    assert said.citations == cited
    assert search in last["input"]


async def test_c12_an_item_that_nobody_can_read_stays_with_its_model() -> None:
    """The same scope sends it back; another model is refused before anything is sent."""
    odd = message("Readable.", {"type": "hologram", "data": "x"})
    async with serving(each(streamed(done(odd), ended()), DONE)) as server:
        agent = Agent(model_at(server))
        first = await turn(agent, session="s")
        (kept,) = rounds_of(first)
        assert (first.text, kept.lost) == ("Readable.", ("content of type 'hologram'",))
        await turn(agent, session=first.session)
        assert odd in sent(server)[1]["input"]
        with pytest.raises(ModelError) as caught:
            await turn(Agent(model_at(server, "gpt-5")), session=first.session)
        assert len(server.requests) == 2
    assert "hologram" in str(caught.value)


async def test_e8_reasoning_and_calls_go_back_whole_and_usage_is_added() -> None:
    """Two rounds; the second request has the items of the first as they came, then the output of the call."""
    thought = event("reasoning_summary_text.delta", delta="hm", output_index=0, summary_index=0)
    first = streamed(thought, done(SEALED), done(CALL, 1), ended(usage=USAGE))
    async with serving(each(first, DONE)) as server:
        deltas = list[Delta]()
        agent = Agent(model_at(server), tools=[tool()])
        async with agent.turn_stream("hi", effects=FakeEffects()) as stream:
            async for one in stream:
                deltas.append(one)
        result = await stream.result()
        _, second = sent(server)
    assert (deltas[0], deltas[-1]) == (ReasoningDelta("hm"), TextDelta("done", 0))
    answered = {"type": "function_call_output", "call_id": "call_1", "output": "lookup"}
    assert second["input"][1:] == [SEALED, CALL, answered]
    assert len(rounds_of(result)) == 2
    assert result.usage == Usage(input_tokens=20, output_tokens=10, cached_input_tokens=8, reasoning_tokens=4)


async def test_d2_a_conversation_that_changes_its_model_keeps_its_words_and_its_calls() -> None:
    """No reasoning of the old one; ids of calls are the library's own."""
    async with serving(each(CALLING, DONE, HELLO)) as server:
        first = await turn(Agent(model_at(server), tools=[tool()]), session="s")
        await turn(Agent(model_at(server, "gpt-5"), tools=[tool()]), session=first.session)
        items = sent(server)[2]["input"]
    assert [one["type"] for one in items] == ["message", "function_call", "function_call_output", "message", "message"]
    assert items[1]["call_id"] == items[2]["call_id"] != "call_1"
    assert items[1]["arguments"] == '{"a": 1}'
    assert items[3]["content"] == [{"type": "output_text", "text": "done"}]


def always_calling() -> Script:
    """A server that asks for a tool whatever happens, each time with another id."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(streamed(done(called("lookup", "{}", f"call_{peer.asked}")), ended()))

    return script


async def test_e9_ten_requests_are_the_most_and_no_call_is_left_open() -> None:
    """Nine executions. The tenth request has no tools; a call in its reply is settled as not run, never stored open."""
    ran = list[object]()

    def note(args: object, ctx: object) -> str:
        ran.append(args)
        return "noted"

    async with serving(always_calling()) as server:
        result = await turn(Agent(model_at(server), tools=[tool(handler=note)], rounds=50), session="s")
        bodies = sent(server)
    assert [bool(body.get("tools")) for body in bodies] == [True] * 9 + [False]
    assert len(ran) == 9
    calls = [held for one in rounds_of(result) for held in one.calls]
    assert [held.status for held in calls] == ["returned"] * 9 + ["not_run"]


async def test_e9_an_agent_that_allows_less_stays_with_its_own_rounds() -> None:
    """The cap of the wire never adds any."""
    async with serving(always_calling()) as server:
        await turn(Agent(model_at(server), tools=[tool()], rounds=2))
        assert len(server.requests) == 3


async def test_e23_a_model_without_tools_in_the_second_request_is_sent_neither_tools_nor_choice() -> None:
    """The case's learned refusal is a card here: a hook changes the model between two requests of one answer."""
    async with serving(each(CALLING, DONE)) as server:
        plain = model_at(server)
        toolless = ResponsesModel(replace(plain.card, model="m2", tools=False))

        async def choose(turn: Turn, request: Request) -> Request:
            if not turn.rounds:
                return replace(request, choice="required")
            return replace(request, model=preset(toolless, search=True))

        chooser = Named("choose", Hooks(on_request=choose, order={"request": SLOTS["request"]["CHOOSE"]}))
        await turn(Agent(preset(plain, search=True), tools=[tool()], features=[chooser]))
        first, second = sent(server)
    assert (len(first["tools"]), first["tool_choice"]) == (2, "required")
    assert not {"tools", "tool_choice"} & second.keys()
    assert second["model"] == "m2"


async def test_a_failed_stream_leaves_nothing_behind() -> None:
    """Cut, incomplete or failed: no round is committed, and the next turn goes on from before."""
    cut = streamed(delta("Hel"))
    incomplete = streamed(delta("Hel"), ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    failed = streamed(done(SEALED), ended("failed", error={"code": "server_error", "message": "x"}))
    async with serving(each(HELLO, cut, incomplete, failed, DONE)) as server:
        agent = Agent(model_at(server))
        session = (await turn(agent, session="s")).session
        for _ in range(3):
            with pytest.raises(ModelError):
                await turn(agent, session=session)
        result = await turn(agent, session=session)
    assert result.session is not None
    kept = [held for held in result.session.conversation.messages if isinstance(held, AssistantMessage)]
    assert [held.text for held in kept] == ["Hello", "done"]
