"""A server at an address: a real one over streamable HTTP, of today and of before 2026, and what fails on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import Any

import pytest
import pytest_asyncio

from onrecord.agent import Agent
from onrecord.conversation.content import Image
from onrecord.conversation.identity import Identity
from onrecord.mcp_bridge import Http, Limits, McpTools
from onrecord.mcp_bridge.transports import _events
from onrecord.models.model import ModelCard
from onrecord.prompt import Media
from onrecord.session.session import Session
from onrecord.testing import ScriptedModel, call
from onrecord.tools.toolset import OfferContext
from tests.mcp_bridge.serving import asked, notes, serving
from tests.turn.acting import read, results, texts

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(find_spec("mcp") is None, reason='run: pip install "onrecord[mcp]"'),
]


class Seen:
    """Requests that a server got, in front of it."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.status: int | None = None
        self.body = b"{}"
        self.headers: list[tuple[bytes, bytes]] = [(b"content-type", b"application/json")]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self.requests.append((scope["method"], {k.decode(): v.decode() for k, v in scope["headers"]}))
            if self.status is not None:
                while (await receive()).get("more_body"):
                    pass
                await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
                await send({"type": "http.response.body", "body": self.body})
                return
        await self._app(scope, receive, send)


@pytest_asyncio.fixture
async def running() -> AsyncIterator[tuple[Seen, str]]:
    """A real server and its address."""
    from tests.mcp_bridge.weather import weather_server

    seen = Seen(weather_server().streamable_http_app())
    async with serving(seen) as address:
        yield seen, f"{address}/mcp"


def tools_at(address: str, **more: Any) -> McpTools:
    """The tools of the server at an address."""
    headers = more.pop("headers", None)
    return McpTools(Http(address, headers=headers), name="w", **{"prefix": "", **more})


async def test_tools_of_a_server_at_an_address(running: tuple[Seen, str]) -> None:
    """Structured values, pictures and errors; the record says which server it was."""
    _, address = running
    async with tools_at(address) as tools:
        script = [call("degrees", city="Faro"), call("sky"), call("fails"), "done"]
        result, model = await asked(tools, *script)
        assert read(model.requests[0])["tools"] == ["asks", "degrees", "fails", "more", "sky"]
        assert results(result) == [("degrees", "returned"), ("sky", "returned"), ("fails", "failed")]
        assert texts(model.requests[3])[0] == '{"celsius":21.5}'
        assert "internal detail" not in str(texts(model.requests[3]))
        assert notes(result) == ["5 tools of the server 'w', which is weather 2.0, protocol 2026-07-28"]
        assert result.session is not None
        assert pictures(result.session) == ["image/png"]
        again, _ = await asked(tools, call("degrees", city="Faro"), "done")
        assert (results(again), notes(again)) == ([("degrees", "returned")], [])
    assert [t for t in asyncio.all_tasks() if "onrecord" in repr(t)] == []


@pytest.mark.parametrize(("features", "kept"), [((), []), ((Media(),), ["image/png"])], ids=["alone", "with Media"])
async def test_a_picture_does_not_end_the_talk_of_a_model_that_takes_none(
    running: tuple[Seen, str], features: Any, kept: list[str]
) -> None:
    """What stands in the conversation stands in every later request: it is told in words, unless `Media` decides."""
    _, address = running
    async with tools_at(address) as tools:
        blind = ModelCard(provider="openai-compatible", model="blind", protocol="openai-chat", images=False)
        model = ScriptedModel(call("sky"), "done", card=blind)
        result = await Agent(model, tools=[tools], features=features).turn("hi", session="s")
        assert result.session is not None
        assert (results(result), pictures(result.session)) == ([("sky", "returned")], kept)
        assert ("left out]" in str(texts(model.requests[1]))) is (kept == [])


def pictures(session: Session) -> list[str]:
    """The media types of pictures that tools returned."""
    calls = [c for m in session.conversation.messages for r in getattr(m, "rounds", ()) for c in r.calls]
    return [part.media for c in calls for part in c.result or () if isinstance(part, Image)]


async def test_headers_are_asked_for_before_each_request(running: tuple[Seen, str]) -> None:
    """A token may be renewed in between, and is that of the person whose session it is."""
    seen, address = running
    given: list[Any] = []

    async def headers(ctx: OfferContext) -> dict[str, str]:
        given.append(ctx.identity)
        return {"Authorization": f"Bearer token-number-{len(given)}"}

    async with tools_at(address, headers=headers) as tools:
        result, _ = await asked(tools, call("degrees", city="Faro"), "done")
        assert results(result) == [("degrees", "returned")]
    sent = [head["authorization"] for _, head in seen.requests]
    assert len(set(sent)) == len(sent) >= 3
    assert "token-number" not in repr((result, tools))


