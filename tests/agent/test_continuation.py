"""What is native to a vendor, over whole turns: replayed in its scope, voided by edits, and never with a key in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.messages import AssistantMessage
from onrecord.errors import OnrecordError
from onrecord.jsonio import dumps
from onrecord.models.model import Model
from onrecord.prompt.model_choice import Choice, Choose
from onrecord.record.kinds import ModelRequested
from onrecord.session.codec import dumps_session, loads_session
from onrecord.session.history import edit_result
from onrecord.session.session import Session
from onrecord.stores import SqliteStore
from onrecord.tools.tool import Tool
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Loopback, chunk, serving
from tests.providers import responses_server
from tests.providers.chat_server import delta, each, model_at, sse
from tests.providers.responses_events import called, done, ended
from tests.turn.acting import bodies

pytestmark = pytest.mark.integration

LOOK = Tool("look", lambda args, _: f"seen {args['n']}")


def asks(number: int) -> bytes:
    """An answer that asks for a call, signed by its vendor."""
    call = {
        "index": 0, "id": f"w{number}", "type": "function",
        "function": {"name": "look", "arguments": json.dumps({"n": number})},
        "extra_content": {"google": {"thought_signature": f"s{number}"}},
    }  # fmt: skip
    return streamed(delta(tool_calls=[call]), delta(finish="tool_calls"))


def says(text: str) -> bytes:
    """An answer in words."""
    return streamed(delta(text), delta(finish="stop"))


def streamed(*events: Any) -> bytes:
    """A whole answer."""
    return SSE_HEAD + chunk(sse(*events)) + LAST_CHUNK


def sent(server: Loopback, at: int = -1) -> str:
    """The messages of a request."""
    return json.dumps(json.loads(server.requests[at].body)["messages"])


def signed(server: Loopback, at: int = -1) -> list[str]:
    """The signatures that a request brings back, in order."""
    return [f"s{n}" for n in range(9) if f'"s{n}"' in sent(server, at)]


def bytes_in(folder: Path) -> bytes:
    """Every byte of every file in a folder."""
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


def session_of(result: Any) -> Session:
    """The session that a turn left."""
    session = result.session
    assert isinstance(session, Session)
    return session


async def test_d3_no_key_and_no_header_reaches_a_store_and_another_key_replays_what_is_native(tmp_path: Path) -> None:
    """Looked for in every byte of the store's files (case D3)."""
    canaries = [f"canary-{name}" for name in ("first-key", "second-key", "header", "request-header")]
    first_key, second_key, header, request_header = canaries

    async def tenant() -> Mapping[str, str]:
        return {"X-Request": request_header}

    def agent(model: Model) -> Agent[Any, str]:
        return Agent(model, tools=[LOOK], features=[Choose(lambda *_: Choice(headers=tenant))])

    path = tmp_path / "talk.db"
    async with serving(each(asks(0), says("One."), says("Two."))) as server, SqliteStore(path) as store:
        given: dict[str, Any] = {"headers": {"X-Tenant": header}}
        result = await agent(model_at(server, api_key=first_key, **given)).turn("look", session="s")
        await store.commit(result.change())
        session = await store.load("s")
        assert session is not None
        again = await agent(model_at(server, api_key=second_key)).turn("again", session=session)
        await store.commit(again.change())
        files = bytes_in(tmp_path)
    assert signed(server) == ["s0"]
    fields = [asked.fields for asked in server.requests]
    assert [held["authorization"] for held in fields] == [f"Bearer {first_key}"] * 2 + [f"Bearer {second_key}"]
    assert [held["x-request"] for held in fields] == [request_header] * 3
    assert b"thought_signature" in files  # the store holds what is native
    assert [canary for canary in canaries if canary.encode() in files] == []


