"""One conversation moves between wires: what can be kept is kept, and what cannot is named.

A text, an image, two parallel calls, a refusal, reasoning and a source go from every wire to every other and back, over
real connections; each server reads the body as its vendor documents it (`moving`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord import Agent, tool
from onrecord.conversation.content import Audio, File, Image, Part, Text
from onrecord.conversation.inputs import Said
from onrecord.errors import ModelError
from onrecord.models.model import Model
from onrecord.providers.anthropic.client import anthropic
from onrecord.providers.google.client import google
from onrecord.providers.openai_chat.client import openai
from onrecord.providers.openai_responses.client import openai_responses
from onrecord.session import Session
from tests.models.requests import call, request, said, settled, user
from tests.net.loopback import Peer, serving
from tests.providers.moving import (
    CALLS,
    KITS,
    SOURCE,
    THOUGHT,
    Item,
    candidates,
    choice,
    message,
    messages_blocks,
    responses_stream,
)
from tests.providers.wires import CHAT, WIRES, Wire, each_wire, sse

pytestmark = pytest.mark.integration

PIXEL = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=")
BE_BRIEF = "You quote prices."
PAIRS = list(itertools.product(WIRES, WIRES))
each_pair = pytest.mark.parametrize(("one", "other"), PAIRS, ids=[f"{a.name}-{b.name}" for a, b in PAIRS])


@tool(read_only=True)
async def price(city: str) -> str:
    """Price of a stay."""
    return f"a room in {city}"


class Vendor:
    """A server of one wire: what it will say next, and every body that it got."""

    def __init__(self, wire: Wire) -> None:
        self.wire, self.kit = wire, KITS[wire.name]
        self.says: Iterator[bytes] = iter(())
        self.bodies: list[bytes] = []

    def model(self, port: int) -> Model:
        """The vendor's model. Of Chat's vendors one that wants its reasoning back: its items are its own."""
        vendor = "zai" if self.wire is CHAT else self.wire.vendors[0]
        return self.wire.make(f"http://127.0.0.1:{port}/v1", vendor)

    async def serve(self, peer: Peer) -> None:
        while True:
            asked = await peer.request()
            self.bodies.append(asked.body)
            said = next(self.says)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(said)}\r\n\r\n"
            await peer.send(head.encode() + said)

    def read(self) -> list[Item]:
        """The last body."""
        held: dict[str, Any] = json.loads(self.bodies[-1])
        return self.kit.read(held)


async def turn(
    agent: Agent, vendor: Vendor, session: Session | str, said: str | tuple[Part, ...], *replies: bytes
) -> Session:
    """One turn that these replies answer, all of them."""
    vendor.says = iter(replies)
    result = await agent.turn(Said(said), session=session)
    assert next(vendor.says, None) is None
    assert result.session is not None
    return result.session


TOLD: list[Item] = [
    ("system", BE_BRIEF),
    ("user", "What is this, and what does it cost?"),
    ("image",),
    ("said", "One moment."),
    *(("call", name, args) for name, args in CALLS),
    ("result", "a room in Lisbon"),
    ("result", "a room in Porto"),
    ("said", "Lisbon is cheaper."),
    ("user", "Hack it."),
    ("said", "I will not."),
    ("user", "And now?"),
]
"""What every wire has to say of the conversation at the second vendor's first request."""
QUESTION = (Text("What is this, and what does it cost?"), Image(data=PIXEL))


async def first_part(agent: Agent, vendor: Vendor) -> Session:
    """Two turns at one vendor: two calls with reasoning and a sourced answer; a refusal."""
    kit = vendor.kit
    session = await turn(agent, vendor, "s", QUESTION, kit.calls(), kit.cited("Lisbon is cheaper."))
    return await turn(agent, vendor, session, "Hack it.", kit.refusal("I will not."))


