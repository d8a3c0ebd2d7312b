"""The example channels, against a receiver on loopback that drops the keys it has seen."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import msgspec
import pytest

from examples.channels import Refused, Terminal, Webhook
from onrecord import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.outgoing import Outgoing
from onrecord.net import transport
from onrecord.testing import FakeEffects, ScriptedModel
from tests.host.hosting import hosted, settled
from tests.net.loopback import Peer, serving

pytestmark = pytest.mark.integration

ANSWER = b"HTTP/1.1 %d Fine\r\nContent-Length: 0\r\n\r\n"


class Receiver:
    """Somebody's server: takes each key once, and breaks down in the ways it is told before it behaves."""

    def __init__(self, *trouble: str) -> None:
        self.trouble = list(trouble)
        self.kept: dict[str, dict[str, Any]] = {}
        self.seen: list[str] = []

    async def __call__(self, peer: Peer) -> None:
        while True:
            asked = await peer.request()
            key = asked.fields["idempotency-key"]
            self.seen.append(key)
            trouble = self.trouble.pop(0) if self.trouble else ""
            if trouble == "busy":
                await peer.send(ANSWER % 503)
                continue
            self.kept.setdefault(key, msgspec.json.decode(asked.body))
            if trouble == "kept, and gone before it said so":
                peer.reset()
                return
            await peer.send(ANSWER % 204)


async def test_a_webhook_gets_each_message_once_whatever_happens_on_the_way() -> None:
    """A message is posted until it is taken, always under its key; the receiver keeps one of each, in order."""
    receiver, effects = Receiver("busy", "kept, and gone before it said so"), FakeEffects()
    agent = Agent(ScriptedModel("Hello.", "Fine."))
    async with serving(receiver) as server:
        channel = Webhook(server.url, token="t0ken")
        async with hosted(agent, effects=effects, deliver=channel, retry=(1.0, 1.0, 1.0)) as host:
            keys = [(await host.turn("ana", said)).messages[0].key for said in ("Hi", "How are you?")]
            for tries in (1, 2):
                await settled(partial(_has_seen, receiver, tries))
                await settled(lambda: _is_free(host))
                effects.advance(seconds=1.5)
            await settled(lambda: len(receiver.kept) == 2)
            await settled(lambda: _is_empty(host))
        await transport.close()
    assert receiver.seen == [keys[0], keys[0], keys[0], keys[1]]
    assert [one["text"] for one in receiver.kept.values()] == ["Hello.", "Fine."]
    assert server.requests[0].fields["authorization"] == "Bearer t0ken"
    assert receiver.kept[keys[0]] == {"session": "ana", "tenant": "", "text": "Hello.", "media": None}


def _has_seen(receiver: Receiver, count: int) -> bool:
    return len(receiver.seen) >= count


async def _is_free(host: Any) -> bool:
    return not any(row.owner for row in await host.store.rows("out"))


async def _is_empty(host: Any) -> bool:
    return not await host.store.rows("out")


async def test_a_refusal_is_an_error_without_content() -> None:
    """So that the host tries again, and its log says nothing of what was said."""
    async with serving(Receiver("busy")) as server:
        with pytest.raises(Refused, match="status 503"):
            await Webhook(server.url)(SessionKey("ana"), Outgoing(key="k", text="secret"))
        await transport.close()


async def test_a_terminal_shows_a_message_once() -> None:
    """The second time its key comes it was shown already."""
    out = io.StringIO()
    channel = Terminal(out)
    for _ in range(2):
        await channel(SessionKey("ana"), Outgoing(key="k", text="Hello."))
    assert out.getvalue() == "ana: Hello.\n"