async def test_an_edited_result_voids_what_was_native_from_its_round_on() -> None:
    """Earlier rounds keep theirs; later ones were made from the old result, and are sent in portable form."""
    answers = (asks(0), says("a"), asks(1), asks(2), says("b"), asks(3), says("c"), says("d"), says("e"))
    async with serving(each(*answers)) as server:
        agent: Agent[Any, str] = Agent(model_at(server), tools=[LOOK])
        session: Session | str = "s"
        for words in ("one", "two", "three"):
            session = session_of(await agent.turn(words, session=session))
        assert isinstance(session, Session)
        await agent.turn("before", session=session)
        assert signed(server) == ["s0", "s1", "s2", "s3"]
        answer = [m for m in session.conversation.messages if isinstance(m, AssistantMessage)][1]
        call = answer.rounds[1].calls[0]
        change = edit_result(session, answer.id, call.id, [Text("seen otherwise")], by="ana", at=datetime.now(UTC))
        edited = change.session
        await agent.turn("after", session=edited)
        assert signed(server) == ["s0", "s1"]
        assert "seen otherwise" in sent(server)
        assert "seen 2" not in sent(server)


async def test_e19_native_items_stay_with_their_host_and_are_replayed_when_it_answers_again() -> None:
    """One turn on two hosts: each gets its own items back, and what the other said in portable form (case E19)."""
    async with serving(each(asks(0), says("done"), says("and on"))) as one, serving(each(asks(1))) as other:
        first, second = model_at(one), model_at(other)
        choose = Choose(lambda live, _: second if len(live.rounds) == 1 else None)
        result = await Agent(first, tools=[LOOK], features=[choose]).turn("look twice", session="s")
        assert (result.text, len(one.requests), len(other.requests)) == ("done", 2, 1)
        assert (signed(other), signed(one)) == ([], ["s0"])
        assert sent(other).count("look") == sent(one).count("look") - 1 > 0
        (answer,) = [m for m in session_of(result).conversation.messages if isinstance(m, AssistantMessage)]
        ports = [f":{server.port}/" for server in (one, other)]
        natives = [held.continuation for held in answer.rounds[:2]]
        assert all(native and port in native.scope for native, port in zip(natives, ports, strict=True))
        assert len({held.id for held in answer.rounds}) == 3
        asked = json.loads(one.requests[-1].body)["messages"]
        ids = [call["id"] for message in asked for call in message.get("tool_calls", ())]
        assert ids == [message["tool_call_id"] for message in asked if message["role"] == "tool"]


async def test_e19_a_turn_goes_from_responses_to_chat_and_stays_one_answer() -> None:
    """Two hosts, two protocols, one message; what each said natively stays with it (case E19)."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
    asked = called("look", '{"n":7}', call_id="switch-1")
    begins = responses_server.streamed(done(thought, 0), done(asked, 1), ended())
    async with serving(each(begins)) as one, serving(each(says("done"))) as other:
        first, second = responses_server.model_at(one), model_at(other)
        choose = Choose(lambda live, _: second if live.rounds else None)
        result = await Agent(first, tools=[LOOK], features=[choose]).turn("look", session="s")
    assert (result.text, len(one.requests), len(other.requests)) == ("done", 1, 1)
    (answer,) = [m for m in session_of(result).conversation.messages if isinstance(m, AssistantMessage)]
    protocols = [body.model.split(":")[0] for body in bodies(result, ModelRequested)]
    assert protocols == ["openai-responses", "openai-compatible"]
    held = answer.rounds[0].continuation
    assert held is not None
    assert (held.protocol, b"sealed" in bytes(held.items[0])) == ("openai-responses", True)
    assert answer.rounds[0].calls[0].id == f"{answer.rounds[0].id}/c0"
    assert len({each_round.id for each_round in answer.rounds}) == 2
    messages = json.loads(other.requests[0].body)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert (messages[2]["tool_call_id"], messages[2]["content"]) == (messages[1]["tool_calls"][0]["id"], "seen 7")
    assert "sealed" not in sent(other)


async def test_d6_a_session_whose_native_data_is_no_list_is_not_read() -> None:
    """So no request is ever made of it (case D6)."""
    async with serving(each(asks(0), says("One."))) as server:
        result = await Agent(model_at(server), tools=[LOOK]).turn("look", session="s")
    stored = json.loads(dumps_session(session_of(result)))
    assert len(loads_session(dumps(stored)).conversation.messages) == 2
    assert broken(stored) == 1
    with pytest.raises(OnrecordError):
        loads_session(dumps(stored))


def broken(value: Any) -> int:
    """Puts an object in the place of every list of native items; returns how many there were."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    count = sum(map(broken, inner))
    if isinstance(value, dict) and {"protocol", "scope", "items"} <= value.keys():
        value["items"] = value["items"][0]
        return count + 1
    return count
