"""Two channels that carry messages out of a host: a webhook, and a terminal.

    host = Host(agent, store=store, deliver=Webhook("https://chat.example/messages"))

A channel is an async function. Whatever it raises, the message is tried again later, under the same key: so a receiver
that drops keys it has seen gets each message exactly once.
"""

import sys
from typing import TextIO

import msgspec

from onrecord import SessionKey
from onrecord.conversation.outgoing import Outgoing
from onrecord.net.transport import post


class Refused(Exception):
    """The receiver answered with something else than success."""


class Webhook:
    """Posts each message as JSON to ``url``, its key in the header ``Idempotency-Key``."""

    def __init__(self, url: str, *, token: str = "") -> None:
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def __call__(self, session: SessionKey, message: Outgoing) -> None:
        body = msgspec.json.encode(
            {"session": session.id, "tenant": session.tenant, "text": message.text, "media": message.media}
        )
        headers = {**self.headers, "Idempotency-Key": message.key}
        async with post(self.url, body, headers=headers, provider="webhook", silence_s=10) as reply:
            if not 200 <= reply.status < 300:
                raise Refused(f"status {reply.status}")


class Terminal:
    """Writes each message as a line. A message whose key was written before is not written again."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self.out = out
        self.written = set[str]()

    async def __call__(self, session: SessionKey, message: Outgoing) -> None:
        if message.key not in self.written:
            print(f"{session.id}: {message.text}", file=self.out, flush=True)
            self.written.add(message.key)