async def test_a_shared_connection_is_nobodys(running: tuple[Seen, str]) -> None:
    """What it is opened with does not depend on who came first."""
    _, address = running
    given: list[OfferContext] = []

    def headers(ctx: OfferContext) -> dict[str, str]:
        given.append(ctx)
        return {}

    tools = tools_at(address, headers=headers, shared=True)
    await tools.tools(OfferContext(turn="t", round=0, identity=Identity(principal="ana"), context="crm"))
    await tools.aclose()
    assert given
    assert {(ctx.identity, ctx.session, ctx.context) for ctx in given} == {(None, None, None)}


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (401, b"{}", "HTTP status 401"), (500, b"<html>token=abc</html>", "HTTP status 500"),
        (200, b'{"token": no json', "something that is no message"), (200, b"[]", "something that is no message"),
        (302, b"", "cannot be"),
    ],
)  # fmt: skip
async def test_an_address_that_does_not_answer_as_it_should(
    running: tuple[Seen, str], status: int, body: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The turn goes on, and the record has our words and none of the server's."""
    seen, address = running
    seen.status, seen.body = status, body
    async with tools_at(address, start_s=3) as tools:
        result, model = await asked(tools, "done")
    assert read(model.requests[0])["tools"] == []
    assert why in notes(result)[0]
    assert "token" not in f"{notes(result)}{caplog.text}"


async def test_what_fails_in_a_call_fails_the_call(running: tuple[Seen, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """401, too large an answer, a packed one: an error result each, and the next call works."""
    monkeypatch.setattr("onrecord.mcp_bridge.reach.BACK_OFF_S", (0.0,))
    seen, address = running
    async with tools_at(address, limits=Limits(message=100_000)) as tools:
        await asked(tools, "a")
        seen.status = 401
        result, model = await asked(tools, call("degrees", city="Faro"), "done")
        assert "it answered with HTTP status 401" in texts(model.requests[1])[0]
        seen.status, seen.body = 200, b"[" + b"1," * 200_000
        result, model = await asked(tools, call("degrees", city="Faro"), "done")
        assert "a message that is too large" in texts(model.requests[1])[0]
        seen.status = None
        result, model = await asked(tools, call("degrees", city="Faro"), "done")
        assert results(result) == [("degrees", "returned")]
        seen.status, seen.headers = 200, [(b"content-encoding", b"gzip"), (b"content-type", b"application/json")]
        result, model = await asked(tools, call("degrees", city="Faro"), "done")
        assert "a packed answer" in texts(model.requests[1])[0]


EVENTS = (b"content-type", b"text/event-stream")


@pytest.mark.parametrize(
    ("status", "headers", "body", "why"),
    [
        (200, [EVENTS], b"data: {token\n\n", "something that is no message"),
        (200, [EVENTS], b"event: token\ndata: token\n\n", "the connection was lost"),
        (200, [EVENTS], b"data: token" + b"x" * 200_000, "a message that is too large"),
        (200, [(b"content-type", b"token/html")], b"token", "Unexpected content type"),
        (307, [(b"location", b"http://127.0.0.1:9/token")], b"", "it answered with HTTP status 307"),
    ],
)
async def test_what_a_server_says_in_the_place_of_an_answer_goes_into_no_log(
    running: tuple[Seen, str], status: int, headers: Any, body: bytes, why: str,
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Nor to the model: not in an event, a name of one, a type of content, or a way to elsewhere."""
    monkeypatch.setattr("onrecord.mcp_bridge.reach.BACK_OFF_S", (0.0,))
    seen, address = running
    async with tools_at(address, limits=Limits(message=100_000)) as tools:
        await asked(tools, "a")
        seen.status, seen.headers, seen.body = status, headers, body
        _, model = await asked(tools, call("degrees", city="Faro"), "done")
        assert why in texts(model.requests[1])[0]
        assert "token" not in texts(model.requests[1])[0] + caplog.text
        seen.status = None
        result, _ = await asked(tools, call("degrees", city="Faro"), "done")
        assert results(result) == [("degrees", "returned")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_events_are_read_however_they_are_cut(end: bytes) -> None:
    """Each goes on as it came, those of other kinds do not, and the last one may lack its end."""
    message = b'{"jsonrpc":"2.0","method":"m"}'
    whole = [b"id: 1", b"data:", b"", b"event: message", b"data: {", b"data:" + message[1:], b"", b": still here", b""]
    text = end.join([*whole, b"event: other", b"data: x", b"", b"data: " + message])

    async def cut(size: int) -> AsyncIterator[bytes]:
        for at in range(0, len(text), size):
            yield text[at : at + size]

    for size in (1, 2, 3, 7, len(text)):
        got = b"".join([event async for event in _events(cut(size), 1_000) if isinstance(event, bytes)])
        assert b"".join(got.split()) == b"".join((end.join([*whole, b"data: " + message])).split())


async def test_an_address_where_nobody_listens(running: tuple[Seen, str]) -> None:
    """The record has a note, and the turn goes on."""
    async with tools_at("http://127.0.0.1:9/mcp", start_s=3) as tools:
        result, _ = await asked(tools, "done")
    assert notes(result)[0].startswith("the server 'w' cannot be used: it cannot be reached")


async def test_a_question_of_the_server_is_refused(running: tuple[Seen, str]) -> None:
    """It is told at the start that nobody answers; the call fails, and nobody is asked."""
    _, address = running
    async with tools_at(address) as tools:
        result, model = await asked(tools, call("asks"), "done")
        assert (result.status, results(result)) == ("answered", [("asks", "failed")])
        assert "elicitation/create" in texts(model.requests[1])[0]


async def test_a_list_that_changes_is_heard_of(running: tuple[Seen, str]) -> None:
    """As servers of today tell it: over a subscription."""
    _, address = running
    async with tools_at(address) as tools:
        await asked(tools, call("more"), "done")
        async with asyncio.timeout(5):
            while True:
                _, model = await asked(tools, "done")
                if "added" in read(model.requests[0])["tools"]:
                    break
                await asyncio.sleep(0.05)
        _, model = await asked(tools, call("added"), "done")
        assert texts(model.requests[1]) == ["it works"]


# ---- a server of before 2026, byte by byte ---------------------------------------------------------------------------


class Old:
    """Speaks the protocol of 2025 with sessions, and forgets them when told to."""

    def __init__(self) -> None:
        self.sessions, self.calls, self.ended = set[str](), 0, list[str]()
        self.forgets = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        head = {k.decode(): v.decode() for k, v in scope["headers"]}
        body = b""
        while True:
            piece = await receive()
            body += piece.get("body", b"")
            if not piece.get("more_body"):
                break
        status, more, answer = self.answer(scope["method"], head.get("mcp-session-id", ""), body)
        headers = [(b"content-type", b"application/json"), *more]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if answer is None else json.dumps(answer).encode()})

    def answer(self, verb: str, session: str, body: bytes) -> tuple[int, list[tuple[bytes, bytes]], Any]:
        if verb == "DELETE":
            self.ended.append(session)
        if verb != "POST":
            return 405, [], None
        asked = json.loads(body)
        method, id = asked["method"], asked.get("id")
        if method == "initialize":
            name = f"session-{len(self.sessions)}"
            self.sessions.add(name)
            result: Any = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "old", "version": "1"}}  # fmt: skip
            return 200, [(b"mcp-session-id", name.encode())], {"jsonrpc": "2.0", "id": id, "result": result}
        if session not in self.sessions or (self.forgets and method == "tools/call"):
            return 404 if session else 400, [], {}
        if id is None:
            return 202, [], None
        self.calls += method == "tools/call"
        result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        if method == "tools/call":
            result = {"content": [{"type": "text", "text": session}]}
        return 200, [], {"jsonrpc": "2.0", "id": id, "result": result}


async def test_a_connection_that_the_server_forgot_is_opened_anew_and_the_call_made_once() -> None:
    """It answers 404 and has done nothing, so that the call may be made again."""
    old = Old()
    async with serving(old) as address:
        async with tools_at(address) as tools:
            _, model = await asked(tools, call("echo"), "done")
            assert texts(model.requests[1]) == ["session-0"]
            old.sessions = {"session-1"}
            old.calls = 0
            _, model = await asked(tools, call("echo"), "done")
            assert texts(model.requests[1]) == ["session-1"]
            assert old.calls == 1
            old.forgets = True
            _, model = await asked(tools, call("echo"), "done")
            assert "it does not know this connection" in texts(model.requests[1])[0]
            old.forgets = False
        assert old.ended[:2] == ["session-0", "session-1"]