@each_pair
async def test_a_conversation_goes_to_another_wire_and_back(one: Wire, other: Wire) -> None:
    """And is the same there; at home again, its own items stand as they came."""
    home, away = Vendor(one), Vendor(other)
    async with serving(home.serve) as here, serving(away.serve) as there:
        first = Agent(home.model(here.port), instructions=BE_BRIEF, tools=[price])
        second = first.with_(model=away.model(there.port))
        session = await first_part(first, home)
        rounds = [held for message in session.conversation.messages for held in getattr(message, "rounds", ())]
        assert [held.use.finish for held in rounds if held.use] == ["calls", "stop", home.kit.refuses]
        assert {source.url for held in rounds for part in held.content if isinstance(part, Text)
                for source in part.citations} == {SOURCE}  # fmt: skip

        session = await turn(second, away, session, "And now?", away.kit.calls(), away.kit.cited("Lisbon, still."))
        assert away_at(away, -2) == TOLD
        assert THOUGHT.encode() not in away.bodies[0]
        if one is not other:
            assert home.kit.native.encode() not in away.bodies[0]
        assert away.kit.native.encode() in away.bodies[1]

        await turn(first, home, session, "Back again.", home.kit.cited("Lisbon is cheaper."))
        told = home.read()
        assert told[: len(TOLD)] == TOLD
        assert told[len(TOLD) :] == [*TOLD[3:8], ("said", "Lisbon, still."), ("user", "Back again.")]
        assert home.kit.native.encode() in home.bodies[-1]
        assert away.kit.native.encode() not in home.bodies[-1] or one.name == other.name
    assert not here.failures
    assert not there.failures


# ---- what cannot come along ------------------------------------------------------------------------------------------

ABLE: dict[str, Model] = {
    # of each wire a model that takes whatever the wire has a place for
    "chat": openai("gpt-4o-audio-preview", api_key="k", base_url="http://127.0.0.1:9/v1", retry=False),
    "responses": openai_responses("gpt-5.5", api_key="k", base_url="http://127.0.0.1:9/v1", retry=False),
    "messages": anthropic("claude-opus-5", api_key="k", base_url="http://127.0.0.1:9/v1", retry=False),
    "google": google("gemini-3.8-flash", api_key="k", base_url="http://127.0.0.1:9/v1", retry=False),
}
PARTS: dict[str, Part] = {
    "an image": Image(data=PIXEL, media="image/png"),
    "an image by URL": Image(url="https://e.test/a.png"),
    "an image by file id": Image(file_id="f-1"),
    "audio": Audio(data=b"a"),
    "audio by URL": Audio(url="https://e.test/a.wav"),
    "a file": File(data=b"%PDF", name="a.pdf"),
    "a file by URL": File(url="https://e.test/a.pdf"),
    "a file by file id": File(file_id="f-1"),
}
NO_PLACE: dict[str, dict[str, str]] = {
    "chat": {
        "an image by file id": "an image by file id: Chat Completions takes images by URL or as bytes",
        "audio by URL": "audio by URL: Chat Completions takes audio as bytes",
        "a file by URL": "a file by URL: Chat Completions takes files as bytes or by file id",
    },
    "responses": {
        "an image by file id": "an image by file id: here only the bytes or a URL",
        "audio": "audio: Responses takes none",
        "audio by URL": "audio: Responses takes none",
        "a file by file id": "a file by file id: here only the bytes or a URL",
    },
    "messages": {"audio": "audio: Messages takes none", "audio by URL": "audio: Messages takes none"},
    "google": {},
}
"""Everything that a wire has no place for; all else of `PARTS` goes over it."""


@each_wire
@pytest.mark.parametrize("name", PARTS)
async def test_what_a_wire_cannot_carry_is_listed_exactly(wire: Wire, name: str) -> None:
    """By name and unit, from a person and from a tool, and nothing is sent; what it can carry is no issue."""
    part, model, why = PARTS[name], ABLE[wire.name], NO_PLACE[wire.name].get(name)
    returned = said(settled("r", calls=[call("r", 0), call("r", 1, result=(Text("see"), part))]))
    asked = request(user("look", part), returned, user("and?", id="u2"), model=model)
    issues = [(issue.unit, issue.what) for issue in model.wire(asked).issues]
    assert issues == ([(0, why), (1, why)] if why else [])
    worded = model.wire(replace(asked, view=replace(asked.view, stand_ins=True)))
    assert worded.issues == ()  # its words go everywhere
    assert (why is None) == (worded.body == model.wire(asked).body)
    assert model.wire(asked).refusing(replace(asked.view, degrade=True)) == ()
    if why is not None:  # else there would be a network error, since nobody listens there
        with pytest.raises(ModelError, match="cannot be sent this request: " + re.escape(why)) as refused:
            _ = [chunk async for chunk in model.stream(asked)]
        assert (refused.value.kind, refused.value.started) == ("invalid", False)


