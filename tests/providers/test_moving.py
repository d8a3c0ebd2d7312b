"""One conversation moves between wires: what can be kept is kept, and what cannot is named.

A text, an image, two parallel calls, a refusal, reasoning and a source go from every wire to every other and back, over
real connections; each server reads the body as its vendor documents it (`moving`).
"""

from __future__ import annotations

import itertools
import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest

from onrecord import Agent, tool
from onrecord.conversation.content import Image, Part, Text
from onrecord.conversation.inputs import Said
from onrecord.models.model import Model
from onrecord.session import Session
from tests.net.loopback import Peer, serving
from tests.providers.moving import CALLS, KITS, SOURCE, THOUGHT, Item
from tests.providers.wires import CHAT, WIRES, Wire

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


def away_at(vendor: Vendor, index: int) -> list[Item]:
    """A body that is not the last."""
    return vendor.kit.read(json.loads(vendor.bodies[index]))
