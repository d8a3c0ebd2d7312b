"""A conversation fails over from each wire to each other one, in the middle of a turn, and comes back.

Over real connections; each server reads the body as its vendor documents it (`moving`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from onrecord import Agent
from onrecord.conversation.messages import AssistantMessage, Round
from onrecord.models.fallback import Fallback
from onrecord.models.model import Model
from onrecord.models.retry import Reliable
from onrecord.record.kinds import ModelAttempted
from onrecord.session import Session
from tests.net.loopback import Peer, serving
from tests.providers.chat_server import status
from tests.providers.moving import CALLS
from tests.providers.test_moving import Vendor, price
from tests.providers.wires import WIRES, Wire
from tests.turn.acting import bodies

pytestmark = pytest.mark.integration

PAIRS = list(itertools.permutations(WIRES, 2))
DOWN = status(503)


class Failing(Vendor):
    """A server that is down where its script has nothing to say."""

    script: Iterator[bytes | None]

    async def serve(self, peer: Peer) -> None:
        while True:
            asked = await peer.request()
            self.bodies.append(asked.body)
            said = next(self.script)
            if said is None:
                await peer.send(DOWN)
                continue
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(said)}\r\n\r\n"
            await peer.send(head.encode() + said)


def rounds(session: Session | None) -> list[Round]:
    """All rounds of a conversation."""
    assert session is not None
    return [r for m in session.conversation.messages if isinstance(m, AssistantMessage) for r in m.rounds]


@pytest.mark.parametrize("wrapper", ["reliable", "fallback"])
@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[f"{a.name}-{b.name}" for a, b in PAIRS])
async def test_a_turn_goes_on_at_another_vendor_and_the_next_one_is_back(one: Wire, other: Wire, wrapper: str) -> None:
    """The calls that one vendor asked for are answered to the other; each gets back natively only what is its own."""
    home, away, now = Failing(one), Failing(other), [0.0]
    home.script = iter([home.kit.calls(), None, home.kit.cited("Lisbon, again.")])
    away.script = iter([away.kit.cited("Lisbon is cheaper.")])
    async with serving(home.serve) as here, serving(away.serve) as there:
        first, second = home.model(here.port), away.model(there.port)
        model: Model = Reliable(first, second, waits_s=())
        if wrapper == "fallback":
            model = Fallback(first, second, clock=lambda: now[0])
        agent = Agent(model, instructions="You quote prices.", tools=[price])
        result = await agent.turn("What does it cost?", session="s")
        assert result.text == "Lisbon is cheaper."
        assert [(told.error, told.status) for told in bodies(result, ModelAttempted)] == [("overload", 503)]
        assert away.read() == [
            ("system", "You quote prices."),
            ("user", "What does it cost?"),
            ("said", "One moment."),
            *(("call", name, args) for name, args in CALLS),
            ("result", "a room in Lisbon"),
            ("result", "a room in Porto"),
        ]
        assert home.kit.native.encode() not in away.bodies[0]

        now[0] += 31.0
        result = await agent.turn("And now?", session=result.session)
        assert result.text == "Lisbon, again."
        assert home.kit.native.encode() in home.bodies[-1]
        assert ("said", "Lisbon is cheaper.") in home.read()
    used = [held.use for held in rounds(result.session) if held.use is not None]
    names = (first.card.provider, second.card.provider)
    assert [use.provider for use in used] == [names[0], names[1], names[0]]
    assert [held.continuation.protocol for held in rounds(result.session) if held.continuation] == [
        card.protocol
        for held, card in zip(rounds(result.session), (first.card, second.card, first.card), strict=True)
        if held.continuation
    ]
    assert not here.failures
    assert not there.failures