LOST: dict[str, tuple[bytes, str]] = {
    # of each wire a reply with something that no other wire can say, and how that is named there
    "chat": (
        b"".join(sse(choice(content=[{"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "It is."}]),
                     choice("stop"), "[DONE]")),
        "content of type 'reference'",
    ),
    "responses": (
        responses_stream([{"id": "ci_1", "type": "code_interpreter_call", "status": "completed", "code": "1"},
                          message({"type": "output_text", "text": "It is.", "annotations": []})]),
        "an item of type 'code_interpreter_call'",
    ),
    "messages": (
        messages_blocks(
            "end_turn",
            ({"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "1"}}, ()),
            ({"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {"stdout": "1"}}, ()),
            ({"type": "text", "text": "It is."}, ()),
        ),
        "a call of 'code_execution', which the provider ran",
    ),
    "google": (
        candidates([{"executableCode": {"language": "PYTHON", "code": "1"}}], [{"text": "It is."}]),
        "code that Google ran",
    ),
}  # fmt: skip


@each_pair
async def test_what_only_its_own_vendor_reads_goes_back_there_and_is_named_everywhere_else(
    one: Wire, other: Wire
) -> None:
    """Another model is asked nothing, and the first goes on as if nothing had happened."""
    home, away = Vendor(one), Vendor(other)
    reply, lost = LOST[one.name]
    async with serving(home.serve) as here, serving(away.serve) as there:
        first = Agent(home.model(here.port), instructions=BE_BRIEF)
        second = first.with_(model=away.model(there.port))
        session = await turn(first, home, "s", "Is it?", reply)
        with pytest.raises(ModelError, match="cannot be sent this request: ") as refused:
            await second.turn("And now?", session=session)
        assert str(refused.value).endswith(": " + lost)
        assert not there.requests
        await turn(first, home, session, "And now?", home.kit.cited("Still."))
        assert lost.split("'")[-2].encode() in home.bodies[-1] if "'" in lost else b"executableCode" in home.bodies[-1]


UNSAID = {
    "denied": "The call was not allowed.",
    "cancelled": "The call was cancelled; whether it took effect is not known.",
    "not_run": "The call was not run.",
    "failed": "The tool failed.",
}


@each_wire
@pytest.mark.parametrize("status", UNSAID)
def test_a_call_that_never_ran_is_answered_in_its_place_on_each_wire(wire: Wire, status: Any) -> None:
    """Its result says what became of it, and stands where the call stood."""
    asked = settled("r", "One moment.", calls=[call("r", 0, status=status, result=None), call("r", 1)])
    body = json.loads(ABLE[wire.name].wire(request(user("hi"), said(asked), user("so?", id="u2"))).body)
    told = [item for item in KITS[wire.name].read(body) if item[0] == "result"]
    assert told == [("result", json.dumps({"error": UNSAID[status]}, separators=(",", ":"))), ("result", "sunny")]


@each_wire
async def test_results_stand_in_the_order_of_their_calls_whoever_is_done_first(wire: Wire) -> None:
    """Both run at once: the first waits for the second."""
    home, done = Vendor(wire), asyncio.Event()

    @tool(id="price", read_only=True)
    async def slow(city: str) -> str:
        """Price of a stay."""
        if city == "Porto":
            done.set()
        await asyncio.wait_for(done.wait(), 5)
        return f"a room in {city}"

    async with serving(home.serve) as here:
        agent = Agent(home.model(here.port), tools=[slow])
        await turn(agent, home, "s", "What does it cost?", home.kit.calls(), home.kit.cited("Lisbon is cheaper."))
        assert [item[1] for item in home.read() if item[0] == "result"] == ["a room in Lisbon", "a room in Porto"]
        native = home.kit.native.encode()
        assert native in home.bodies[-1]


def away_at(vendor: Vendor, index: int) -> list[Item]:
    """A body that is not the last."""
    return vendor.kit.read(json.loads(vendor.bodies[index]))
