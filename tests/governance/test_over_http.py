"""A governed agent over a real wire and a real file: what a server reads, and what it never does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import approved
from onrecord.governance import (
    Credential,
    Credentials,
    NeedsCheckIn,
    NeedsCredential,
    Permissions,
    Policy,
    Redaction,
    after_tool,
    before_tool,
    credential,
)
from onrecord.host import Host
from onrecord.host.questions import Caller
from onrecord.net import transport
from onrecord.stores.sqlite import SqliteStore
from onrecord.tools.tool import Tool
from onrecord.turn.moments import ALLOW, Allow
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, chunk, serving
from tests.providers.chat_server import delta, each, model_at, sse
from tests.turn.acting import keeping

pytestmark = pytest.mark.integration

SECRET = "sk-canary-51c9"


def says(*calls: tuple[str, dict[str, Any]], text: str = "") -> bytes:
    """A reply of the server: words, or calls."""
    wanted = [
        {"index": place, "id": f"c{place}", "function": {"name": name, "arguments": json.dumps(args)}}
        for place, (name, args) in enumerate(calls)
    ]
    said = delta(tool_calls=wanted) if calls else delta(text)
    events = sse(said, delta(finish="tool_calls" if calls else "stop"))
    return SSE_HEAD + chunk(events) + LAST_CHUNK


async def test_a_governed_turn_over_http(tmp_path: Path) -> None:
    """Hidden tools are in no request; refused ones do not run; a person decides in a new host; no secret is sent."""
    ran: list[Any] = []

    async def vault(_: Any) -> Credential:
        return Credential(SECRET)

    def pays(args: Any, ctx: Any) -> dict[str, Any]:
        ran.append(args["euros"])
        return {"paid": args["euros"], "with": credential(ctx).headers()}

    @before_tool
    def at_most_nine(turn: Any, call: Any) -> Allow[Any]:
        return Allow({"euros": 9}, "at most nine") if call.args["euros"] > 9 else ALLOW

    @after_tool
    def looks(turn: Any, returned: Any) -> Allow[Any]:
        assert SECRET not in repr(returned.content)
        return ALLOW

    tools = [
        Tool("pay", pays, "Pay.", traits=(NeedsCheckIn(), NeedsCredential(service="bank"))),
        Tool("wipe", keeping(ran, "wipe"), "Wipe."),
    ]  # fmt: skip
    features: list[Any] = [
        Permissions({"clerk": ["pay"]}, "clerk", policies=[Policy(name="seven", tools=("pay",), args={"euros": 7})]),
        at_most_nine, looks, Credentials(vault), Redaction(patterns=[SECRET]),
    ]  # fmt: skip
    script = each(
        says(("wipe", {}), ("pay", {"euros": 7})), says(("pay", {"euros": 100})), says(text="Paid nine."),
    )  # fmt: skip
    path = tmp_path / "talk.db"
    try:
        async with serving(script) as server:

            def agent() -> Agent[Any, Any]:
                return Agent(model_at(server), tools=tools, features=features)

            async with SqliteStore(path) as store, Host(agent(), store=store) as host:
                question = (await host.turn("s", "Pay a hundred.")).question
            assert question is not None
            boss = Caller("Maria", audiences=frozenset({"approver"}))
            async with SqliteStore(path) as store, Host(agent(), store=store) as host:
                done = await host.answer("s", approved(question, by="Maria"), caller=boss)
    finally:
        await transport.close()
    assert (ran, done.text, len(server.requests)) == ([9], "Paid nine.", 3)
    detail: Any = question.detail
    assert detail["will_do"]["args"] == {"euros": "9"}
    sent = [json.loads(request.body) for request in server.requests]
    assert [[tool["function"]["name"] for tool in body["tools"]] for body in sent] == [["pay"]] * 3
    read = [message["content"] for message in sent[2]["messages"] if message["role"] == "tool"]
    assert [text.split(":")[0] for text in read[:2]] == ["[permission denied", "[permission denied"]
    assert json.loads(read[2]) == {"paid": 9, "with": {"Authorization": "Bearer [credential]"}}
    assert SECRET.encode() not in b"".join(request.body for request in server.requests)
    assert not [file for file in (path,) if SECRET.encode() in file.read_bytes()]
