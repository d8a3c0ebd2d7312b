"""What one would write by hand: a chat, its tool calls and a stream over aiohttp, with nothing around them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import aiohttp

__all__ = ("INSTRUCTIONS", "PARAMETERS", "PlainLoops")

INSTRUCTIONS = "You are a concise assistant. Use the lookup tool when asked."
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "required": ["q"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {"name": "lookup", "description": "Look up a key.", "parameters": PARAMETERS},
}


class PlainLoops:
    """One aiohttp session and a list of dictionaries."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            headers={"authorization": "Bearer k", "content-type": "application/json"},
        )

    async def _answer(self, path: str, messages: list[dict[str, Any]], *, tools: bool) -> dict[str, Any]:
        body: dict[str, Any] = {"model": "mock-1", "messages": messages}
        if tools:
            body["tools"] = [TOOL]
        url = f"{self.base}/{path}/v1/chat/completions"
        async with self.session.post(url, data=json.dumps(body).encode()) as reply:
            reply.raise_for_status()
            message: dict[str, Any] = json.loads(await reply.read())["choices"][0]["message"]
            return message

    async def turn(self, messages: list[dict[str, Any]], said: str) -> str:
        """One more turn of a conversation, which grows."""
        messages.append({"role": "user", "content": said})
        answer = await self._answer("text", messages, tools=False)
        messages.append({"role": "assistant", "content": answer["content"]})
        return str(answer["content"])

    async def simple(self) -> str:
        """One turn without tools and history."""
        return await self.turn([{"role": "system", "content": INSTRUCTIONS}], "hello")

    async def tools(self, script: str) -> str:
        """One turn with calls, until there is a text."""
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": "look it up"},
        ]
        while True:
            answer = await self._answer(f"rounds/{script}", messages, tools=True)
            calls = answer.get("tool_calls")
            if not calls:
                return str(answer["content"])
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            for call in calls:
                value = f"value of {json.loads(call['function']['arguments'])['q']}"
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": value})

    async def stream(self, count: int, pause: int, first: Callable[[], None]) -> int:
        """The deltas of one streamed turn, each of them parsed; ``first`` is called at the first."""
        url, seen, rest = f"{self.base}/deltas/{count}/{pause}/v1/chat/completions", 0, b""
        body = {
            "model": "mock-1",
            "stream": True,
            "messages": [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": "go on"}],
        }
        async with self.session.post(url, data=json.dumps(body).encode()) as reply:
            async for chunk in reply.content.iter_any():
                rest += chunk
                *events, rest = rest.split(b"\n\n")
                for event in events:
                    if event == b"data: [DONE]" or not event.startswith(b"data: "):
                        continue
                    choices = json.loads(event[6:])["choices"]
                    if choices and choices[0]["delta"].get("content"):
                        seen += 1
                        if seen == 1:
                            first()
        return seen
